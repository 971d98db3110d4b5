#include "backend/cpu/control_thunks.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "backend/cpu/compiler.h"
#include "ir/support/status.h"
#include "ir/types/leaves.h"
#include "lowering/passes/flat_module.h"

namespace lazuli::cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Each level is compiled with everything inside it.
constexpr int kMaxDepth = 24;

// A compiled callee and where its scratch memory lies in the caller's.
struct Callee {
  std::shared_ptr<const ThunkProgram> program;
  BufferId arena = -1;
};

absl::StatusOr<ThunkProgram> CompileProgramOf(const hlo::Computation& computation,
                                              const ThunkProgram& caller, bool updates_parameters) {
  std::unique_ptr<hlo::Module> module = lowering::FlatModule(computation);
  if (updates_parameters) {
    const auto count = static_cast<int64_t>(module->entry()->parameters().size());
    for (int64_t k = 0; k < count; ++k)
      module->aliases().push_back(
          {.output_index = {k}, .parameter_number = k, .parameter_index = {}});
  }
  CompileOptions options{.num_threads = caller.num_threads,
                         .flush_subnormals = caller.flush_subnormals,
                         .dump_name = {}};
  return CompileCallee(std::move(module), options, caller.depth + 1, updates_parameters);
}

void Count(const ExecutableStats& inner, ExecutableStats& stats) {
  stats.kernels += inner.kernels;
  stats.library_calls += inner.library_calls;
  stats.reorders += inner.reorders;
  stats.evaluator_thunks += inner.evaluator_thunks;
  stats.code_bytes += inner.code_bytes;
}

// Equal computations are compiled once: branches that call the same would otherwise make 2^n
// programs n levels deep.
absl::StatusOr<Callee> CompileCallee(const hlo::Computation& computation, ThunkProgram& caller,
                                     CompiledCallees& compiled, bool updates_parameters,
                                     const NewBuffer& new_buffer) {
  if (compiled.classes == nullptr)
    compiled.classes = std::make_unique<lowering::ComputationClasses>(*caller.module);
  std::shared_ptr<const ThunkProgram>& program =
      compiled.programs[{compiled.classes->of(&computation), updates_parameters}];
  if (program == nullptr) {
    LAZULI_ASSIGN_OR_RETURN(ThunkProgram made,
                            CompileProgramOf(computation, caller, updates_parameters));
    Count(made.stats, caller.stats);
    program = std::make_shared<const ThunkProgram>(std::move(made));
  }
  return Callee{program, program->arena_bytes > 0 ? new_buffer(program->arena_bytes) : -1};
}

// The buffers of one run of a callee.
class Frame {
 public:
  Frame(const Callee& callee, const RunBuffers& run)
      : program_(*callee.program), device_(run.device), table_(program_.slots.size()) {
    std::byte* const arena = callee.arena >= 0 ? run.at(callee.arena) : nullptr;
    for (std::size_t b = 0; b < table_.size(); ++b) {
      const BufferSlot& slot = program_.slots[b];
      if (slot.kind == BufferSlot::Kind::kConstant)
        table_[b] = const_cast<std::byte*>(slot.constant);
      if (slot.kind == BufferSlot::Kind::kTemporary) table_[b] = arena + slot.offset;
      if (slot.kind == BufferSlot::Kind::kParameter) parameters_.push_back({b, slot.index});
    }
  }
  void SetParameters(const std::vector<std::byte*>& values) {
    for (const auto& [slot, index] : parameters_)
      table_[slot] = values[static_cast<std::size_t>(index)];
  }
  void SetOutput(std::size_t output, std::byte* memory) {
    table_[static_cast<std::size_t>(program_.outputs[output].buffer)] = memory;
  }
  absl::Status Run() {
    for (const auto& thunk : program_.thunks)
      LAZULI_RETURN_IF_ERROR(RunThunk(*thunk, {table_.data(), device_}));
    return absl::OkStatus();
  }

