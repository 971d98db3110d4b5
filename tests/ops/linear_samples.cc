// Matrix products and convolutions. Devices sum products in orders of their own, so they agree
// within a bound.
#include <algorithm>
#include <cmath>
#include <vector>

#include "lazy/ops/convolution/convolution.h"
#include "lazy/ops/linear/attention.h"
#include "lazy/ops/linear/matmul.h"
#include "tests/ops/sample.h"

namespace lazuli::lazy::test {
namespace {

constexpr double kProductTolerance = 1e-4;

void AddMatMul(Table& table) {
  table.Op<MatMulOp>()
      .Add({}, {Random(DType::kF64, {2, 3}), Random(DType::kF64, {3, 2}, 1)})
      .Add({}, {Random(DType::kF64, {2, 1, 2}), Random(DType::kF64, {2, 2, 2}, 1)})
      .Add({}, {Random(DType::kF64, {2, 2}), Random(DType::kF64, {3, 2, 1}, 1)})
      .AddEdge({}, {Random(DType::kF32, {17, 33}), Random(DType::kF32, {33, 19}, 1)})
      .AddEdge({}, {Random(DType::kF32, {2, 3, 4, 5}), Random(DType::kF32, {3, 5, 6}, 1)})
      .AddEdge({}, {Random(DType::kS32, {3, 4}), Random(DType::kS32, {4, 2}, 1)})
      .AddEdge({}, {Random(DType::kF32, {3, 0}), Random(DType::kF32, {0, 2}, 1)})
      .DeviceTolerance(kProductTolerance)
      .ReferenceTolerance(1e-4, 1e-4)
      .Reference([](const MatMulOp& op, const Literals& in) {
        const Shape &x = in[0].shape(), &y = in[1].shape();
        const Shape shape = *op.Infer(x, y);
        const auto from = [](const Index& index, const Shape& operand, int64_t row,
                             int64_t column) {
          Index at(index.end() - operand.rank(), index.end());
          for (std::size_t d = 0; d < at.size(); ++d)
            if (operand.dims()[d] == 1) at[d] = 0;
          at[at.size() - 2] = row;
          at[at.size() - 1] = column;
          return at;
        };
        return Build(shape, [&](const Index& index) {
          double sum = 0;
          for (int64_t k = 0; k < x.dim(x.rank() - 1); ++k)
            sum += At(in[0], from(index, x, index[index.size() - 2], k)) *
                   At(in[1], from(index, y, k, index.back()));
          return sum;
        });
      })
      .Error("matmul: inner dimensions differ: f32[2,3] x f32[2,2]",
             {Random(DType::kF32, {2, 3}), Random(DType::kF32, {2, 2})},
             [](const Tensors& x) { (void)Matmul(x[0], x[1]); })
      .Error("matmul: batch dims do not broadcast: f32[2,2,2] x f32[3,2,2]",
             {Random(DType::kF32, {2, 2, 2}), Random(DType::kF32, {3, 2, 2})},
             [](const Tensors& x) { (void)Matmul(x[0], x[1]); });
}

void AddLinear(Table& table) {
  table.Op<LinearOp>()
      .Add({}, {Random(DType::kF64, {2, 3}), Random(DType::kF64, {4, 3}, 1)})
      .Add({}, {Random(DType::kF64, {2, 2, 3}), Random(DType::kF64, {2, 3}, 1)})
      .Add({}, {Random(DType::kF64, {3}), Random(DType::kF64, {2, 3}, 1)})
      .AddEdge({}, {Random(DType::kF32, {17, 33}), Random(DType::kF32, {19, 33}, 1)})
      .AddEdge({}, {Random(DType::kF32, {3, 0}), Random(DType::kF32, {2, 0}, 1)})
      .DeviceTolerance(kProductTolerance)
      .ReferenceTolerance(1e-4, 1e-4)
      .Reference([](const LinearOp&, const Literals& in) {
        const Shape &x = in[0].shape(), &w = in[1].shape();
        Dims dims(x.dims().begin(), x.dims().end());
        dims.back() = w.dim(0);
        return Build(Shape(x.dtype(), dims), [&](const Index& index) {
          double sum = 0;
          Index at = index;
          for (int64_t k = 0; k < w.dim(1); ++k) {
            at.back() = k;
            sum += At(in[0], at) * At(in[1], {index.back(), k});
          }
          return sum;
        });
      })
      .Error("linear: x f32[2,3] does not fit weight f32[2,2] [out, in]",
             {Random(DType::kF32, {2, 3}), Random(DType::kF32, {2, 2})},
             [](const Tensors& x) { (void)Linear(x[0], x[1], {}); });
}

// Softmax of the scores of each row, its products with the values, and what the row was shifted and
// divided by.
Literals AttentionByRows(const AttentionOp& op, const Literals& in) {
  const Shape &query = in[0].shape(), &value = in[2].shape();
  const int64_t keys = value.dim(1), width = value.dim(2);
  Literals out;
  out.emplace_back(Shape(DType::kF64, {query.dim(0), query.dim(1), width}));
  out.emplace_back(Shape(DType::kF64, {query.dim(0), query.dim(1)}));
  out.emplace_back(Shape(DType::kF64, {query.dim(0), query.dim(1)}));
  ForEachIndex(out[1].shape().dims(), [&](const Index& row) {
    std::vector<double> scores;
    for (int64_t j = 0; j < keys && (!op.causal || j <= row[1]); ++j) {
      double sum = in.size() > 3 ? At(in[3], {row[1], j}) : 0;
      for (int64_t d = 0; d < query.dim(2); ++d)
        sum += op.scale * At(in[0], {row[0], row[1], d}) * At(in[1], {row[0], j, d});
      scores.push_back(sum);
    }
    const double largest = *std::max_element(scores.begin(), scores.end());
    Accumulate(out[1], row, largest);
    for (double& score : scores) Accumulate(out[2], row, score = std::exp(score - largest));
    for (std::size_t j = 0; j < scores.size(); ++j) {
      for (int64_t d = 0; d < width; ++d)
        Accumulate(out[0], {row[0], row[1], d},
                   scores[j] / At(out[2], row) * At(in[2], {row[0], static_cast<int64_t>(j), d}));
    }
  });
  return out;
}

void AddAttention(Table& table) {
  const Literal query = Random(DType::kF64, {2, 2, 2}), key = Random(DType::kF64, {2, 3, 2}, 1),
                value = Random(DType::kF64, {2, 3, 1}, 2), mask = Random(DType::kF64, {2, 3}, 3),
                added = Random(DType::kF64, {2, 2, 3}, 3);
  table.Op<AttentionOp>()
      .Add({false, 0.7}, {query, key, value})
      .Add({true, -1.5}, {query, key, value})
      .DeviceTolerance(kProductTolerance)
      .GradientsOfResults(1)
      .Reference(AttentionByRows);
  table.Op<AttentionOp>()
      .Add({false, 1}, {query, key, value, mask})
      .DeviceTolerance(kProductTolerance)
      .GradientsOf(0b111)
      .GradientsOfResults(1)
      .Reference(AttentionByRows);
  table.Op<AttentionOp>()
      .Add({false, 0.3}, {query, key, value, added})
      .DeviceTolerance(kProductTolerance)
      .GradientsOfResults(1);
  // Queries of 0 fit all keys alike. Largest scores and divisors are given, but have no gradient.
  const auto rows = [](double first, double second) {
    return Build(Shape(DType::kF64, {2, 2}),
                 [=](const Index& index) { return index[1] == 0 ? first : second; });
  };
  const Literal zeros = Build(query.shape(), [](const Index&) { return 0.0; }),
                dresult = Random(DType::kF64, {2, 2, 1}, 4);
  table.Op<AttentionGradientOp>()
      .Add({false, 0.7, 7}, {zeros, key, value, rows(0, 0), rows(3, 3), dresult})
      .Add({true, 0.7, 3}, {zeros, key, value, rows(0, 0), rows(1, 2), dresult})
      .DeviceTolerance(kProductTolerance)
      .GradientsOf(0b100100);
}

// One product of a convolution: positions in the output, the kernel and the input.
struct Tap {
  Index out, kernel, in;
};
// Leaves out those that meet padding.
template <class T>
void ForEachTap(const T& op, const Shape& in, const Shape& kernel, const Shape& out,
                const std::function<void(const Tap&)>& f) {
  const int64_t per_group = kernel.dim(0) / op.groups;
  ForEachIndex(out.dims(), [&](const Index& o) {
    ForEachIndex(kernel.dims().subspan(1), [&](const Index& k) {
      const int64_t y = o[2] * op.stride[0] - op.padding[0] + k[1] * op.dilation[0];
      const int64_t x = o[3] * op.stride[1] - op.padding[1] + k[2] * op.dilation[1];
      if (y < 0 || x < 0 || y >= in.dim(2) || x >= in.dim(3)) return;
      const int64_t channel = o[1] / per_group * kernel.dim(1) + k[0];
      f({o, {o[1], k[0], k[1], k[2]}, {o[0], channel, y, x}});
    });
  });
}

struct ConvCase {
  Pair stride, padding, dilation;
  int64_t groups;
  std::initializer_list<int64_t> x, weight;
  DType dtype;
};
const ConvCase kConvCases[] = {
    {{1, 1}, {0, 0}, {1, 1}, 1, {1, 1, 3, 3}, {1, 1, 2, 2}, DType::kF64},
    {{2, 1}, {1, 0}, {1, 1}, 1, {1, 2, 3, 2}, {2, 2, 2, 1}, DType::kF64},
    {{1, 1}, {1, 1}, {2, 1}, 1, {1, 1, 3, 3}, {1, 1, 2, 2}, DType::kF64},
    {{1, 1}, {0, 0}, {1, 1}, 2, {1, 4, 2, 2}, {2, 2, 2, 2}, DType::kF64},
    {{2, 2}, {1, 1}, {1, 1}, 1, {2, 3, 9, 8}, {4, 3, 3, 3}, DType::kF32},
    {{1, 2}, {2, 1}, {1, 2}, 2, {2, 4, 7, 9}, {6, 2, 3, 3}, DType::kF32},
};

Shape ConvShape(const ConvCase& c) {
  return *Conv2dOp{c.stride, c.padding, c.dilation, c.groups}.Infer(Shape(c.dtype, c.x),
                                                                    Shape(c.dtype, c.weight));
}

void AddConv2d(Table& table) {
  Row<Conv2dOp> row = table.Op<Conv2dOp>();
  for (const ConvCase& c : kConvCases) {
    const Conv2dOp op{c.stride, c.padding, c.dilation, c.groups};
    const Literals in{Random(c.dtype, c.x), Random(c.dtype, c.weight, 1)};
    c.dtype == DType::kF64 ? row.Add(op, in) : row.AddEdge(op, in);
  }
  row.DeviceTolerance(kProductTolerance)
      .ReferenceTolerance(1e-4, 1e-4)
      .Reference([](const Conv2dOp& op, const Literals& in) {
        Literal out(*op.Infer(in[0].shape(), in[1].shape()));
        ForEachTap(op, in[0].shape(), in[1].shape(), out.shape(), [&](const Tap& t) {
          Accumulate(out, t.out, At(in[0], t.in) * At(in[1], t.kernel));
        });
        return out;
      })
      .Error(
          "conv2d: takes x [N, C, H, W] and weight [O, C / groups, kh, kw], not f32[2,3] and "
          "f32[2,3]",
          {Random(DType::kF32, {2, 3})}, [](const Tensors& x) { (void)Conv2d(x[0], x[0], {}, {}); })
      .Error("conv2d: channels of x f32[1,3,4,4] do not fit weight f32[2,2,3,3] with groups 1",
             {Random(DType::kF32, {1, 3, 4, 4}), Random(DType::kF32, {2, 2, 3, 3})},
             [](const Tensors& x) { (void)Conv2d(x[0], x[1], {}, {}); })
      .Error("conv2d: kernel of weight f32[2,3,5,5] is larger than the padded input f32[1,3,4,4]",
             {Random(DType::kF32, {1, 3, 4, 4}), Random(DType::kF32, {2, 3, 5, 5})},
             [](const Tensors& x) { (void)Conv2d(x[0], x[1], {}, {}); })
      .Error(
          "conv2d: stride 0x1, padding 0x0, dilation 1x1: strides and dilations start at 1, "
          "padding at 0, and none is above 1099511627776",
          {Random(DType::kF32, {1, 3, 4, 4}), Random(DType::kF32, {2, 3, 3, 3})},
          [](const Tensors& x) { (void)Conv2d(x[0], x[1], {}, {.stride = {0, 1}}); });
}

void AddConv2dInputGrad(Table& table) {
  Row<Conv2dInputGradOp> of_input = table.Op<Conv2dInputGradOp>();
  for (const ConvCase& c : kConvCases) {
    const Shape x(c.dtype, c.x);
    const Conv2dInputGradOp op{c.stride, c.padding, c.dilation, c.groups, {x.dim(2), x.dim(3)}};
    const Literals in{RandomLiteral(ConvShape(c), 2), Random(c.dtype, c.weight, 1)};
    c.dtype == DType::kF64 ? of_input.Add(op, in) : of_input.AddEdge(op, in);
  }
  of_input.DeviceTolerance(kProductTolerance)
      .ReferenceTolerance(1e-4, 1e-4)
      .Reference([](const Conv2dInputGradOp& op, const Literals& in) {
        const Shape &dy = in[0].shape(), &w = in[1].shape();
        Literal dx(Shape(dy.dtype(), {dy.dim(0), w.dim(1) * op.groups, op.size[0], op.size[1]}));
        ForEachTap(op, dx.shape(), w, dy, [&](const Tap& t) {
          Accumulate(dx, t.in, At(in[0], t.out) * At(in[1], t.kernel));
        });
        return dx;
      });
}

void AddConv2dWeightGrad(Table& table) {
  Row<Conv2dWeightGradOp> of_weight = table.Op<Conv2dWeightGradOp>();
  for (const ConvCase& c : kConvCases) {
    const Shape w(c.dtype, c.weight);
    const Conv2dWeightGradOp op{c.stride, c.padding, c.dilation, c.groups, {w.dim(2), w.dim(3)}};
    const Literals in{Random(c.dtype, c.x), RandomLiteral(ConvShape(c), 2)};
    c.dtype == DType::kF64 ? of_weight.Add(op, in) : of_weight.AddEdge(op, in);
  }
  of_weight.DeviceTolerance(kProductTolerance)
      .ReferenceTolerance(1e-4, 1e-4)
      .Reference([](const Conv2dWeightGradOp& op, const Literals& in) {
        const Shape &x = in[0].shape(), &dy = in[1].shape();
        Literal dw(Shape(x.dtype(), {dy.dim(1), x.dim(1) / op.groups, op.size[0], op.size[1]}));
        ForEachTap(op, x, dw.shape(), dy, [&](const Tap& t) {
          Accumulate(dw, t.kernel, At(in[0], t.in) * At(in[1], t.out));
        });
        return dw;
      });
}

}  // namespace

void AddLinearSamples(Table& table) {
  AddMatMul(table);
  AddLinear(table);
  AddAttention(table);
  AddConv2d(table);
  AddConv2dInputGrad(table);
  AddConv2dWeightGrad(table);
}

}  // namespace lazuli::lazy::test
