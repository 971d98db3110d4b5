// Reductions along dimensions.
#include <cmath>

#include "lazy/ops/core/gradient_ops.h"
#include "lazy/ops/reduce/reduce.h"
#include "lazy/ops/reduce/variance_and_norm.h"
#include "tests/ops/sample.h"

namespace lazuli::lazy::test {
namespace {

template <class T>
Shape ReducedShape(const T& op, const Shape& x, DType dtype) {
  Dims dims;
  for (int64_t d = 0; d < x.rank(); ++d) {
    const bool reduced = std::find(op.dims.begin(), op.dims.end(), d) != op.dims.end();
    if (!reduced)
      dims.push_back(x.dim(d));
    else if (op.keepdim)
      dims.push_back(1);
  }
  return Shape(dtype, dims);
}

// The elements folded in row-major order.
template <class T>
Literal Fold(const T& op, const Literal& x, double init, double (*f)(double, double)) {
  const bool widen = !IsFloat(x.shape().dtype()) && (f(2, 3) == 5 || f(2, 3) == 6);
  const Shape shape = ReducedShape(op, x.shape(), widen ? DType::kS64 : x.shape().dtype());
  std::vector<double> folded(static_cast<std::size_t>(shape.num_elements()), init);
  ForEachIndex(x.shape().dims(), [&](const Index& index) {
    Index to;
    for (int64_t d = 0; d < x.shape().rank(); ++d) {
      const bool reduced = std::find(op.dims.begin(), op.dims.end(), d) != op.dims.end();
      if (!reduced)
        to.push_back(index[static_cast<std::size_t>(d)]);
      else if (op.keepdim)
        to.push_back(0);
    }
    double& slot = folded[static_cast<std::size_t>(Offset(shape.dims(), to))];
    slot = f(slot, At(x, index));
  });
  return Build(shape, [&](const Index& i) {
    return folded[static_cast<std::size_t>(Offset(shape.dims(), i))];
  });
}

// Over no dim, one, several, all; with and without keeping them.
template <class T>
Row<T> AddFolds(Table& table, double init, double (*f)(double, double)) {
  Row<T> row = table.Op<T>();
  for (bool keepdim : {false, true}) {
    row.Add({{0}, keepdim}, {Random(DType::kF64, {2, 3})});
    row.Add({{0, 2}, keepdim}, {Random(DType::kF64, {2, 2, 2})});
    row.AddEdge({{1}, keepdim}, {Random(DType::kF32, {5, 37}, 1)});
    row.AddEdge({{0}, keepdim}, {Random(DType::kF32, {33, 18}, 2)});
    row.AddEdge({{0, 1, 2}, keepdim}, {Random(DType::kF32, {3, 4, 5}, 3)});
  }
  row.AddEdge({{1}, false}, {Random(DType::kS32, {3, 4})})
      .AddEdge({{0}, false},
               {Floats({4, 3}, {NAN, 1, INFINITY, 2, -INFINITY, -0.0f, 3, 4, 0, -1, 5, 6})})
      .ReferenceTolerance(1e-5, 1e-5)
      .Reference([init, f](const T& op, const Literals& in) { return Fold(op, in[0], init, f); });
  return row;
}

double Larger(double x, double y) { return std::isnan(x) || y <= x ? x : y; }
double Smaller(double x, double y) { return std::isnan(x) || y >= x ? x : y; }

// Along one dim: position of the first largest element; NaN is larger than all.
int64_t FirstLargest(const Literal& x, Index at, int64_t dim) {
  int64_t best = 0;
  const auto d = static_cast<std::size_t>(dim);
  for (int64_t k = 1; k < x.shape().dim(dim); ++k) {
    at[d] = best;
    const double largest = At(x, at);
    at[d] = k;
    const double here = At(x, at);
    if (here > largest || (std::isnan(here) && !std::isnan(largest))) best = k;
  }
  return best;
}

template <class T>
Shape AlongShape(const T& op, const Shape& x, DType dtype) {
  struct {
    Dims dims;
    bool keepdim;
  } reduce{{op.dim}, op.keepdim};
  return ReducedShape(reduce, x, dtype);
}

template <class T>
Index FullIndex(const T& op, Index index) {
  const auto at = index.begin() + static_cast<std::ptrdiff_t>(op.dim);
  if (op.keepdim)
    *at = 0;
  else
    index.insert(at, 0);
  return index;
}

template <class T>
Literal Positions(const T& op, const Literal& x) {
  return Build(AlongShape(op, x.shape(), DType::kS64), [&](const Index& i) {
    return static_cast<double>(FirstLargest(x, FullIndex(op, i), op.dim));
  });
}

template <class T>
Row<T> AddAlong(Table& table) {
  Row<T> row = table.Op<T>();
  for (bool keepdim : {false, true}) {
    row.Add({0, keepdim}, {Random(DType::kF64, {4, 3})});
    row.AddEdge({1, keepdim}, {Random(DType::kF32, {3, 40, 2})});
  }
  row.AddEdge({1, false}, {Floats({2, 4}, {1, 5, 5, 2, NAN, 7, NAN, INFINITY})});
  row.AddEdge({0, false}, {Random(DType::kS32, {5})});
  return row;
}

// Root of the sum of (x - mean)^2 / divisor, or without the root, or without the mean and divisor.
template <class T>
Literal Spread(const T& op, const Literal& x) {
  constexpr bool kCentered = !std::is_same_v<T, NormOp>;
  const auto add = [](double a, double b) { return a + b; };
  const Literal wide = x.Converted(DType::kF64);
  T kept = op;
  kept.keepdim = true;
  const Literal sum = Fold(kept, wide, 0, add);
  const auto count = static_cast<double>(x.shape().num_elements()) /
                     static_cast<double>(sum.shape().num_elements());
  const Literal squares = Fold(op,
                               Build(wide.shape(),
                                     [&](const Index& i) {
                                       Index at = i;
                                       for (int64_t d : op.dims)
                                         at[static_cast<std::size_t>(d)] = 0;
                                       const double off =
                                           At(wide, i) - (kCentered ? At(sum, at) / count : 0);
                                       return off * off;
                                     }),
                               0, add);
  return Build(Shape(x.shape().dtype(), squares.shape().dims()), [&](const Index& i) {
    double y = At(squares, i);
    if constexpr (kCentered) y /= std::max(0.0, count - static_cast<double>(op.correction));
    return std::is_same_v<T, VarOp> ? y : std::sqrt(y);
  });
}

template <class T>
void AddStatistic(Table& table, std::string_view name) {
  Row<T> row = table.Op<T>();
  const auto with = [](Dims dims, double correction, bool keepdim) {
    if constexpr (std::is_same_v<T, NormOp>)
      return T{std::move(dims), keepdim};
    else
      return T{std::move(dims), correction, keepdim};
  };
  for (const bool keepdim : {false, true}) {
    row.Add(with({0}, 1, keepdim), {Random(DType::kF64, {4, 3})});
    row.Add(with({0, 2}, 0, keepdim), {Random(DType::kF64, {2, 2, 2})});
    row.AddEdge(with({1}, 2, keepdim), {Random(DType::kF32, {5, 37}, 1)});
  }
  row.AddEdge(with({1}, 1, false), {Floats({4, 2}, {NAN, 1, INFINITY, 2, -INFINITY, 0, 3, 3})})
      .AddEdge(with({1}, 1, false), {Random(DType::kF32, {3, 1})})
      .ReferenceTolerance(1e-5, 1e-5)
      .Reference([](const T& op, const Literals& in) { return Spread(op, in[0]); })
      .Error(Str(name, ": takes floats, not s32[3]"), {Random(DType::kS32, {3})},
             [with](const Tensors& x) { (void)Record(with({0}, 1, false), x[0]); });
}

}  // namespace

void AddReduceSamples(Table& table) {
  AddStatistic<VarOp>(table, "var");
  AddStatistic<StdOp>(table, "std");
  AddStatistic<NormOp>(table, "norm");
  AddFolds<SumOp>(table, 0, [](double x, double y) { return x + y; })
      .AddEdge({{1}, false}, {Random(DType::kPred, {2, 5})})
      .AddEdge({{1}, false}, {Random(DType::kF32, {2, 0})})
      .Error("sum: dim 2 is out of range for rank 2", {Random(DType::kF32, {2, 3})},
             [](const Tensors& x) { (void)Sum(x[0], {2}); })
      .Error("sum: a dim is named twice in (0, -2)", {Random(DType::kF32, {2, 3})},
             [](const Tensors& x) { (void)Sum(x[0], {0, -2}); });
  AddFolds<ProdOp>(table, 1, [](double x, double y) { return x * y; })
      .Error("prod: dim -3 is out of range for rank 2", {Random(DType::kF32, {2, 3})},
             [](const Tensors& x) { (void)Prod(x[0], {-3}); });
  AddFolds<AmaxOp>(table, -INFINITY, Larger)
      .Error("amax: dim 1 of f32[2,0] is empty and has no extremum", {Random(DType::kF32, {2, 0})},
             [](const Tensors& x) { (void)Amax(x[0], {1}); });
  AddFolds<AminOp>(table, INFINITY, Smaller)
      .Error("amin: dim 0 of f32[0] is empty and has no extremum", {Random(DType::kF32, {0})},
             [](const Tensors& x) { (void)Amin(x[0]); });
  table.Op<SharedGradientOp>()
      .AddEdge({}, {Floats({3}, {1, 2, 2}), ScalarOf(DType::kF32, 2)})
      .AddEdge({}, {Floats({2, 2}, {1, NAN, 2, NAN}), ScalarOf(DType::kF32, NAN)})
      .GradientsOf(1)
      .Reference([](const SharedGradientOp&, const Literals& in) { return in[1]; });
  AddAlong<MaxAlongOp>(table)
      .Reference([](const MaxAlongOp& op, const Literals& in) {
        const Literal positions = Positions(op, in[0]);
        return Literals{Build(AlongShape(op, in[0].shape(), in[0].shape().dtype()),
                              [&](const Index& i) {
                                Index at = FullIndex(op, i);
                                at[static_cast<std::size_t>(op.dim)] =
                                    static_cast<int64_t>(At(positions, i));
                                return At(in[0], at);
                              }),
                        positions};
      })
      .Error("max: dim 2 is out of range for rank 2", {Random(DType::kF32, {2, 3})},
             [](const Tensors& x) { (void)Max(x[0], 2, false); });
  AddAlong<ArgMaxOp>(table)
      .Reference([](const ArgMaxOp& op, const Literals& in) { return Positions(op, in[0]); })
      .Error("argmax: dim 1 of f32[2,0] is empty and has no extremum",
             {Random(DType::kF32, {2, 0})}, [](const Tensors& x) { (void)Argmax(x[0], 1, false); });
}

}  // namespace lazuli::lazy::test
