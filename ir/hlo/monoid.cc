#include "ir/hlo/monoid.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace lazuli::hlo {
namespace {

constexpr bool IsMonoid(Opcode opcode) {
  return opcode == Opcode::kAdd || opcode == Opcode::kMultiply || opcode == Opcode::kMaximum ||
         opcode == Opcode::kMinimum || opcode == Opcode::kAnd || opcode == Opcode::kOr ||
         opcode == Opcode::kXor;
}

// Bits of the least (or greatest) value of an integer type or pred, in the low bytes of a word.
int64_t ExtremeInteger(DType dtype, bool greatest) {
  const int bits = dtype == DType::kPred ? 1 : Row(dtype).bits;
  if (!IsSigned(dtype)) return greatest ? static_cast<int64_t>(~uint64_t{0} >> (64 - bits)) : 0;
  const int64_t max = static_cast<int64_t>((uint64_t{1} << (bits - 1)) - 1);
  return greatest ? max : -max - 1;
}

// The infinity; of a type that has none, which are all of a byte, the finite value next to it.
Literal ExtremeFloat(DType dtype, bool greatest) {
  const double sign = greatest ? 1 : -1;
  const double inf = std::numeric_limits<double>::infinity();
  Literal extreme = Literal::Full(Shape(dtype), sign * inf);
  if (extreme.AsDouble(0) == sign * inf || ByteWidth(dtype) > 1) return extreme;
  double best = -inf;
  for (int bits = 0; bits < 1 << Row(dtype).bits; ++bits) {
    Literal candidate{Shape(dtype)};
    *candidate.mutable_raw() = static_cast<std::byte>(bits);
    const double value = sign * candidate.AsDouble(0);
    if (!std::isfinite(value) || value <= best) continue;
    best = value;
    extreme = std::move(candidate);
  }
  return extreme;
}

Literal Extreme(DType dtype, bool greatest) {
  if (IsFloat(dtype)) return ExtremeFloat(dtype, greatest);
  Literal result{Shape(dtype)};
  const int64_t value = ExtremeInteger(dtype, greatest);
  std::memcpy(result.mutable_raw(), &value, static_cast<std::size_t>(ByteWidth(dtype)));
  return result;
}

Literal AllOnes(DType dtype) {
  Literal result{Shape(dtype)};
  const int64_t value = IsSigned(dtype) ? -1 : ExtremeInteger(dtype, /*greatest=*/true);
  std::memcpy(result.mutable_raw(), &value, static_cast<std::size_t>(ByteWidth(dtype)));
  return result;
}

}  // namespace

std::optional<Opcode> MonoidOf(const Computation& reducer) {
  const Instruction* root = reducer.root();
  if (root == nullptr || !IsMonoid(root->opcode()) || reducer.parameters().size() != 2)
    return std::nullopt;
  const Instruction* a = reducer.parameters()[0];
  const Instruction* b = reducer.parameters()[1];
  const bool straight = root->operand(0) == a && root->operand(1) == b;
  const bool swapped = root->operand(0) == b && root->operand(1) == a;
  if (!straight && !swapped) return std::nullopt;
  if (!a->shape().IsScalar() || !b->shape().IsScalar()) return std::nullopt;
  return root->opcode();
}

Literal IdentityOf(Opcode monoid, DType dtype) {
  switch (monoid) {
    case Opcode::kMultiply:
      return Literal::Full(Shape(dtype), 1);
    case Opcode::kMaximum:
      return Extreme(dtype, /*greatest=*/false);
    case Opcode::kMinimum:
      return Extreme(dtype, /*greatest=*/true);
    case Opcode::kAnd:
      return AllOnes(dtype);
    default:
      LAZULI_CHECK(IsMonoid(monoid), OpcodeText(monoid), " is not a monoid");
      return Literal(Shape(dtype));
  }
}

DType AccumulationType(DType dtype) {
  return IsFloat(dtype) && ByteWidth(dtype) < 4 ? DType::kF32 : dtype;
}

}  // namespace lazuli::hlo
