// Random numbers, batch normalisation, device numbers.

#include "ir/hlo/shapes/shape_inference_internal.h"

namespace lazuli::hlo::internal {

absl::StatusOr<Shape> InferRng(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.DeclaredArray());
  for (const Shape* shape : in.operands) {
    if (!shape->IsScalar() || shape->dtype() != in.declared->dtype()) {
      return in.Error("parameter ", *shape, " is not a scalar of the type of ", *in.declared);
    }
  }
  return *in.declared;
}

absl::StatusOr<Shape> InferRngBitGenerator(const Inference& in) {
  const Shape& state = in.operand(0);
  if (state.dtype() != DType::kU64 || state.rank() != 1 || state.dim(0) < 2 || state.dim(0) > 3) {
    return in.Error("the state must be u64[2] or u64[3], not ", state);
  }
  if (in.declared == nullptr) return in.Error("the result's shape must be declared");
  const auto& elements = in.declared->tuple();
  if (elements.size() != 2 || !Compatible(elements[0], state) || !elements[1].IsArray() ||
      !IsIntegral(elements[1].dtype())) {
    return in.Error("the result is (", state, ", bits of integers), not the declared ",
                    *in.declared);
  }
  return *in.declared;
}

absl::StatusOr<Shape> InferRngState(const Inference& in) {
  if (in.declared != nullptr) return *in.declared;
  return Shape(DType::kU64, {2});
}

absl::StatusOr<Shape> InferBatchNorm(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  const Shape& x = in.operand(0);
  const int64_t feature = in.attrs_as<BatchNormAttrs>().feature_index;
  if (!IsFloat(x.dtype())) return in.Error("needs floating-point operands, got ", x);
  if (feature < 0 || feature >= x.rank())
    return in.Error("feature_index=", feature, " is out of range for ", x);
  const Shape per_feature(x.dtype(), {x.dim(feature)});
  const bool grad = in.opcode == Opcode::kBatchNormGrad;
  for (std::size_t i = 1; i < in.operand_count(); ++i) {
    const Shape& wanted = grad && i == 4 ? x : per_feature;
    if (!Compatible(in.operand(i), wanted))
      return in.Error("operand ", i, " is ", in.operand(i), ", not ", wanted);
  }
  if (in.opcode == Opcode::kBatchNormInference) return WithoutLayout(x);
  std::vector<Shape> results(3, per_feature);
  results[0] = WithoutLayout(x);
  return Shape::Tuple(std::move(results));
}

absl::StatusOr<Shape> InferReplicaId(const Inference&) { return Shape(DType::kU32); }

}  // namespace lazuli::hlo::internal
