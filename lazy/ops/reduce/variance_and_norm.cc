#include "lazy/ops/reduce/variance_and_norm.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string_view>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/wide.h"
#include "lazy/ops/reduce/reduce.h"

namespace lazuli::lazy {
namespace {

using lowering::Opcode;

// What the sum of squares is divided by.
double Divisor(const Shape& x, const Dims& dims, double correction) {
  return std::max(0.0, CountOver(x, dims) - correction);
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

lowering::Op Variance(lowering::Builder& b, lowering::Op x, const Dims& dims, double correction) {
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

namespace {

void CheckFloats(std::string_view op, const Tensor& x) {
  if (IsFloat(x.dtype()) || IsComplex(x.dtype())) return;
  ThrowRecordError(
      op, WrongType("takes floats or complex numbers, not ", x.shape(), "; convert with to()"));
}

// (sum of x^p)^(1/p) of x that is not negative; where that is 0, so is the gradient.
Tensor PowerNorm(const Tensor& x, double p, const Dims& dims, bool keepdim) {
  if (p == 1) return Sum(x, dims, keepdim);
  const double power_of_zero = p > 0 ? 0 : std::numeric_limits<double>::infinity();
  const auto constant = [](double v, const Tensor& like) { return Constant(v, like.dtype()); };
  const Tensor none = Eq(Detach(x), constant(0, x));
  const Tensor powers =
      Where(none, constant(power_of_zero, x), PowNumber(Where(none, constant(1, x), x), p));
  const Tensor sum = Sum(powers, dims, keepdim);
  const Tensor empty = Eq(Detach(sum), constant(power_of_zero, sum));
  return Where(empty, constant(0, sum), PowNumber(Where(empty, constant(1, sum), sum), 1 / p));
}

}  // namespace

Tensor Var(const Tensor& x, absl::Span<const int64_t> dims, std::optional<double> correction,
           bool keepdim) {
  CheckFloats("var", x);
  if (IsComplex(x.dtype()))
    return Var(Real(x), dims, correction, keepdim) + Var(Imag(x), dims, correction, keepdim);
  return InWide(x, [&](const Tensor& wide) {
    return Record(VarOp{NormalizeDims("var", dims, x.rank()), correction.value_or(1), keepdim},
                  wide);
  });
}
Tensor Std(const Tensor& x, absl::Span<const int64_t> dims, std::optional<double> correction,
           bool keepdim) {
  CheckFloats("std", x);
  if (IsComplex(x.dtype())) return Sqrt(Var(x, dims, correction, keepdim));
  return InWide(x, [&](const Tensor& wide) {
    return Record(StdOp{NormalizeDims("std", dims, x.rank()), correction.value_or(1), keepdim},
                  wide);
  });
}
Tensor Var(const Tensor& x, Unbiased unbiased) {
  return Var(x, {}, unbiased == Unbiased::kTrue ? 1.0 : 0.0, false);
}
Tensor Std(const Tensor& x, Unbiased unbiased) {
  return Std(x, {}, unbiased == Unbiased::kTrue ? 1.0 : 0.0, false);
}

Tensor Norm(const Tensor& in, std::optional<double> p, absl::Span<const int64_t> dims, bool keepdim,
            std::optional<DType> dtype) {
  const Tensor x = dtype ? To(in, *dtype) : in;
  CheckFloats("norm", x);
  const Dims all = NormalizeDims("norm", dims, x.rank());
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const double order = p.value_or(2);
  if (IsComplex(x.dtype())) return Norm(Abs(x), p, dims, keepdim);
  if (order == kInfinity || order == -kInfinity) {
    const auto extremum = order > 0 ? &Amax : &Amin;
    return extremum(Abs(x), all, keepdim);
  }
  return InWide(x, [&](const Tensor& wide) {
    if (order == 2) return Record(NormOp{all, keepdim}, wide);
    if (order == 0) {  // whose gradient is 0
      const Tensor others = To(Ne(Detach(wide), Constant(0, wide.dtype())), wide.dtype());
      return Sum(others + Sign(wide) * 0.0, all, keepdim);
    }
    return PowerNorm(Abs(wide), order, all, keepdim);
  });
}
Tensor Norm(const Tensor& x, std::string_view p, absl::Span<const int64_t> dims, bool keepdim,
            std::optional<DType> dtype) {
  if (p == "nuc") return LinalgMatrixNorm(x, p, dims, keepdim, dtype);
  if (p != "fro")
    ThrowRecordError("norm", InvalidArgument("p must be a number, fro or nuc, is ", p));
  return Norm(x, std::nullopt, dims, keepdim, dtype);
}

Tensor Renorm(const Tensor& x, double p, int64_t dim, double maxnorm) {
  constexpr char kOp[] = "renorm";
  if (!IsFloat(x.dtype()) && !IsComplex(x.dtype()))
    ThrowRecordError(kOp, WrongType("takes floats, not ", x.shape()));
  if (!(p > 0)) ThrowRecordError(kOp, InvalidArgument("non-positive-norm not supported: ", p));
  if (!(maxnorm >= 0))
    ThrowRecordError(kOp, InvalidArgument("expected maxnorm to be >= 0 but got ", maxnorm));
  if (x.rank() < 2)
    ThrowRecordError(kOp, InvalidArgument("takes two dims or more, not ", x.shape()));
  const int64_t d = NormalizeDim(kOp, dim, x.rank());
  Dims others;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i != d) others.push_back(i);
  }
  return InWide(x, [&](const Tensor& wide) {
    const Tensor size = Norm(wide, p, others, /*keepdim=*/true, std::nullopt);
    const Tensor shrunk = maxnorm / (size + 1e-7);
    const Tensor factor =
        Where(Gt(size, Constant(maxnorm, size.dtype())), shrunk, Constant(1, size.dtype()));
    return wide * factor;
  });
}

std::pair<Tensor, Tensor> VarMean(const Tensor& x, absl::Span<const int64_t> dims,
                                  std::optional<double> correction, bool keepdim) {
  return {Var(x, dims, correction, keepdim), Mean(x, dims, keepdim)};
}
std::pair<Tensor, Tensor> StdMean(const Tensor& x, absl::Span<const int64_t> dims,
                                  std::optional<double> correction, bool keepdim) {
  return {Std(x, dims, correction, keepdim), Mean(x, dims, keepdim)};
}

std::pair<Tensor, Tensor> VarMean(const Tensor& x, Unbiased unbiased) {
  return {Var(x, unbiased), Mean(x)};
}
std::pair<Tensor, Tensor> StdMean(const Tensor& x, Unbiased unbiased) {
  return {Std(x, unbiased), Mean(x)};
}

Tensor Normalize(const Tensor& x, double p, int64_t dim, double eps) {
  const int64_t dims[] = {dim};
  const Tensor norm = Norm(x, p, dims, /*keepdim=*/true);
  const Tensor least = Maximum(norm, Constant(eps, norm.dtype()));
  return x / Where(Ge(norm, Constant(eps, norm.dtype())), norm, Detach(least));
}

}  // namespace lazuli::lazy
