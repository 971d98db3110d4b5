#include "lowering/passes/match.h"

#include <cmath>
#include <cstring>

namespace lazuli::lowering {
namespace {

constexpr int64_t kMaxSearched = 64;

bool AllElementsEqual(const Literal& literal) {
  const int64_t count = literal.shape().num_elements();
  if (count == 1) return true;
  if (count == 0 || count > kMaxSearched) return false;
  // Every byte equals the one an element before it.
  const auto width = static_cast<std::size_t>(ByteWidth(literal.shape().dtype()));
  const auto size = static_cast<std::size_t>(count) * width;
  return std::memcmp(literal.raw(), literal.raw() + width, size - width) == 0;
}

}  // namespace

const hlo::Instruction* SplatConstant(const hlo::Instruction* i) {
  if (i->opcode() == hlo::Opcode::kBroadcast) {
    i = i->operand(0);
    return i->IsConstant() && i->shape().IsScalar() ? i : nullptr;
  }
  return i->IsConstant() && i->shape().IsArray() && AllElementsEqual(i->literal()) ? i : nullptr;
}

bool IsSplatOf(const hlo::Instruction* i, double value) {
  const hlo::Instruction* constant = SplatConstant(i);
  if (constant == nullptr || IsComplex(constant->shape().dtype())) return false;
  const double element = constant->literal().AsDouble(0);
  return element == value && std::signbit(element) == std::signbit(value);
}

}  // namespace lazuli::lowering
