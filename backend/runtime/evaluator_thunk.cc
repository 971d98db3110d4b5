#include "backend/runtime/evaluator_thunk.h"

#include <cstring>
#include <functional>

#include "ir/evaluator/evaluator.h"
#include "ir/support/metrics.h"
#include "ir/support/status.h"

namespace lazuli::backend {
namespace {

// A literal over the buffers of its leaves, which are taken from `next` on.
Literal Borrow(const Shape& shape, const RunBuffers& run, const BufferId*& next) {
  if (shape.IsTuple()) {
    std::vector<Literal> elements;
    for (const Shape& element : shape.tuple()) elements.push_back(Borrow(element, run, next));
    return Literal::Tuple(std::move(elements));
  }
  if (!shape.IsArray()) return Literal(shape);
  return Literal::Foreign(shape, run.at(*next++), {});
}

void CopyOut(const Literal& value, const RunBuffers& run, const BufferId*& next) {
  if (value.shape().IsTuple()) {
    for (const Literal& element : value.tuple()) CopyOut(element, run, next);
  } else if (value.shape().IsArray() && value.byte_size() > 0) {
    std::memcpy(run.at(*next++), value.raw(), static_cast<std::size_t>(value.byte_size()));
  } else if (value.shape().IsArray()) {
    ++next;
  }
}

struct EvaluatorSpec {
  const hlo::Instruction* instruction = nullptr;
  std::vector<BufferId> operands, results;
  LAZULI_ATTRS(instruction, operands, results);
};

class EvaluatorThunk final : public SpecThunk<EvaluatorSpec> {
 public:
  EvaluatorThunk(ThunkInfo info, std::vector<BufferUse> uses, EvaluatorSpec spec)
      : SpecThunk(std::move(info), std::move(uses), std::move(spec)),
        instruction_(*spec_.instruction),
        has_side_effect_(instruction_.HasSideEffect()) {}

  absl::Status Execute(const RunBuffers& run) const override {
    Add(Counter::kEvaluatorThunks);
    std::vector<Literal> values;
    const BufferId* next = spec_.operands.data();
    for (const hlo::Instruction* operand : instruction_.operands()) {
      values.push_back(Borrow(operand->shape(), run, next));
    }
    std::vector<const Literal*> pointers;
    for (const Literal& value : values) pointers.push_back(&value);
    hlo::HostTransfers* const transfers =
        has_side_effect_ ? &run.device.client->transfers(run.device) : nullptr;
    LAZULI_ASSIGN_OR_RETURN(Literal result,
                            hlo::EvaluateInstruction(instruction_, pointers,
                                                     {.transfers = transfers, .peers = run.peers}));
    next = spec_.results.data();
    CopyOut(result, run, next);
    return absl::OkStatus();
  }

  std::string Details() const override {
    return std::string(hlo::OpcodeText(instruction_.opcode()));
  }

 private:
  const hlo::Instruction& instruction_;
  bool has_side_effect_;
};

}  // namespace

std::unique_ptr<Thunk> MakeEvaluatorThunk(const hlo::Instruction& instruction,
                                          std::vector<BufferId> operands,
                                          std::vector<BufferId> results) {
  std::vector<BufferUse> uses;
  for (BufferId id : operands) uses.push_back({.buffer = id});
  for (BufferId id : results) uses.push_back({.buffer = id, .write = true});
  return std::make_unique<EvaluatorThunk>(
      ThunkInfo::Of("evaluate", instruction), std::move(uses),
      EvaluatorSpec{&instruction, std::move(operands), std::move(results)});
}

ThunkKind EvaluatorThunkKind() { return ThunkKind::Of<EvaluatorThunk>("evaluate"); }

}  // namespace lazuli::backend
