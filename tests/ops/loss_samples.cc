// Softmax and losses.
#include <cmath>
#include <limits>

#include "lazy/ops/activation/softmax.h"
#include "lazy/ops/index/one_hot.h"
#include "lazy/ops/loss/binary_cross_entropy.h"
#include "lazy/ops/loss/cross_entropy.h"
#include "lazy/ops/loss/regression.h"
#include "tests/ops/sample.h"

namespace lazuli::lazy::test {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

// log(sum(exp(x))) along `dim` at `index`.
double LogSumExp(const Literal& x, Index index, int64_t dim) {
  double sum = 0;
  for (int64_t k = 0; k < x.shape().dim(dim); ++k) {
    index[static_cast<std::size_t>(dim)] = k;
    sum += std::exp(At(x, index));
  }
  return std::log(sum);
}

template <class T>
Row<T> AddSoftmax(Table& table, double (*f)(double log_probability)) {
  return table.Op<T>()
      .Add({0}, {Random(DType::kF64, {3})})
      .Add({1}, {Random(DType::kF64, {2, 3, 2})})
      .AddEdge({1}, {Random(DType::kF32, {5, 40})})
      .AddEdge({0}, {Random(DType::kF32, {7, 3})})
      .ReferenceTolerance(1e-5, 1e-6)
      .Reference([f](const T& op, const Literals& in) {
        return Build(in[0].shape(),
                     [&](const Index& i) { return f(At(in[0], i) - LogSumExp(in[0], i, op.dim)); });
      });
}

// Sum, mean or each of -log_probability(position) over the targets.
template <class F>
Literal Likelihood(Reduction reduction, const Literals& in, F&& log_probability) {
  const Shape& target = in[1].shape();
  double sum = 0;
  Literal each = Build(Shape(in[0].shape().dtype(), target.dims()), [&](const Index& i) {
    Index at = i;
    at.insert(at.begin() + 1, static_cast<int64_t>(At(in[1], i)));
    const double loss = -log_probability(at);
    sum += loss;
    return loss;
  });
  if (reduction == Reduction::kNone) return each;
  const auto count = static_cast<double>(target.num_elements());
  return ScalarOf(in[0].shape().dtype(), reduction == Reduction::kMean ? sum / count : sum);
}

template <class T>
Row<T> AddLoss(Table& table) {
  Row<T> row = table.Op<T>();
  for (Reduction reduction : {Reduction::kNone, Reduction::kMean, Reduction::kSum}) {
    row.Add({reduction}, {Random(DType::kF64, {2, 3}), Indices({2, 0})});
    row.AddEdge({reduction},
                {Random(DType::kF32, {4, 10}), Literal::FromValues<int32_t>({4}, {0, 9, 3, 3})});
  }
  row.Add({Reduction::kMean},
          {Random(DType::kF64, {2, 3, 2}), Literal::FromValues<int64_t>({2, 2}, {0, 1, 2, 1})});
  row.ReferenceTolerance(1e-5, 1e-6);
  return row;
}

void AddOneHot(Table& table) {
  table.Op<OneHotOp>()
      .Add({1, 4, DType::kF32}, {Indices({3, 0, 7})})
      .Add({0, 2, DType::kS64}, {Literal::FromValues<uint8_t>({2}, {1, 0})})
      .Add({1, 300, DType::kPred}, {Literal::FromValues<uint8_t>({2, 1}, {255, 0})})
      .Add({1, 300, DType::kS64, /*checked=*/true}, {Literal::FromValues<uint8_t>({2}, {255, 0})})
      .Reference([](const OneHotOp& op, const Literals& in) {
        const auto d = static_cast<std::ptrdiff_t>(op.dim);
        Dims dims(in[0].shape().dims().begin(), in[0].shape().dims().end());
        dims.insert(dims.begin() + d, op.classes);
        return Build(Shape(op.dtype, dims), [&](Index index) {
          const auto c = static_cast<double>(index[static_cast<std::size_t>(d)]);
          index.erase(index.begin() + d);
          return At(in[0], index) == c ? 1.0 : 0.0;
        });
      })
      .Error("one_hot: classes must be at least 1, is 0", {Indices({0})},
             [](const Tensors& x) { (void)OneHot(x[0], 0, DType::kF32); })
      .Error("one_hot: takes integers, not f32[2]", {Random(DType::kF32, {2})},
             [](const Tensors& x) { (void)OneHot(x[0], 3, DType::kF32); });
}

Literal Doubles(std::initializer_list<double> values) {
  return Literal::FromValues<double>({static_cast<int64_t>(values.size())}, values);
}

void AddHuber(Table& table) {
  Row<HuberOp> row = table.Op<HuberOp>();
  for (const bool smooth_l1 : {false, true}) {
    row.Add({smooth_l1}, {Doubles({-2.5, 0.3, 4.1, -0.7}), ScalarOf(DType::kF64, 1.5)});
    row.AddEdge({smooth_l1},
                {Floats({6}, {0, 1.5, -1.5, NAN, INFINITY, 3e38f}), ScalarOf(DType::kF32, 1.5)});
  }
  row.Numbers(2)
      .GradientsOf(1)
      .Reference([](const HuberOp& op, const Literals& in) {
        const double delta = At(in[1], {});
        return Build(in[0].shape(), [&](const Index& i) {
          const double d = std::fabs(At(in[0], i));
          const double huber = d <= delta ? d * d / 2 : delta * (d - delta / 2);
          return op.smooth_l1 ? huber / delta : huber;
        });
      })
      .Error("huber_loss: delta must be a number, is f32[2]", {Random(DType::kF32, {2})},
             [](const Tensors& x) { (void)Record(HuberOp{}, x[0], x[0]); });
}

void AddBinaryCrossEntropy(Table& table) {
  table.Op<BceWithLogitsOp>()
      .Add({}, {Doubles({-2.5, 0.3, 4.1, -0.7}), Doubles({0.2, 1, 0, 0.9})})
      .AddEdge({}, {Floats({4}, {-200, 0, 200, 1}), Floats({4}, {1, 0.5, 0, 1})})
      .Reference([](const BceWithLogitsOp&, const Literals& in) {
        return Build(in[0].shape(), [&](const Index& i) {
          const double x = At(in[0], i);
          return std::max(x, 0.0) - x * At(in[1], i) + std::log1p(std::exp(-std::abs(x)));
        });
      })
      .Error("binary_cross_entropy_with_logits: shapes differ: f32[2] and f32[3]",
             {Random(DType::kF32, {2}), Random(DType::kF32, {3})}, [](const Tensors& x) {
               (void)BinaryCrossEntropyWithLogits(x[0], x[1], {}, {}, Reduction::kMean);
             });
  AddHuber(table);
  table.Op<BceOp>()
      .Add({}, {Doubles({0.1, 0.5, 0.75, 0.9}), Doubles({0.2, 0.95, 0.05, 0.9})})
      .AddEdge({}, {Floats({4}, {0, 0, 1, 1}), Floats({4}, {0, 1, 0, 1})})
      .NoSecondGradients()  // the denominator of the first is limited from below
      .Reference([](const BceOp&, const Literals& in) {
        return Build(in[0].shape(), [&](const Index& i) {
          const double x = At(in[0], i), y = At(in[1], i);
          return -(y * std::max(std::log(x), -100.0) + (1 - y) * std::max(std::log1p(-x), -100.0));
        });
      })
      .Error("binary_cross_entropy: dtypes differ: f32[2] and f64[2]; convert one with to()",
             {Random(DType::kF32, {2}), Random(DType::kF64, {2})},
             [](const Tensors& x) { (void)BinaryCrossEntropy(x[0], x[1], {}, Reduction::kMean); });
}

}  // namespace

