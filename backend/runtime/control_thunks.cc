#include "backend/runtime/control_thunks.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "ir/support/status.h"
#include "ir/types/leaves.h"

namespace lazuli::backend {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Puts what a sequence keeps for itself into its frame.
void SetFrame(const CalledSequence& called, const RunBuffers& run) {
  called.sequence->PlaceFrame(called.frame < 0 ? nullptr : run.at(called.frame), run.data);
}

// Adds buffers that the thunk writes; -1 stands for none.
void AddWrites(std::vector<BufferUse>& uses, std::initializer_list<std::vector<BufferId>> written) {
  for (const auto& ids : written) {
    for (BufferId id : ids) {
      if (id >= 0) uses.push_back({.buffer = id, .write = true});
    }
  }
}

// The operands are read; results and what else the thunk needs are written.
std::vector<BufferUse> Uses(const std::vector<BufferId>& operands,
                            std::initializer_list<std::vector<BufferId>> written) {
  std::vector<BufferUse> uses;
  for (BufferId id : operands) uses.push_back({.buffer = id});
  AddWrites(uses, written);
  return uses;
}

// Runs a sequence whose parameters are the operands from `first` on, and whose results go into
// `results`.
absl::Status RunCalled(const CalledSequence& called, const std::vector<BufferId>& operands,
                       std::size_t first, const std::vector<BufferId>& results,
                       const RunBuffers& run) {
  const ThunkSequence& sequence = *called.sequence;
  SetFrame(called, run);
  for (std::size_t k = 0; k < sequence.parameters.size(); ++k)
    run.data[sequence.parameters[k]] = run.at(operands[first + k]);
  for (std::size_t k = 0; k < results.size(); ++k)
    run.data[sequence.outputs[k].buffer] = run.at(results[k]);
  return RunThunks(sequence, run);
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

std::vector<Update> UpdatesOf(const ThunkProgram& program, const ThunkSequence& body) {
  std::vector<Update> updates;
  for (std::size_t k = 0; k < body.outputs.size(); ++k) {
    const ProgramOutput& output = body.outputs[k];
    const bool kept = program.slot(output.buffer).kind == BufferSlot::Kind::kParameter;
    const bool in_place = output.donor == static_cast<int64_t>(k);
    updates.push_back(kept ? Update::kNone : in_place ? Update::kInPlace : Update::kAlternate);
  }
  return updates;
}

// A condition that compares two scalars of the state, or one with a constant: the usual one, which
// needs no program.
struct ScalarCondition {
  hlo::ComparisonDirection direction{};
  DType dtype{};
  int64_t leaf = 0;
  int64_t other_leaf = -1;  // -1: `constant`
  int64_t constant = 0;
  LAZULI_ATTRS(direction, dtype, leaf, other_leaf, constant);

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
  const Instruction* const fusion = root->opcode() == Opcode::kFusion ? root : nullptr;
  if (fusion != nullptr) root = fusion->to_apply()->root();
  if (root->opcode() != Opcode::kCompare) return std::nullopt;
  const auto operand = [&](int64_t k) -> const Instruction* {
    const Instruction* i = root->operand(k);
    const bool outside = fusion != nullptr && i->opcode() == Opcode::kParameter;
    return outside ? fusion->operand(i->parameter_number()) : i;
  };
  const Instruction *a = operand(0), *b = operand(1);
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

struct WhileSpec {
  std::optional<ScalarCondition> scalar_condition;
  CalledSequence condition, body;
  std::vector<Update> updates;
  std::vector<int64_t> bytes;  // of each element of the state
  std::vector<BufferId> initial, state, alternates;
  LAZULI_ATTRS(scalar_condition, condition, body, updates, bytes, initial, state, alternates);
};

class WhileThunk final : public SpecThunk<WhileSpec> {
 public:
  using SpecThunk::SpecThunk;

  absl::Status Execute(const RunBuffers& run) const override;
  std::string Details() const override {
    return Str(spec_.scalar_condition ? std::size_t{0} : spec_.condition.sequence->thunks.size(),
               " + ", spec_.body.sequence->thunks.size(), " thunks an iteration of ",
               spec_.body.sequence->name);
  }

 private:
  // Where the state lies now, and where what changes is written next.
  struct LoopState {
    std::vector<std::byte*> now, next;
  };
  void SetBuffers(const LoopState& state, const RunBuffers& run) const {
    for (std::size_t k = 0; k < spec_.updates.size(); ++k) {
      run.data[spec_.condition.sequence->parameters[k]] = state.now[k];
      run.data[spec_.body.sequence->parameters[k]] = state.now[k];
      if (spec_.updates[k] != Update::kNone)
        run.data[spec_.body.sequence->outputs[k].buffer] = state.next[k];
    }
  }
};

absl::Status WhileThunk::Execute(const RunBuffers& run) const {
  LoopState state;
  bool alternates = false;
  for (std::size_t k = 0; k < spec_.state.size(); ++k) {
    state.now.push_back(run.at(spec_.state[k]));
    state.next.push_back(spec_.updates[k] == Update::kAlternate ? run.at(spec_.alternates[k])
                                                                : state.now[k]);
    alternates |= spec_.updates[k] == Update::kAlternate;
    Copy(run.at(spec_.initial[k]), state.now[k], spec_.bytes[k]);
  }
  SetFrame(spec_.condition, run);
  SetFrame(spec_.body, run);
  bool goes_on = false;
  run.data[spec_.condition.sequence->outputs[0].buffer] = reinterpret_cast<std::byte*>(&goes_on);
  SetBuffers(state, run);
  while (true) {
    if (spec_.scalar_condition) {
      goes_on = spec_.scalar_condition->Holds(state.now);
    } else {
      LAZULI_RETURN_IF_ERROR(RunThunks(*spec_.condition.sequence, run));
    }
    if (!goes_on) break;
    LAZULI_RETURN_IF_ERROR(RunThunks(*spec_.body.sequence, run));
    if (!alternates) continue;
    std::swap(state.now, state.next);
    SetBuffers(state, run);
  }
  for (std::size_t k = 0; k < spec_.state.size(); ++k)
    Copy(state.now[k], run.at(spec_.state[k]), spec_.bytes[k]);
  return absl::OkStatus();
}

std::vector<BufferId> Frames(const std::vector<CalledSequence>& called) {
  std::vector<BufferId> frames;
  for (const CalledSequence& sequence : called) frames.push_back(sequence.frame);
  return frames;
}

struct ConditionalSpec {
  bool is_pred = false;
  std::vector<CalledSequence> branches;
  std::vector<uint64_t> first;  // of each branch's arguments among the operands
  // The choice, then the leaves of each branch's argument.
  std::vector<BufferId> operands;
  std::vector<BufferId> results;
  LAZULI_ATTRS(is_pred, branches, first, operands, results);
};

class ConditionalThunk final : public SpecThunk<ConditionalSpec> {
 public:
  using SpecThunk::SpecThunk;

  absl::Status Execute(const RunBuffers& run) const override {
    const std::size_t b = Choice(run.at(spec_.operands[0]));
    return RunCalled(spec_.branches[b], spec_.operands, spec_.first[b], spec_.results, run);
  }
  std::string Details() const override { return Str(spec_.branches.size(), " branches"); }

 private:
  // Branch 0 is taken for true; an index out of range takes the last.
  std::size_t Choice(const std::byte* at) const {
    if (spec_.is_pred) return *reinterpret_cast<const bool*>(at) ? 0 : 1;
    int32_t index;
    std::memcpy(&index, at, sizeof index);
    const auto last = static_cast<int32_t>(spec_.branches.size()) - 1;
    return static_cast<std::size_t>(index < 0 || index > last ? last : index);
  }
};

struct CallSpec {
  CalledSequence called;
  std::vector<BufferId> operands, results;
  LAZULI_ATTRS(called, operands, results);
};

class CallThunk final : public SpecThunk<CallSpec> {
 public:
  using SpecThunk::SpecThunk;

  absl::Status Execute(const RunBuffers& run) const override {
    return RunCalled(spec_.called, spec_.operands, 0, spec_.results, run);
  }
  std::string Details() const override {
    const ThunkSequence& sequence = *spec_.called.sequence;
    return Str(sequence.thunks.size(), " thunks of ", sequence.name);
  }
};

// Each element of a loop's state begins with its operand's value. It may take over the operand's memory,
// unless another element begins with the same operand. An element that never changes has no buffer but
// the operand's, which is only read.
std::vector<BufferUse> StateUses(const std::vector<BufferId>& operands,
                                 const std::vector<BufferId>& state) {
  std::vector<BufferUse> uses;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const bool shares =
        state[k] != operands[k] && std::count(operands.begin(), operands.end(), operands[k]) == 1;
    const int64_t pair = shares ? static_cast<int64_t>(k) + 1 : 0;
    uses.push_back({.buffer = operands[k], .in_place = pair});
    if (state[k] != operands[k])
      uses.push_back({.buffer = state[k], .write = true, .in_place = pair});
  }
  return uses;
}

}  // namespace

CalledSequence Call(const ThunkSequence& sequence, const NewBuffer& new_buffer) {
  return {&sequence, sequence.frame_bytes > 0 ? new_buffer(sequence.frame_bytes) : -1};
}

std::unique_ptr<Thunk> MakeWhileThunk(const Instruction& loop, const ThunkProgram& program,
                                      CalledSequence condition, CalledSequence body,
                                      std::vector<BufferId> operands,
                                      std::vector<BufferId>& results, const NewBuffer& new_buffer) {
  std::vector<Update> updates = UpdatesOf(program, *body.sequence);
  for (std::size_t k = 0; k < updates.size(); ++k) {
    if (updates[k] == Update::kNone) results[k] = operands[k];
  }
  const std::vector<int64_t> bytes = LeafBytes(loop.shape());
  std::vector<BufferId> alternates;
  for (std::size_t k = 0; k < updates.size(); ++k)
    alternates.push_back(updates[k] == Update::kAlternate ? new_buffer(bytes[k]) : -1);
  std::vector<BufferUse> uses = StateUses(operands, results);
  AddWrites(uses, {alternates, {condition.frame, body.frame}});
  return std::make_unique<WhileThunk>(
      ThunkInfo::Of("while", loop), std::move(uses),
      WhileSpec{.scalar_condition = MatchScalarCondition(*loop.called()[0]),
                .condition = condition,
                .body = body,
                .updates = std::move(updates),
                .bytes = bytes,
                .initial = std::move(operands),
                .state = results,
                .alternates = std::move(alternates)});
}

std::unique_ptr<Thunk> MakeConditionalThunk(const Instruction& conditional,
                                            std::vector<CalledSequence> branches,
                                            std::vector<BufferId> operands,
                                            std::vector<BufferId> results) {
  std::vector<BufferUse> uses = Uses(operands, {results, Frames(branches)});
  ConditionalSpec spec;
  spec.is_pred = conditional.operand(0)->shape().dtype() == DType::kPred;
  std::size_t next = 1;
  for (const CalledSequence& branch : branches) {
    spec.first.push_back(next);
    next += branch.sequence->parameters.size();
  }
  spec.branches = std::move(branches);
  spec.operands = std::move(operands);
  spec.results = std::move(results);
  return std::make_unique<ConditionalThunk>(ThunkInfo::Of("conditional", conditional),
                                            std::move(uses), std::move(spec));
}

std::unique_ptr<Thunk> MakeCallThunk(const Instruction& call, CalledSequence called,
                                     std::vector<BufferId> operands,
                                     std::vector<BufferId> results) {
  std::vector<BufferUse> uses = Uses(operands, {results, {called.frame}});
  return std::make_unique<CallThunk>(ThunkInfo::Of("call", call), std::move(uses),
                                     CallSpec{called, std::move(operands), std::move(results)});
}

ThunkKind WhileThunkKind() { return ThunkKind::Of<WhileThunk>("while"); }
ThunkKind ConditionalThunkKind() { return ThunkKind::Of<ConditionalThunk>("conditional"); }
ThunkKind CallThunkKind() { return ThunkKind::Of<CallThunk>("call"); }

}  // namespace lazuli::backend
