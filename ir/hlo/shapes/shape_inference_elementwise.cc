#include <algorithm>

#include "ir/hlo/shapes/shape_inference_internal.h"
#include "ir/support/wrong_type.h"

namespace lazuli::hlo::internal {
namespace {

absl::Status CheckType(const Inference& in, const Shape& operand) {
  if (operand.IsArray() && Accepts(in.opcode, operand.dtype())) return absl::OkStatus();
  return AsWrongType(in.Error("needs ", AcceptedTypes(in.opcode), " operands, got ", operand));
}

// Elementwise operands have one shape up to layout: HLO broadcasts nothing by itself.
absl::Status CheckEqual(const Inference& in, const Shape& a, const Shape& b) {
  if (a.dtype() != b.dtype()) return in.Error("operands differ in element type: ", a, " and ", b);
  if (!SameDims(a, b)) return in.Error("operands differ in dimensions: ", a, " and ", b);
  return absl::OkStatus();
}

Shape WithDType(const Shape& shape, DType dtype) {
  Shape result = WithoutLayout(shape);
  result.set_dtype(dtype);
  return result;
}

}  // namespace

absl::StatusOr<Shape> InferUnary(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(CheckType(in, in.operand(0)));
  if (in.opcode == Opcode::kIsFinite) return WithDType(in.operand(0), DType::kPred);
  if (in.opcode == Opcode::kReducePrecision) {
    const auto& attrs = in.attrs_as<ReducePrecisionAttrs>();
    if (attrs.exponent_bits < 1 || attrs.mantissa_bits < 0) {
      return in.Error("exponent_bits=", attrs.exponent_bits,
                      ", mantissa_bits=", attrs.mantissa_bits, " is not a floating-point format");
    }
  }
  return WithoutLayout(in.operand(0));
}

absl::StatusOr<Shape> InferComplexParts(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(CheckType(in, in.operand(0)));
  return WithDType(in.operand(0), PartType(in.operand(0).dtype()));
}

absl::StatusOr<Shape> InferBinary(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(CheckType(in, in.operand(0)));
  LAZULI_RETURN_IF_ERROR(CheckEqual(in, in.operand(0), in.operand(1)));
  if (in.opcode == Opcode::kComplex) {
    const DType part = in.operand(0).dtype();
    if (part != DType::kF32 && part != DType::kF64)
      return in.Error("parts are f32 or f64, not ", in.operand(0));
    return WithDType(in.operand(0), part == DType::kF32 ? DType::kC64 : DType::kC128);
  }
  return WithoutLayout(in.operand(0));
}

absl::StatusOr<Shape> InferCompare(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  LAZULI_RETURN_IF_ERROR(CheckEqual(in, in.operand(0), in.operand(1)));
  const auto& attrs = in.attrs_as<CompareAttrs>();
  const DType dtype = in.operand(0).dtype();
  if (IsComplex(dtype) && attrs.direction != ComparisonDirection::kEq &&
      attrs.direction != ComparisonDirection::kNe) {
    return in.Error("complex numbers have no order: ", in.operand(0));
  }
  const bool floats = IsFloat(dtype) || IsComplex(dtype);
  const bool fits =
      attrs.type == ComparisonType::kDefault || (attrs.type == ComparisonType::kFloat && floats) ||
      (attrs.type == ComparisonType::kTotalOrder && IsFloat(dtype)) ||
      (attrs.type == ComparisonType::kSigned && IsSigned(dtype)) ||
      (attrs.type == ComparisonType::kUnsigned && (IsUnsigned(dtype) || dtype == DType::kPred));
  if (!fits) return in.Error("the comparison type does not fit operands of ", in.operand(0));
  return WithDType(in.operand(0), DType::kPred);
}

absl::StatusOr<Shape> InferSelect(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  const Shape& pred = in.operand(0);
  if (pred.dtype() != DType::kPred) return in.Error("the first operand must be pred, not ", pred);
  LAZULI_RETURN_IF_ERROR(CheckEqual(in, in.operand(1), in.operand(2)));
  if (!pred.IsScalar() && !SameDims(pred, in.operand(1))) {
    return in.Error("predicate ", pred, " is neither a scalar nor as large as ", in.operand(1));
  }
  return WithoutLayout(in.operand(1));
}

absl::StatusOr<Shape> InferClamp(const Inference& in) {
  const Shape& x = in.operand(1);
  LAZULI_RETURN_IF_ERROR(CheckType(in, x));
  for (std::size_t i : {0, 2}) {
    const Shape& bound = in.operand(i);
    if (bound.dtype() != x.dtype() || !(bound.IsScalar() || SameDims(bound, x))) {
      return in.Error("bound ", bound, " is neither a scalar of the type of ", x, " nor as large");
    }
  }
  return WithoutLayout(x);
}

absl::StatusOr<Shape> InferConvert(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  LAZULI_RETURN_IF_ERROR(in.DeclaredArray());
  if (!SameDims(in.operand(0), *in.declared)) {
    return in.Error("changes the element type only: ", in.operand(0), " to ", *in.declared);
  }
  if (in.opcode == Opcode::kStochasticConvert) {
    const Shape& random = in.operand(1);
    if (!SameDims(random, in.operand(0)) || !IsUnsigned(random.dtype()) ||
        ByteWidth(random.dtype()) != ByteWidth(in.operand(0).dtype())) {
      return in.Error("random operand ", random, " must be unsigned and as wide as ",
                      in.operand(0));
    }
  }
  return *in.declared;
}

absl::StatusOr<Shape> InferBitcastConvert(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  LAZULI_RETURN_IF_ERROR(in.DeclaredArray());
  const Shape& from = in.operand(0);
  const Shape& to = *in.declared;
  const int from_bits = Row(from.dtype()).bits, to_bits = Row(to.dtype()).bits;
  // The wider side has the dims in common; the narrower one has a minor dimension of their ratio
  // behind.
  const Shape& wide = from_bits >= to_bits ? from : to;
  const Shape& narrow = from_bits >= to_bits ? to : from;
  const int64_t ratio = std::max(from_bits, to_bits) / std::min(from_bits, to_bits);
  const absl::Span<const int64_t> common = ratio == 1 || narrow.rank() == 0
                                               ? narrow.dims()
                                               : narrow.dims().first(narrow.dims().size() - 1);
  const bool fits =
      common == wide.dims() &&
      (ratio == 1 || (narrow.rank() == wide.rank() + 1 && narrow.dim(narrow.rank() - 1) == ratio));
  if (!fits || IsComplex(from.dtype()) != IsComplex(to.dtype())) {
    return in.Error("the bits of ", from, " are not those of ", to);
  }
  return to;
}

}  // namespace lazuli::hlo::internal
