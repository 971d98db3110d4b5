#include "lazy/ops/statistics.h"

#include <algorithm>

#include "ir/support/wrong_type.h"
#include "lazy/ops/reduce.h"
#include "lazy/ops/wide.h"

namespace lazuli::lazy {
namespace {

using lowering::Opcode;

// What the sum of squares is divided by.
double Divisor(const Shape& x, const Dims& dims, int64_t correction) {
  return std::max(0.0, CountOver(x, dims) - static_cast<double>(correction));
}

lowering::Op Refused(lowering::Builder& b, lowering::Op x) {
  return b.Error(WrongType("takes floats, not ", x.shape()));
}

Dims WithoutOrOne(const Shape& x, const Dims& dims, bool keepdim) {
  Dims kept;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (!std::binary_search(dims.begin(), dims.end(), d))
      kept.push_back(x.dim(d));
    else if (keepdim)
      kept.push_back(1);
  }
  return kept;
}

lowering::Op SumOfSquares(lowering::Builder& b, lowering::Op x, const Dims& dims) {
  return b.Reduce(Opcode::kAdd, b.Times(x, x), dims);
}

lowering::Op Variance(lowering::Builder& b, lowering::Op x, const Dims& dims, int64_t correction) {
  const Shape shape = x.shape();  // NOLINT: a copy, for the original moves as more is built
  Dims kept;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (!std::binary_search(dims.begin(), dims.end(), d)) kept.push_back(d);
  }
  const lowering::Op sum = b.Reduce(Opcode::kAdd, x, dims);
  const lowering::Op mean = b.DividedBy(sum, b.Full(sum.shape(), CountOver(shape, dims)));
  const lowering::Op off = b.Minus(x, b.Broadcast(mean, shape.dims(), kept));
  const lowering::Op squares = SumOfSquares(b, off, dims);
  return b.DividedBy(squares, b.Full(squares.shape(), Divisor(shape, dims, correction)));
}

// The value in place of x reduced over dims.
lowering::Op Reduced(lowering::Builder& b, lowering::Op value, lowering::Op x, const Dims& dims,
                     bool keepdim) {
  return b.Reshape(value, WithoutOrOne(x.shape(), dims, keepdim));
}

// x - mean.
Tensor Centered(const Tensor& x, const Dims& dims) {
  return x.shape().num_elements() == 0 ? x : x - Mean(x, dims, /*keepdim=*/true);
}

// The gradient of a root y of squares of x for x: dy * x / y, but 0 where y is. Its own gradients
// are numbers there, too.
Tensor RootGradient(const Tensor& dy, const Tensor& x, const Tensor& y, const Dims& dims) {
  const Tensor at_zero = Eq(y, Constant(0, y.dtype()));
  const Tensor divisor = Where(at_zero, Constant(1, y.dtype()), y);
  const Tensor scale = Where(at_zero, Constant(0, dy.dtype()), dy);
  return Spread(scale, x.shape(), dims) * (x / Spread(divisor, x.shape(), dims));
}

}  // namespace

lowering::Op VarOp::Lower(lowering::Builder& b, lowering::Op x) const {
  if (!IsFloat(x.dtype())) return Refused(b, x);
  return Reduced(b, Variance(b, x, dims, correction), x, dims, keepdim);
}
Tensors VarOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Shape& x = s.shape();
  return {Spread(dy * (2 / Divisor(x, dims, correction)), x, dims) * Centered(s.x(), dims)};
}

lowering::Op StdOp::Lower(lowering::Builder& b, lowering::Op x) const {
  if (!IsFloat(x.dtype())) return Refused(b, x);
  return Reduced(b, b.Unary(Opcode::kSqrt, Variance(b, x, dims, correction)), x, dims, keepdim);
}
Tensors StdOp::Vjp(const Saved& s, const Tensor& dy) const {
  const double divisor = Divisor(s.shape(), dims, correction);
  return {RootGradient(dy / divisor, Centered(s.x(), dims), s.y(), dims)};
}

lowering::Op NormOp::Lower(lowering::Builder& b, lowering::Op x) const {
  if (!IsFloat(x.dtype())) return Refused(b, x);
  const lowering::Op sum = SumOfSquares(b, x, dims);
  return Reduced(b, b.Unary(Opcode::kSqrt, sum), x, dims, keepdim);
}
Tensors NormOp::Vjp(const Saved& s, const Tensor& dy) const {
  return {RootGradient(dy, s.x(), s.y(), dims)};
}

// --- functions

Tensor Var(const Tensor& x, absl::Span<const int64_t> dims, int64_t correction, bool keepdim) {
  return InWide(Floating(x), [&](const Tensor& wide) {
    return Record(VarOp{NormalizeDims("var", dims, x.rank()), correction, keepdim}, wide);
  });
}
Tensor Std(const Tensor& x, absl::Span<const int64_t> dims, int64_t correction, bool keepdim) {
  return InWide(Floating(x), [&](const Tensor& wide) {
    return Record(StdOp{NormalizeDims("std", dims, x.rank()), correction, keepdim}, wide);
  });
}
Tensor Norm(const Tensor& x, absl::Span<const int64_t> dims, bool keepdim) {
  return InWide(Floating(x), [&](const Tensor& wide) {
    return Record(NormOp{NormalizeDims("norm", dims, x.rank()), keepdim}, wide);
  });
}

}  // namespace lazuli::lazy
