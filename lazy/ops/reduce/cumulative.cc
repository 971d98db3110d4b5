#include "lazy/ops/reduce/cumulative.h"

#include <optional>
#include <string_view>
#include <utility>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/wide.h"
#include "lazy/ops/shape/shape_ops.h"

namespace lazuli::lazy {
namespace {

using hlo::ComparisonDirection;
using lowering::Opcode;

}  // namespace

lowering::Op CumSumOp::Lower(lowering::Builder& b, lowering::Op x) const {
  const DType dtype = x.dtype();
  const bool floating = IsFloat(dtype) || IsComplex(dtype);
  const lowering::Op wide = floating ? Wide(x) : b.Convert(x, DType::kS64);
  const int64_t n = x.shape().dim(dim);
  if (n == 0) return floating ? x : wide;
  hlo::Window window(static_cast<std::size_t>(x.rank()));
  window[At(dim)] = {.size = n, .pad_low = n - 1};
  return b.Convert(b.ReduceWindow(Opcode::kAdd, wide, std::move(window)),
                   floating ? dtype : DType::kS64);
}

Tensors CumSumOp::Vjp(const Saved&, const Tensor& dy) const {
  return {Flip(Cumsum(Flip(dy, {dim}), dim), {dim})};
}

// An element that is the extremum so far is equal to it, as are later ones that are; the largest
// position of such elements is the last.
lowering::Op CumulativeArgOp::Lower(lowering::Builder& b, lowering::Op in) const {
  const lowering::Op x = in.dtype() == DType::kPred ? b.Convert(in, DType::kU8) : in;
  const lowering::Op at = b.Iota(Shape(DType::kS64, x.shape().dims()), dim);
  const int64_t n = x.shape().dim(dim);
  if (x.shape().num_elements() == 0) return at;
  hlo::Window window(static_cast<std::size_t>(x.rank()));
  window[At(dim)] = {.size = n, .pad_low = n - 1};
  const lowering::Op best =
      b.ReduceWindow(largest ? Opcode::kMaximum : Opcode::kMinimum, x, window);
  const lowering::Op is_best = b.Binary(Opcode::kOr, b.Compare(ComparisonDirection::kEq, x, best),
                                        b.Compare(ComparisonDirection::kNe, x, x));
  return b.ReduceWindow(Opcode::kMaximum, b.Select(is_best, at, b.ZerosLike(at)), window);
}

Tensor Cumsum(const Tensor& x, int64_t dim, std::optional<DType> dtype) {
  return AlongDim(dtype ? To(x, *dtype) : x, [&](const Tensor& in) {
    const Tensor sums = Record(CumSumOp{NormalizeDim("cumsum", dim, in.rank())}, in);
    return dtype ? To(sums, *dtype) : sums;
  });
}

namespace {

Tensor Joined(const Tensor& x, const Tensor& y, int64_t dim) {
  const Tensor pieces[] = {x, y};
  return Cat(pieces, dim);
}

// f of each two prefixes that meet, the earlier one first, by doubling: log2(n) steps, each of which
// has a gradient of its own.
template <class F>
Tensor Running(const Tensor& x, int64_t dim, F&& f) {
  Tensor y = x;
  for (int64_t s = 1; s < x.dim(dim); s *= 2)
    y = Joined(Narrow(y, dim, 0, s), f(Before(y, dim, s), After(y, dim, s)), dim);
  return y;
}

// The elements, and their positions.
std::pair<Tensor, Tensor> CumulativeExtremum(std::string_view op, const Tensor& in, int64_t dim,
                                             bool largest) {
  if (IsComplex(in.dtype()))
    ThrowRecordError(op, WrongType("complex numbers have no order: ", in.shape()));
  const Tensor x = WithDim(in);
  const int64_t d = NormalizeDim(op, dim, x.rank());
  const Tensor at = Record(CumulativeArgOp{.dim = d, .largest = largest}, Detach(x));
  return LikeDims(in, {Gather(x, d, at), at});
}

}  // namespace

Tensor Cumprod(const Tensor& x, int64_t dim, std::optional<DType> dtype) {
  const bool floating = IsFloat(x.dtype()) || IsComplex(x.dtype());
  const Tensor in = To(x, dtype ? *dtype : floating ? x.dtype() : DType::kS64);
  const Tensor rows = WithDim(in);
  const int64_t d = NormalizeDim("cumprod", dim, rows.rank());
  const Tensor products = InWide(rows, [&](const Tensor& wide) {
    return Running(wide, d, [](const Tensor& a, const Tensor& b) { return a * b; });
  });
  const Tensor result = To(Reshape(products, x.shape().dims()), in.dtype());
  return result.impl() == x.impl() ? Clone(result) : result;
}

Tensor Logcumsumexp(const Tensor& in, int64_t dim) {
  if (!IsFloat(in.dtype()) && !IsComplex(in.dtype()))
    ThrowRecordError("logcumsumexp",
                     WrongType("takes floats or complex numbers, not ", in.shape()));
  const Tensor rows = WithDim(in);
  const int64_t d = NormalizeDim("logcumsumexp", dim, rows.rank());
  const Tensor sums = InWide(rows, [&](const Tensor& wide) {
    return Running(wide, d, [](const Tensor& a, const Tensor& b) { return Logaddexp(a, b); });
  });
  const Tensor result = Reshape(sums, in.shape().dims());
  return result.impl() == in.impl() ? Clone(result) : result;
}

std::pair<Tensor, Tensor> Cummax(const Tensor& x, int64_t dim) {
  return CumulativeExtremum("cummax", x, dim, true);
}
std::pair<Tensor, Tensor> Cummin(const Tensor& x, int64_t dim) {
  return CumulativeExtremum("cummin", x, dim, false);
}

}  // namespace lazuli::lazy
