// One loop for all elementwise opcodes.

#include "ir/evaluator/internal.h"
#include "ir/evaluator/kernels.h"
#include "ir/evaluator/strided.h"

namespace lazuli::hlo {

absl::StatusOr<Literal> EvaluateElementwise(const Instruction& instruction, Operands operands) {
  const Kernel kernel = FindKernel(instruction);
  if (kernel == nullptr) {
    return Unimplemented(OpcodeText(instruction.opcode()), " does not take ",
                         operands.empty() ? Shape() : operands[0]->shape());
  }
  const int64_t count = instruction.shape().num_elements();
  const std::byte* addresses[3];
  std::size_t next = 0;
  // The predicate of a select and the bounds of a clamp may be scalars.
  std::vector<Literal> expanded;
  expanded.reserve(operands.size());
  for (const Literal* operand : operands) {
    if (operand->shape().rank() < instruction.shape().rank()) {
      const DType dtype = operand->shape().dtype();
      expanded.push_back(Literal::Uninitialized(Shape(dtype, instruction.shape().dims())));
      Fill(ByteWidth(dtype), operand->raw(), count, expanded.back().mutable_raw());
      operand = &expanded.back();
    }
    addresses[next++] = operand->raw();
  }
  Literal result = Literal::Uninitialized(instruction.shape());
  kernel(instruction, addresses, result.mutable_raw(), count);
  return result;
}

}  // namespace lazuli::hlo
