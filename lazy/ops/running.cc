// Running reductions, differences and integrals along a dim.
#include <optional>
#include <string_view>
#include <utility>

#include "ir/support/wrong_type.h"
#include "lazy/ops/functions.h"
#include "lazy/ops/reduce.h"
#include "lazy/ops/shape_ops.h"
#include "lazy/ops/wide.h"

namespace lazuli::lazy {
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

// The last positions of what `wins` over what comes before it, or is NaN; and the elements.
std::pair<Tensor, Tensor> RunningExtremum(std::string_view op, const Tensor& in, int64_t dim,
                                          Tensor (*wins)(const Operand&, const Operand&)) {
  if (IsComplex(in.dtype()))
    ThrowRecordError(op, WrongType("complex numbers have no order: ", in.shape()));
  const Tensor x = WithDim(in);
  const int64_t d = NormalizeDim(op, dim, x.rank());
  Tensor best = Detach(x), at = Positions(x.shape().dims(), d, x.device());
  for (int64_t s = 1; s < x.dim(d); s *= 2) {
    const Tensor early = Before(best, d, s), late = After(best, d, s);
    const Tensor later = LogicalOr(Ne(late, late), LogicalAnd(Eq(early, early), wins(late, early)));
    best = Joined(Narrow(best, d, 0, s), Where(later, late, early), d);
    at = Joined(Narrow(at, d, 0, s), Where(later, After(at, d, s), Before(at, d, s)), d);
  }
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
  const Tensor result = Reshape(products, x.shape().dims());
  return result.impl() == x.impl() ? Clone(result) : result;
}

Tensor Logcumsumexp(const Tensor& in, int64_t dim) {
  if (!IsFloat(in.dtype()))
    ThrowRecordError("logcumsumexp", WrongType("takes floats, not ", in.shape()));
  const Tensor rows = WithDim(in);
  const int64_t d = NormalizeDim("logcumsumexp", dim, rows.rank());
  const Tensor sums = InWide(rows, [&](const Tensor& wide) {
    return Running(wide, d, [](const Tensor& a, const Tensor& b) { return Logaddexp(a, b); });
  });
  const Tensor result = Reshape(sums, in.shape().dims());
  return result.impl() == in.impl() ? Clone(result) : result;
}

std::pair<Tensor, Tensor> Cummax(const Tensor& x, int64_t dim) {
  return RunningExtremum("cummax", x, dim, &Ge);
}
std::pair<Tensor, Tensor> Cummin(const Tensor& x, int64_t dim) {
  return RunningExtremum("cummin", x, dim, &Le);
}

Tensor Diff(const Tensor& x, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) {
  if (x.rank() == 0)
    ThrowRecordError("diff", InvalidArgument("takes a tensor with a dim, not ", x.shape()));
  const int64_t d = NormalizeDim("diff", dim, x.rank());
  if (n < 0) ThrowRecordError("diff", InvalidArgument("n must not be negative, is ", n));
  if (n == 0) return Clone(x);
  Tensor y = x;
  if (prepend.defined()) y = Joined(prepend, y, d);
  if (append.defined()) y = Joined(y, append, d);
  for (int64_t i = 0; i < n && y.dim(d) > 0; ++i) {
    const Tensor after = After(y, d, 1), before = Before(y, d, 1);
    y = x.dtype() == DType::kPred ? LogicalXor(after, before) : after - before;
  }
  return y;
}

namespace {

// The sum of what two neighbours along d are worth.
Tensor SumsOfNeighbours(const Tensor& y, int64_t d) { return After(y, d, 1) + Before(y, d, 1); }

// Between the points x, of rank 1 or that of y.
Tensor Widths(std::string_view op, const Tensor& y, const Tensor& x, int64_t d) {
  if (x.rank() == 1 && y.rank() > 1) {
    if (x.dim(0) != y.dim(d)) {
      ThrowRecordError(op, InvalidArgument("there must be one x value for each sample point: ",
                                           x.shape(), " along dim ", d, " of ", y.shape()));
    }
    Dims dims(static_cast<std::size_t>(y.rank()), 1);
    dims[At(d)] = x.dim(0) - 1;
    return Reshape(Diff(x, 1, -1, Tensor(), Tensor()), dims);
  }
  return Diff(x, 1, d - y.rank(), Tensor(), Tensor());
}

// Of the areas of y that `areas` gives along dim, whose elements may be none.
template <class F>
Tensor Integral(std::string_view op, const Tensor& y, int64_t dim, bool running, F&& areas) {
  const int64_t d = NormalizeDim(op, dim, y.rank());
  const Tensor parts = y.dim(d) == 0 ? Floating(y) : areas(d);
  return running ? Cumsum(parts, d) : Sum(parts, {d});
}
Tensor Integral(std::string_view op, const Tensor& y, const Tensor& x, int64_t dim, bool running) {
  return Integral(op, y, dim, running,
                  [&](int64_t d) { return SumsOfNeighbours(y, d) * Widths(op, y, x, d) / 2.0; });
}
Tensor Integral(std::string_view op, const Tensor& y, double dx, int64_t dim, bool running) {
  return Integral(op, y, dim, running,
                  [&](int64_t d) { return SumsOfNeighbours(Floating(y), d) * (dx / 2); });
}

}  // namespace

Tensor Trapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  return Integral("trapezoid", y, x, dim, false);
}
Tensor Trapezoid(const Tensor& y, double dx, int64_t dim) {
  return Integral("trapezoid", y, dx, dim, false);
}
Tensor CumulativeTrapezoid(const Tensor& y, const Tensor& x, int64_t dim) {
  return Integral("cumulative_trapezoid", y, x, dim, true);
}
Tensor CumulativeTrapezoid(const Tensor& y, double dx, int64_t dim) {
  return Integral("cumulative_trapezoid", y, dx, dim, true);
}

}  // namespace lazuli::lazy