void AddLossSamples(Table& table) {
  AddSoftmax<SoftmaxOp>(table, [](double log_probability) { return std::exp(log_probability); });
  AddSoftmax<SafeSoftmaxOp>(table, [](double log_probability) {
    return std::isnan(log_probability) ? 0 : std::exp(log_probability);
  }).AddEdge({1}, {Literal::FromValues<double>({3, 2}, {-kInf, -kInf, 1, -kInf, -kInf, 2})});
  AddSoftmax<LogSoftmaxOp>(table, [](double log_probability) { return log_probability; });
  AddLoss<CrossEntropyOp>(table)
      .Reference([](const CrossEntropyOp& op, const Literals& in) {
        return Likelihood(op.reduction, in,
                          [&](const Index& at) { return At(in[0], at) - LogSumExp(in[0], at, 1); });
      })
      .Error("cross_entropy: target must hold class indices (integers), is f32[2]",
             {Random(DType::kF32, {2, 3}), Random(DType::kF32, {2})},
             [](const Tensors& x) { (void)CrossEntropy(x[0], x[1], Reduction::kMean); })
      .Error("cross_entropy: takes [N, C, ...] and target [N, ...], not f32[2,3] and s64[3]",
             {Random(DType::kF32, {2, 3}), Indices({0, 1, 2})},
             [](const Tensors& x) { (void)CrossEntropy(x[0], x[1], Reduction::kMean); })
      .Error("cross_entropy: takes floats, not s32[2,3]",
             {Random(DType::kS32, {2, 3}), Indices({0, 1})},
             [](const Tensors& x) { (void)CrossEntropy(x[0], x[1], Reduction::kMean); });
  AddLoss<NllLossOp>(table)
      .Reference([](const NllLossOp& op, const Literals& in) {
        return Likelihood(op.reduction, in, [&](const Index& at) { return At(in[0], at); });
      })
      .Error("nll_loss: takes [N, C, ...] and target [N, ...], not f32[3] and s64[3]",
             {Random(DType::kF32, {3}), Indices({0, 1, 2})},
             [](const Tensors& x) { (void)NllLoss(x[0], x[1], Reduction::kMean); });
  AddOneHot(table);
  AddBinaryCrossEntropy(table);
}

}  // namespace lazuli::lazy::test