 private:
  const ThunkProgram& program_;
  Device device_;
  std::vector<std::byte*> table_;
  std::vector<std::pair<std::size_t, int64_t>> parameters_;
};

// The operands are read; results and what else the thunk needs are written.
std::vector<BufferUse> Uses(const std::vector<BufferId>& operands,
                            std::initializer_list<std::vector<BufferId>> written) {
  std::vector<BufferUse> uses;
  for (BufferId id : operands) uses.push_back({.buffer = id});
  for (const auto& ids : written) {
    for (BufferId id : ids) {
      if (id >= 0) uses.push_back({.buffer = id, .write = true});
    }
  }
  return uses;
}

std::vector<int64_t> LeafBytes(const Shape& shape) {
  std::vector<int64_t> bytes;
  ForEachLeaf(shape, [&](const Shape& leaf) { bytes.push_back(leaf.byte_size()); });
  return bytes;
}

void Copy(const std::byte* from, std::byte* to, int64_t bytes) {
  if (from != to && bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

// How an iteration changes an element of the state.
enum class Update : uint8_t { kNone, kInPlace, kAlternate };

std::vector<Update> UpdatesOf(const ThunkProgram& body) {
  std::vector<Update> updates;
  for (std::size_t k = 0; k < body.outputs.size(); ++k) {
    const ProgramOutput& output = body.outputs[k];
    const bool kept =
        body.slots[static_cast<std::size_t>(output.buffer)].kind == BufferSlot::Kind::kParameter;
    const bool in_place = output.donor == static_cast<int64_t>(k);
    updates.push_back(kept ? Update::kNone : in_place ? Update::kInPlace : Update::kAlternate);
  }
  return updates;
}

// A condition that compares two scalars of the state, or one with a constant: the usual one, which
// needs no program.
struct ScalarCondition {
  hlo::ComparisonDirection direction;
  DType dtype;
  int64_t leaf;
  int64_t other_leaf;  // -1: `constant`
  int64_t constant;

  bool Holds(const std::vector<std::byte*>& state) const {
    const int64_t a = Read(state[static_cast<std::size_t>(leaf)]);
    const int64_t b = other_leaf < 0 ? constant : Read(state[static_cast<std::size_t>(other_leaf)]);
    switch (direction) {
      case hlo::ComparisonDirection::kEq:
        return a == b;
      case hlo::ComparisonDirection::kNe:
        return a != b;
      case hlo::ComparisonDirection::kLt:
        return a < b;
      case hlo::ComparisonDirection::kLe:
        return a <= b;
      case hlo::ComparisonDirection::kGt:
        return a > b;
      case hlo::ComparisonDirection::kGe:
        return a >= b;
    }
    return false;
  }
  int64_t Read(const std::byte* at) const {
    int64_t wide = 0;
    int32_t narrow = 0;
    if (dtype == DType::kS64) std::memcpy(&wide, at, sizeof wide);
    if (dtype == DType::kS32) std::memcpy(&narrow, at, sizeof narrow);
    return dtype == DType::kS64 ? wide : narrow;
  }
};

// The leaf of the parameter that this is, if the parameter is a tuple of arrays; else -1.
int64_t LeafOf(const Instruction* i) {
  if (i->opcode() != Opcode::kGetTupleElement || i->operand(0)->opcode() != Opcode::kParameter)
    return -1;
  const auto& elements = i->operand(0)->shape().tuple();
  const bool flat = std::all_of(elements.begin(), elements.end(),
                                [](const Shape& element) { return element.IsArray(); });
  return flat ? i->attrs_as<hlo::TupleIndexAttrs>().index : -1;
}

std::optional<ScalarCondition> MatchScalarCondition(const hlo::Computation& condition) {
  const Instruction* root = condition.root();
  if (root->opcode() != Opcode::kCompare) return std::nullopt;
  const Instruction *a = root->operand(0), *b = root->operand(1);
  const DType dtype = a->shape().dtype();
  if (LeafOf(a) < 0 || (dtype != DType::kS32 && dtype != DType::kS64)) return std::nullopt;
  ScalarCondition result{root->attrs_as<hlo::CompareAttrs>().direction, dtype, LeafOf(a), LeafOf(b),
                         0};
  if (b->IsConstant()) {
    result.constant = result.Read(b->literal().raw());
  } else if (result.other_leaf < 0) {
    return std::nullopt;
  }
  return result;
}

class WhileThunk final : public Thunk {
 public:
  WhileThunk(const Instruction& loop, Callee condition, Callee body, std::vector<Update> updates,
             std::vector<BufferId> initial, std::vector<BufferId> state,
             std::vector<BufferId> alternates)
      : Thunk(ThunkInfo::Of("while", loop),
              Uses(initial, {state, alternates, {condition.arena, body.arena}})),
        scalar_condition_(MatchScalarCondition(*loop.called()[0])),
        condition_(std::move(condition)),
        body_(std::move(body)),
        updates_(std::move(updates)),
        bytes_(LeafBytes(loop.shape())),
        initial_(std::move(initial)),
        state_(std::move(state)),
        alternates_(std::move(alternates)) {}

  absl::Status Execute(const RunBuffers& run) const override;
  std::string Details() const override {
    return Str(scalar_condition_ ? std::size_t{0} : condition_.program->thunks.size(), " + ",
               body_.program->thunks.size(), " thunks an iteration");
  }

 private:
  // Where the state lies now, and where what changes is written next.
  struct State {
    std::vector<std::byte*> now, next;
  };
  void SetBuffers(const State& state, Frame& condition, Frame& body) const {
    condition.SetParameters(state.now);
    body.SetParameters(state.now);
    for (std::size_t k = 0; k < updates_.size(); ++k) {
      if (updates_[k] != Update::kNone) body.SetOutput(k, state.next[k]);
    }
  }

  std::optional<ScalarCondition> scalar_condition_;
  Callee condition_, body_;
  std::vector<Update> updates_;
  std::vector<int64_t> bytes_;
  std::vector<BufferId> initial_, state_, alternates_;
};

absl::Status WhileThunk::Execute(const RunBuffers& run) const {
  State state;
  bool alternates = false;
  for (std::size_t k = 0; k < state_.size(); ++k) {
    state.now.push_back(run.at(state_[k]));
    state.next.push_back(updates_[k] == Update::kAlternate ? run.at(alternates_[k]) : state.now[k]);
    alternates |= updates_[k] == Update::kAlternate;
    Copy(run.at(initial_[k]), state.now[k], bytes_[k]);
  }
  Frame condition(condition_, run), body(body_, run);
  bool goes_on = false;
  condition.SetOutput(0, reinterpret_cast<std::byte*>(&goes_on));
  SetBuffers(state, condition, body);
  while (true) {
    if (scalar_condition_) {
      goes_on = scalar_condition_->Holds(state.now);
    } else {
      LAZULI_RETURN_IF_ERROR(condition.Run());
    }
    if (!goes_on) break;
    LAZULI_RETURN_IF_ERROR(body.Run());
    if (!alternates) continue;
    std::swap(state.now, state.next);
    SetBuffers(state, condition, body);
  }
  for (std::size_t k = 0; k < state_.size(); ++k) Copy(state.now[k], run.at(state_[k]), bytes_[k]);
  return absl::OkStatus();
}

class ConditionalThunk final : public Thunk {
 public:
  // operands: the choice, then the leaves of each branch's argument; first[b]: where branch b's
  // start.
  ConditionalThunk(const Instruction& conditional, std::vector<Callee> branches,
                   std::vector<std::size_t> first, std::vector<BufferId> operands,
                   std::vector<BufferId> results, const std::vector<BufferId>& arenas)
      : Thunk(ThunkInfo::Of("conditional", conditional), Uses(operands, {results, arenas})),
        is_pred_(conditional.operand(0)->shape().dtype() == DType::kPred),
        branches_(std::move(branches)),
        first_(std::move(first)),
        operands_(std::move(operands)),
        results_(std::move(results)) {}

  absl::Status Execute(const RunBuffers& run) const override {
    const std::size_t b = Choice(run.at(operands_[0]));
    Frame frame(branches_[b], run);
    std::vector<std::byte*> arguments;
    for (std::size_t k = 0; k < branches_[b].program->parameters.size(); ++k)
      arguments.push_back(run.at(operands_[first_[b] + k]));
    frame.SetParameters(arguments);
    for (std::size_t k = 0; k < results_.size(); ++k) frame.SetOutput(k, run.at(results_[k]));
    return frame.Run();
  }
  std::string Details() const override { return Str(branches_.size(), " branches"); }

 private:
  // Branch 0 is taken for true; an index out of range takes the last.
  std::size_t Choice(const std::byte* at) const {
    if (is_pred_) return *reinterpret_cast<const bool*>(at) ? 0 : 1;
    int32_t index;
    std::memcpy(&index, at, sizeof index);
    const auto last = static_cast<int32_t>(branches_.size()) - 1;
    return static_cast<std::size_t>(index < 0 || index > last ? last : index);
  }

  bool is_pred_;
  std::vector<Callee> branches_;
  std::vector<std::size_t> first_;
  std::vector<BufferId> operands_, results_;
};

bool Compilable(const Instruction& i, const ThunkProgram& caller) {
  return caller.depth < kMaxDepth && !i.HasSideEffect() &&
         std::all_of(
             i.called().begin(), i.called().end(),
             [](const hlo::Computation* c) { return lowering::CanFlatten(*c); });
}

}  // namespace

absl::StatusOr<std::unique_ptr<Thunk>> MakeWhileThunk(const Instruction& loop, ThunkProgram& caller,
                                                      CompiledCallees& compiled,
                                                      std::vector<BufferId> operands,
                                                      std::vector<BufferId> results,
                                                      const NewBuffer& new_buffer) {
  if (!Compilable(loop, caller)) return nullptr;
  LAZULI_ASSIGN_OR_RETURN(Callee condition,
                          CompileCallee(*loop.called()[0], caller, compiled, false, new_buffer));
  LAZULI_ASSIGN_OR_RETURN(Callee body,
                          CompileCallee(*loop.called()[1], caller, compiled, true, new_buffer));
  std::vector<Update> updates = UpdatesOf(*body.program);
  const std::vector<int64_t> bytes = LeafBytes(loop.shape());
  std::vector<BufferId> alternates;
  for (std::size_t k = 0; k < updates.size(); ++k)
    alternates.push_back(updates[k] == Update::kAlternate ? new_buffer(bytes[k]) : -1);
  return std::make_unique<WhileThunk>(loop, std::move(condition), std::move(body),
                                      std::move(updates), std::move(operands), std::move(results),
                                      std::move(alternates));
}

absl::StatusOr<std::unique_ptr<Thunk>> MakeConditionalThunk(
    const Instruction& conditional, ThunkProgram& caller, CompiledCallees& compiled,
    std::vector<BufferId> operands, std::vector<BufferId> results, const NewBuffer& new_buffer) {
  if (!Compilable(conditional, caller)) return nullptr;
  std::vector<Callee> branches;
  std::vector<std::size_t> first;
  std::vector<BufferId> arenas;
  std::size_t next = 1;
  for (std::size_t b = 0; b < conditional.called().size(); ++b) {
    LAZULI_ASSIGN_OR_RETURN(Callee branch, CompileCallee(*conditional.called()[b], caller, compiled,
                                                         false, new_buffer));
    arenas.push_back(branch.arena);
    branches.push_back(std::move(branch));
    first.push_back(next);
    next += branches.back().program->parameters.size();
  }
  return std::make_unique<ConditionalThunk>(conditional, std::move(branches), std::move(first),
                                            std::move(operands), std::move(results), arenas);
}

}  // namespace lazuli::cpu
