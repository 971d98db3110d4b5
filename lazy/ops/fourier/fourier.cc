#include "lazy/ops/fourier/fourier.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/support/wrong_type.h"
#include "ir/types/permutation.h"
#include "lazy/ops/core/default_type.h"
#include "lazy/ops/core/dims.h"

namespace lazuli::lazy {
namespace {

using hlo::FftType;
using lowering::Builder;
using lowering::Op;
using lowering::Opcode;

constexpr std::size_t kMostDims = 3;  // of one HLO instruction

// All dims: `last`, in the order given, behind the others.
Dims OrderWithLast(absl::Span<const int64_t> last, int64_t rank) {
  Dims order;
  for (int64_t d = 0; d < rank; ++d) {
    if (std::find(last.begin(), last.end(), d) == last.end()) order.push_back(d);
  }
  order.insert(order.end(), last.begin(), last.end());
  return order;
}

Op Transposed(Builder& b, Op x, const Dims& order) {
  return std::is_sorted(order.begin(), order.end()) ? x : b.Transpose(x, order);
}

// One instruction, along dims of the signal.
Op Transform(Builder& b, Op x, FftType type, absl::Span<const int64_t> dims, const Shape& signal) {
  const Dims order = OrderWithLast(dims, x.rank());
  hlo::FftAttrs attrs{type, {}};
  for (int64_t d : dims) attrs.fft_length.push_back(signal.dim(d));
  const Op y = b.Add(Opcode::kFft, {Transposed(b, x, order)}, std::move(attrs));
  return Transposed(b, y, ir::Inverse(order));
}

// Complex transforms along any number of dims.
Op TransformAll(Builder& b, Op x, FftType type, absl::Span<const int64_t> dims) {
  for (std::size_t i = 0; i < dims.size(); i += kMostDims) {
    const Shape signal = x.shape();  // NOLINT: a copy, for the original moves as more is built
    x = Transform(b, x, type, dims.subspan(i, kMostDims), signal);
  }
  return x;
}

// The dims that are transformed on their own, and those that are together with the last one.
std::pair<absl::Span<const int64_t>, absl::Span<const int64_t>> Parts(const Dims& dims) {
  const std::size_t together = std::min(dims.size(), kMostDims);
  const absl::Span<const int64_t> all(dims);
  return {all.first(dims.size() - together), all.last(together)};
}

double SizeOf(const Shape& signal, absl::Span<const int64_t> dims) {
  double n = 1;
  for (int64_t d : dims) n *= static_cast<double>(signal.dim(d));
  return n;
}

double Factor(FftScale scale, double n) {
  return scale == FftScale::kOne ? 1 : scale == FftScale::kOneByN ? 1 / n : 1 / std::sqrt(n);
}

// HLO's inverse transforms divide by n.
double InverseFactor(FftScale scale, double n) {
  return scale == FftScale::kOneByN ? 1 : scale == FftScale::kOne ? n : std::sqrt(n);
}

// Real and imaginary parts are multiplied one by one: a complex factor would make NaN of infinities.
Op Scaled(Builder& b, Op x, double factor) {
  if (factor == 1) return x;
  if (IsComplex(x.dtype())) {
    return b.Binary(Opcode::kComplex, Scaled(b, b.Unary(Opcode::kReal, x), factor),
                    Scaled(b, b.Unary(Opcode::kImag, x), factor));
  }
  return b.Times(x, b.Full(x.shape(), factor));
}

// x, half of a spectrum of n elements along dim, with some elements doubled: those that the whole
// spectrum has once, which are the first and for even n the last (`ends`), or the others.
Tensor Doubled(const Tensor& x, int64_t dim, int64_t n, bool ends) {
  Dims dims(At(x.rank()), 1);
  dims[At(dim)] = x.dim(dim);
  const Tensor k = Positions(dims, dim, x.device());
  const Tensor inside = LogicalAnd(Gt(k, Constant(0, DType::kS64)),
                                   Lt(k + k, Constant(static_cast<double>(n), DType::kS64)));
  return ends ? Where(inside, x, x + x) : Where(inside, x + x, x);
}

}  // namespace

Op FftC2cOp::Lower(Builder& b, Op x) const {
  if (x.shape().num_elements() == 0) return x;
  const double n = SizeOf(x.shape(), dims);
  const Op y = TransformAll(b, x, forward ? FftType::kFft : FftType::kIfft, dims);
  return Scaled(b, y, forward ? Factor(scale, n) : InverseFactor(scale, n));
}

Tensors FftC2cOp::Vjp(const Saved&, const Tensor& dy) const {
  return {FftC2c(dy, dims, scale, !forward)};
}

Op FftR2cOp::Lower(Builder& b, Op x) const {
  const Shape signal = x.shape();
  const auto [others, last] = Parts(dims);
  if (signal.num_elements() == 0) {
    const DType dtype = signal.dtype() == DType::kF64 ? DType::kC128 : DType::kC64;
    return b.Full(
        Shape(dtype, Resized(signal, dims.back(), hlo::SpectrumSize(signal.dim(dims.back())))), 0);
  }
  const Op y =
      Transform(b, Scaled(b, x, Factor(scale, SizeOf(signal, dims))), FftType::kRfft, last, signal);
  return TransformAll(b, y, FftType::kFft, others);
}

Tensors FftR2cOp::Vjp(const Saved& s, const Tensor& dy) const {
  const int64_t n = s.shape().dim(dims.back());
  return {FftC2r(Doubled(dy, dims.back(), n, /*ends=*/true), dims, scale, n) * 0.5};
}

Op FftC2rOp::Lower(Builder& b, Op x) const {
  const Shape signal(x.dtype(), Resized(x.shape(), dims.back(), last_size));
  if (signal.num_elements() == 0 || x.shape().num_elements() == 0)
    return b.Full(Shape(hlo::PartType(signal.dtype()), signal.dims()), 0);
  const auto [others, last] = Parts(dims);
  const Op y =
      Transform(b, TransformAll(b, x, FftType::kIfft, others), FftType::kIrfft, last, signal);
  return Scaled(b, y, InverseFactor(scale, SizeOf(signal, dims)));
}

Tensors FftC2rOp::Vjp(const Saved&, const Tensor& dy) const {
  return {Doubled(FftR2c(dy, dims, scale), dims.back(), last_size, /*ends=*/false)};
}

Tensor FftC2c(const Tensor& x, absl::Span<const int64_t> dims, FftScale scale, bool forward) {
  if (dims.empty()) return x;
  return Record(FftC2cOp{Dims(dims.begin(), dims.end()), scale, forward}, x);
}
Tensor FftR2c(const Tensor& x, absl::Span<const int64_t> dims, FftScale scale) {
  return Record(FftR2cOp{Dims(dims.begin(), dims.end()), scale}, x);
}
Tensor FftC2r(const Tensor& x, absl::Span<const int64_t> dims, FftScale scale, int64_t last_size) {
  return Record(FftC2rOp{Dims(dims.begin(), dims.end()), scale, last_size}, x);
}

Tensor Transformable(std::string_view op, const Tensor& x, bool complex) {
  const Tensor y = IsFloat(x.dtype()) || IsComplex(x.dtype()) ? x : To(x, DefaultFloat());
  if (IsComplex(y.dtype())) return y;
  if (y.dtype() != DType::kF32 && y.dtype() != DType::kF64) {
    ThrowRecordError(op, WrongType("does not transform ", DTypeText(y.dtype()), ": convert ",
                                   x.shape(), " to f32 or f64"));
  }
  if (!complex) return y;
  return To(y, y.dtype() == DType::kF64 ? DType::kC128 : DType::kC64);
}

}  // namespace lazuli::lazy
