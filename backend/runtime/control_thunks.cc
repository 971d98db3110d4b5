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
  WhileThunk(const Instruction& loop, CalledSequence condition, CalledSequence body,
             std::vector<Update> updates, std::vector<BufferId> initial,
             std::vector<BufferId> state, std::vector<BufferId> alternates)
      : Thunk(ThunkInfo::Of("while", loop),
              Uses(initial, {state, alternates, {condition.frame, body.frame}})),
        scalar_condition_(MatchScalarCondition(*loop.called()[0])),
        condition_(condition),
        body_(body),
        updates_(std::move(updates)),
        bytes_(LeafBytes(loop.shape())),
        initial_(std::move(initial)),
        state_(std::move(state)),
        alternates_(std::move(alternates)) {}

  absl::Status Execute(const RunBuffers& run) const override;
  std::string Details() const override {
    return Str(scalar_condition_ ? std::size_t{0} : condition_.sequence->thunks.size(), " + ",
               body_.sequence->thunks.size(), " thunks an iteration of ", body_.sequence->name);
  }

 private:
  // Where the state lies now, and where what changes is written next.
  struct LoopState {
    std::vector<std::byte*> now, next;
  };
  void SetBuffers(const LoopState& state, const RunBuffers& run) const {
    for (std::size_t k = 0; k < updates_.size(); ++k) {
      run.data[condition_.sequence->parameters[k]] = state.now[k];
      run.data[body_.sequence->parameters[k]] = state.now[k];
      if (updates_[k] != Update::kNone) run.data[body_.sequence->outputs[k].buffer] = state.next[k];
    }
  }

  std::optional<ScalarCondition> scalar_condition_;
  CalledSequence condition_, body_;
  std::vector<Update> updates_;
  std::vector<int64_t> bytes_;
  std::vector<BufferId> initial_, state_, alternates_;
};

absl::Status WhileThunk::Execute(const RunBuffers& run) const {
  LoopState state;
  bool alternates = false;
  for (std::size_t k = 0; k < state_.size(); ++k) {
    state.now.push_back(run.at(state_[k]));
    state.next.push_back(updates_[k] == Update::kAlternate ? run.at(alternates_[k]) : state.now[k]);
    alternates |= updates_[k] == Update::kAlternate;
    Copy(run.at(initial_[k]), state.now[k], bytes_[k]);
  }
  SetFrame(condition_, run);
  SetFrame(body_, run);
  bool goes_on = false;
  run.data[condition_.sequence->outputs[0].buffer] = reinterpret_cast<std::byte*>(&goes_on);
  SetBuffers(state, run);
  while (true) {
    if (scalar_condition_) {
      goes_on = scalar_condition_->Holds(state.now);
    } else {
      LAZULI_RETURN_IF_ERROR(RunThunks(*condition_.sequence, run));
    }
    if (!goes_on) break;
    LAZULI_RETURN_IF_ERROR(RunThunks(*body_.sequence, run));
    if (!alternates) continue;
    std::swap(state.now, state.next);
    SetBuffers(state, run);
  }
  for (std::size_t k = 0; k < state_.size(); ++k) Copy(state.now[k], run.at(state_[k]), bytes_[k]);
  return absl::OkStatus();
}

std::vector<BufferId> Frames(const std::vector<CalledSequence>& called) {
  std::vector<BufferId> frames;
  for (const CalledSequence& sequence : called) frames.push_back(sequence.frame);
  return frames;
}

class ConditionalThunk final : public Thunk {
 public:
  // operands: the choice, then the leaves of each branch's argument.
  ConditionalThunk(const Instruction& conditional, std::vector<CalledSequence> branches,
                   std::vector<BufferId> operands, std::vector<BufferId> results)
      : Thunk(ThunkInfo::Of("conditional", conditional),
              Uses(operands, {results, Frames(branches)})),
        is_pred_(conditional.operand(0)->shape().dtype() == DType::kPred),
        branches_(std::move(branches)),
        operands_(std::move(operands)),
        results_(std::move(results)) {
    std::size_t next = 1;
    for (const CalledSequence& branch : branches_) {
      first_.push_back(next);
      next += branch.sequence->parameters.size();
    }
  }

  absl::Status Execute(const RunBuffers& run) const override {
    const std::size_t b = Choice(run.at(operands_[0]));
    return RunCalled(branches_[b], operands_, first_[b], results_, run);
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
  std::vector<CalledSequence> branches_;
  std::vector<std::size_t> first_;  // of a branch's arguments among the operands
  std::vector<BufferId> operands_, results_;
};

class CallThunk final : public Thunk {
 public:
  CallThunk(const Instruction& call, CalledSequence called, std::vector<BufferId> operands,
            std::vector<BufferId> results)
      : Thunk(ThunkInfo::Of("call", call), Uses(operands, {results, {called.frame}})),
        called_(called),
        operands_(std::move(operands)),
        results_(std::move(results)) {}

  absl::Status Execute(const RunBuffers& run) const override {
    return RunCalled(called_, operands_, 0, results_, run);
  }
  std::string Details() const override {
    return Str(called_.sequence->thunks.size(), " thunks of ", called_.sequence->name);
  }

 private:
  CalledSequence called_;
  std::vector<BufferId> operands_, results_;
};

}  // namespace

CalledSequence Call(const ThunkSequence& sequence, const NewBuffer& new_buffer) {
  return {&sequence, sequence.frame_bytes > 0 ? new_buffer(sequence.frame_bytes) : -1};
}

std::unique_ptr<Thunk> MakeWhileThunk(const Instruction& loop, const ThunkProgram& program,
                                      CalledSequence condition, CalledSequence body,
                                      std::vector<BufferId> operands, std::vector<BufferId> results,
                                      const NewBuffer& new_buffer) {
  std::vector<Update> updates = UpdatesOf(program, *body.sequence);
  const std::vector<int64_t> bytes = LeafBytes(loop.shape());
  std::vector<BufferId> alternates;
  for (std::size_t k = 0; k < updates.size(); ++k)
    alternates.push_back(updates[k] == Update::kAlternate ? new_buffer(bytes[k]) : -1);
  return std::make_unique<WhileThunk>(loop, condition, body, std::move(updates),
                                      std::move(operands), std::move(results),
                                      std::move(alternates));
}

std::unique_ptr<Thunk> MakeConditionalThunk(const Instruction& conditional,
                                            std::vector<CalledSequence> branches,
                                            std::vector<BufferId> operands,
                                            std::vector<BufferId> results) {
  return std::make_unique<ConditionalThunk>(conditional, std::move(branches), std::move(operands),
                                            std::move(results));
}

std::unique_ptr<Thunk> MakeCallThunk(const Instruction& call, CalledSequence called,
                                     std::vector<BufferId> operands,
                                     std::vector<BufferId> results) {
  return std::make_unique<CallThunk>(call, called, std::move(operands), std::move(results));
}

}  // namespace lazuli::backend
