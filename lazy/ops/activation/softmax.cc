#include "lazy/ops/activation/softmax.h"

#include <limits>

#include "lazy/ops/core/wide.h"
#include "lazy/ops/reduce/reduce.h"

namespace lazuli::lazy {
namespace {

using hlo::ComparisonDirection;
using lowering::Opcode;

lowering::Op Shifted(lowering::Builder& b, lowering::Op x, int64_t dim) {
  return b.Minus(x, SpreadAlong(b, b.Reduce(Opcode::kMaximum, x, {dim}), x.shape(), dim));
}

}  // namespace

lowering::Op LogSoftmaxAlong(lowering::Builder& b, lowering::Op x, int64_t dim) {
  const lowering::Op shifted = Shifted(b, Wide(x), dim);
  const lowering::Op sum = b.Reduce(Opcode::kAdd, b.Unary(Opcode::kExponential, shifted), {dim});
  return b.Minus(shifted, SpreadAlong(b, b.Unary(Opcode::kLog, sum), x.shape(), dim));
}

namespace {

Tensor SoftmaxGradient(const Tensor& result, const Tensor& dy, int64_t dim) {
  const Tensor y = Wide(result), g = Wide(dy);
  return To(y * (g - Sum(g * y, {dim}, /*keepdim=*/true)), dy.dtype());
}

}  // namespace

lowering::Op SoftmaxOp::Lower(lowering::Builder& b, lowering::Op x) const {
  const lowering::Op e = b.Unary(Opcode::kExponential, Shifted(b, Wide(x), dim));
  const lowering::Op sum = b.Reduce(Opcode::kAdd, e, {dim});
  return b.Convert(b.DividedBy(e, SpreadAlong(b, sum, x.shape(), dim)), x.dtype());
}
Tensors SoftmaxOp::Vjp(const Saved& s, const Tensor& dy) const {
  return {SoftmaxGradient(s.y(), dy, dim)};
}

lowering::Op SafeSoftmaxOp::Lower(lowering::Builder& b, lowering::Op x) const {
  const lowering::Op wide = Wide(x);
  const lowering::Op largest = b.Reduce(Opcode::kMaximum, wide, {dim});
  const lowering::Op some =
      b.Compare(ComparisonDirection::kNe, largest,
                b.Full(largest.shape(), -std::numeric_limits<double>::infinity()));
  const lowering::Op shift = b.Select(some, largest, b.ZerosLike(largest));
  const lowering::Op e =
      b.Unary(Opcode::kExponential, b.Minus(wide, SpreadAlong(b, shift, x.shape(), dim)));
  const lowering::Op sum = b.Reduce(Opcode::kAdd, e, {dim});
  const lowering::Op divisor = b.Select(some, sum, b.Full(sum.shape(), 1));
  return b.Convert(b.DividedBy(e, SpreadAlong(b, divisor, x.shape(), dim)), x.dtype());
}
Tensors SafeSoftmaxOp::Vjp(const Saved& s, const Tensor& dy) const {
  return {SoftmaxGradient(s.y(), dy, dim)};
}

lowering::Op LogSoftmaxOp::Lower(lowering::Builder& b, lowering::Op x) const {
  return b.Convert(LogSoftmaxAlong(b, x, dim), x.dtype());
}
Tensors LogSoftmaxOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor g = Wide(dy);
  return {To(g - Exp(Wide(s.y())) * Sum(g, {dim}, /*keepdim=*/true), dy.dtype())};
}

Tensor Softmax(const Tensor& in, int64_t dim, std::optional<DType> dtype) {
  const Tensor x = dtype ? To(in, *dtype) : in;
  if (x.rank() == 0) return Reshape(Softmax(Reshape(x, {1}), dim), {});
  return Record(SoftmaxOp{NormalizeDim("softmax", dim, x.rank())}, x);
}
Tensor SafeSoftmax(const Tensor& x, int64_t dim) {
  return Record(SafeSoftmaxOp{NormalizeDim("softmax", dim, x.rank())}, x);
}
Tensor LogSoftmax(const Tensor& in, int64_t dim, std::optional<DType> dtype) {
  const Tensor x = dtype ? To(in, *dtype) : in;
  if (x.rank() == 0) return Reshape(LogSoftmax(Reshape(x, {1}), dim), {});
  return Record(LogSoftmaxOp{NormalizeDim("log_softmax", dim, x.rank())}, x);
}
Tensor Softmin(const Tensor& x, int64_t dim, std::optional<DType> dtype) {
  return Softmax(-x, dim, dtype);
}

}  // namespace lazuli::lazy
