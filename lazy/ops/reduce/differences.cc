// Differences, integrals and slopes along a dim: diff, trapezoid, gradient.
#include <string_view>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/shape/shape_ops.h"

namespace lazuli::lazy {

Tensor Diff(const Tensor& x, int64_t n, int64_t dim, const Tensor& prepend, const Tensor& append) {
  if (x.rank() == 0)
    ThrowRecordError("diff", InvalidArgument("takes a tensor with a dim, not ", x.shape()));
  const int64_t d = NormalizeDim("diff", dim, x.rank());
  if (n < 0) ThrowRecordError("diff", InvalidArgument("n must not be negative, is ", n));
  if (n == 0) return Clone(x);
  Tensor y = x;
  if (prepend.defined()) y = Cat({prepend, y}, d);
  if (append.defined()) y = Cat({y, append}, d);
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

namespace {

struct Slopes {
  Tensor x;
  int64_t dim;
  int64_t edge_order;
};

Tensor SliceAt(const Tensor& x, int64_t dim, int64_t position) {
  return Narrow(x, dim, position < 0 ? x.dim(dim) + position : position, 1);
}

// At points that are h apart.
Tensor EvenSlopes(const Slopes& s, double h) {
  const Tensor inner = (After(s.x, s.dim, 2) - Before(s.x, s.dim, 2)) / (2 * h);
  const auto end = [&](int64_t first, int64_t second, int64_t third, double sign) {
    const Tensor a = SliceAt(s.x, s.dim, first), b = SliceAt(s.x, s.dim, second);
    if (s.edge_order == 1) return (b - a) / (sign * h);
    return (b * 4.0 - a * 3.0 - SliceAt(s.x, s.dim, third)) / (2 * sign * h);
  };
  const Tensor parts[] = {end(0, 1, 2, 1), inner, end(-1, -2, -3, -1)};
  return Cat(parts, s.dim);
}

// At points of these coordinates, by parabolas through three neighbours.
Tensor UnevenSlopes(const Slopes& s, const Tensor& points) {
  Dims column(static_cast<std::size_t>(s.x.rank()), 1);
  const auto stretched = [&](const Tensor& row) {
    column[At(s.dim)] = row.dim(0);
    return Reshape(row, column);
  };
  const Tensor widths = After(points, 0, 1) - Before(points, 0, 1);
  const Tensor left = stretched(Before(widths, 0, 1)), right = stretched(After(widths, 0, 1));
  const Tensor low = Before(s.x, s.dim, 2), high = After(s.x, s.dim, 2);
  const Tensor middle = Narrow(s.x, s.dim, 1, s.x.dim(s.dim) - 2);
  const Tensor inner = high * (left / (right * (left + right))) +
                       middle * ((right - left) / (left * right)) -
                       low * (right / (left * (left + right)));
  const auto end = [&](int64_t first, int64_t second, int64_t third, const Tensor& h,
                       const Tensor& next) {
    const Tensor a = SliceAt(s.x, s.dim, first), b = SliceAt(s.x, s.dim, second);
    if (s.edge_order == 1) return (b - a) / h;
    const Tensor c = SliceAt(s.x, s.dim, third), both = h + next;
    return b * (both / (h * next)) - a * ((h + both) / (h * both)) - c * (h / (next * both));
  };
  const auto width = [&](int64_t i) { return stretched(SliceAt(widths, 0, i)); };
  const bool few = s.edge_order == 1;
  const Tensor first = end(0, 1, 2, width(0), few ? Tensor() : width(1));
  const Tensor last = end(-1, -2, -3, -width(-1), few ? Tensor() : -width(-2));
  const Tensor parts[] = {first, inner, last};
  return Cat(parts, s.dim);
}

Dims GradientDims(const Tensor& x, absl::Span<const int64_t> dim, int64_t edge_order) {
  constexpr char kOp[] = "gradient";
  if (x.dtype() == DType::kU8)
    ThrowRecordError(kOp, WrongType("does not support uint8: ", x.shape()));
  if (edge_order != 1 && edge_order != 2)
    ThrowRecordError(kOp, InvalidArgument("edge_order must be 1 or 2, is ", edge_order));
  Dims dims = NormalizeDims(kOp, dim, x.rank());
  for (std::size_t i = 0; i < dim.size(); ++i)  // in the order that they are given in
    dims[i] = NormalizeDim(kOp, dim[i], x.rank());
  for (const int64_t d : dims) {
    if (x.dim(d) > edge_order) continue;
    ThrowRecordError(kOp,
                     InvalidArgument("expected each dimension size to be at least edge_order+1, "
                                     "dim ",
                                     d, " of ", x.shape(), " is not"));
  }
  return dims;
}

}  // namespace

Tensors Gradient(const Tensor& x, double spacing, absl::Span<const int64_t> dim,
                 int64_t edge_order) {
  const Dims dims = GradientDims(x, dim, edge_order);
  const Tensor in = Floating(x);
  Tensors slopes;
  for (const int64_t d : dims) slopes.push_back(EvenSlopes({in, d, edge_order}, spacing));
  return slopes;
}
Tensors Gradient(const Tensor& x, absl::Span<const Tensor> spacing, absl::Span<const int64_t> dim,
                 int64_t edge_order) {
  constexpr char kOp[] = "gradient";
  const Dims dims = GradientDims(x, dim, edge_order);
  if (spacing.size() != dims.size()) {
    ThrowRecordError(kOp,
                     InvalidArgument("expected spacing to be unspecified, a number or as many as "
                                     "there are dims, ",
                                     dims.size(), ", got ", spacing.size()));
  }
  const Tensor in = Floating(x);
  Tensors slopes;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const Tensor& points = spacing[i];
    if (points.rank() != 1 || points.dim(0) != x.dim(dims[i])) {
      ThrowRecordError(kOp, InvalidArgument("expected coordinates [", x.dim(dims[i]),
                                            "] along dim ", dims[i], ", got ", points.shape()));
    }
    slopes.push_back(UnevenSlopes({in, dims[i], edge_order}, points));
  }
  return slopes;
}

}  // namespace lazuli::lazy
