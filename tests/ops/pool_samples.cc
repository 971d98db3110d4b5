#include <functional>
#include <vector>

#include "lazy/ops/pool/pool.h"
#include "tests/ops/sample.h"

namespace lazuli::lazy::test {
namespace {

struct PoolCase {
  Pair kernel, stride, padding, overhang;
  std::initializer_list<int64_t> x;
  DType dtype;
};
const PoolCase kPoolCases[] = {
    {{2, 2}, {2, 2}, {0, 0}, {0, 0}, {1, 1, 4, 4}, DType::kF64},
    {{2, 3}, {1, 2}, {1, 1}, {0, 0}, {1, 2, 3, 4}, DType::kF64},
    {{3, 3}, {2, 2}, {1, 1}, {0, 0}, {2, 3, 9, 8}, DType::kF32},
    {{2, 2}, {2, 2}, {0, 0}, {0, 0}, {2, 16, 6, 6}, DType::kF32},
    {{2, 3}, {2, 2}, {0, 1}, {1, 1}, {1, 2, 3, 4}, DType::kF64},
    {{3, 3}, {2, 2}, {1, 1}, {0, 1}, {2, 16, 7, 8}, DType::kF32},
};

template <class T>
Shape PooledShape(const T& op, const Shape& x) {
  Dims dims{x.dim(0), x.dim(1)};
  for (std::size_t d = 0; d < 2; ++d)
    dims.push_back(
        (x.dims()[d + 2] + 2 * op.padding[d] + op.overhang[d] - op.kernel[d]) / op.stride[d] + 1);
  return Shape(x.dtype(), dims);
}

// Input positions that each window of a pooling covers, by position of the output.
template <class T>
void ForEachCovered(const T& op, const Shape& in, const Shape& out,
                    const std::function<void(const Index& from, const Index& to)>& f) {
  ForEachIndex(out.dims(), [&](const Index& o) {
    for (int64_t ky = 0; ky < op.kernel[0]; ++ky) {
      for (int64_t kx = 0; kx < op.kernel[1]; ++kx) {
        const Index at{o[0], o[1], o[2] * op.stride[0] - op.padding[0] + ky,
                       o[3] * op.stride[1] - op.padding[1] + kx};
        if (at[2] < 0 || at[3] < 0 || at[2] >= in.dim(2) || at[3] >= in.dim(3)) continue;
        f(at, o);
      }
    }
  });
}

// Input positions of the first maximum of each window, by position of the output.
template <class T>
std::vector<Index> Winners(const T& op, const Literal& x) {
  const Shape out = PooledShape(op, x.shape());
  std::vector<Index> winners(static_cast<std::size_t>(out.num_elements()));
  ForEachCovered(op, x.shape(), out, [&](const Index& from, const Index& to) {
    Index& best = winners[static_cast<std::size_t>(Offset(out.dims(), to))];
    if (best.empty() || At(x, from) > At(x, best)) best = from;
  });
  return winners;
}

void AddMaxPool(Table& table) {
  Row<MaxPool2dOp> pool = table.Op<MaxPool2dOp>();
  for (const PoolCase& c : kPoolCases) {
    const MaxPool2dOp op{c.kernel, c.stride, c.padding, c.overhang};
    c.dtype == DType::kF64 ? pool.Add(op, {Random(c.dtype, c.x)})
                           : pool.AddEdge(op, {Random(c.dtype, c.x)});
  }
  pool.Reference([](const MaxPool2dOp& op, const Literals& in) {
        const std::vector<Index> winners = Winners(op, in[0]);
        std::size_t n = 0;
        return Build(PooledShape(op, in[0].shape()),
                     [&](const Index&) { return At(in[0], winners[n++]); });
      })
      .Error("max_pool2d: takes x [N, C, H, W], not f32[2,3]", {Random(DType::kF32, {2, 3})},
             [](const Tensors& x) { (void)MaxPool2d(x[0], {2, 2}, {}, {0, 0}, {1, 1}); })
      .Error("max_pool2d: kernel 5x5 is larger than the padded input f32[1,1,4,4]",
             {Random(DType::kF32, {1, 1, 4, 4})},
             [](const Tensors& x) { (void)MaxPool2d(x[0], {5, 5}, {}, {0, 0}, {1, 1}); });
}

void AddMaxPoolGrad(Table& table) {
  Row<MaxPool2dGradOp> gradient = table.Op<MaxPool2dGradOp>();
  for (const PoolCase& c : kPoolCases) {
    const MaxPool2dGradOp op{c.kernel, c.stride, c.padding, c.overhang};
    const Literals in{Random(c.dtype, c.x), RandomLiteral(PooledShape(op, Shape(c.dtype, c.x)), 1)};
    c.dtype == DType::kF64 ? gradient.Add(op, in) : gradient.AddEdge(op, in);
  }
  gradient.ReferenceTolerance(1e-6, 1e-6)
      .Reference([](const MaxPool2dGradOp& op, const Literals& in) {
        Literal dx(in[0].shape());
        int64_t n = 0;
        for (const Index& winner : Winners(op, in[0])) Accumulate(dx, winner, in[1].AsDouble(n++));
        return dx;
      });
}

void AddMaxPoolPick(Table& table) {
  Row<MaxPool2dPickOp> pick = table.Op<MaxPool2dPickOp>();
  for (const PoolCase& c : kPoolCases) {
    const MaxPool2dPickOp op{c.kernel, c.stride, c.padding, c.overhang};
    const Literals in{Random(c.dtype, c.x), Random(c.dtype, c.x, 1)};
    c.dtype == DType::kF64 ? pick.Add(op, in) : pick.AddEdge(op, in);
  }
  pick.Reference([](const MaxPool2dPickOp& op, const Literals& in) {
    const std::vector<Index> winners = Winners(op, in[0]);
    std::size_t n = 0;
    return Build(PooledShape(op, in[0].shape()),
                 [&](const Index&) { return At(in[1], winners[n++]); });
  });
}

void AddAvgPool(Table& table) {
  Row<AvgPool2dOp> pool = table.Op<AvgPool2dOp>();
  Row<AvgPool2dGradOp> gradient = table.Op<AvgPool2dGradOp>();
  for (const PoolCase& c : kPoolCases) {
    const AvgPool2dOp op{c.kernel, c.stride, c.padding, c.overhang};
    const Shape x(c.dtype, c.x);
    const AvgPool2dGradOp back{c.kernel, c.stride, c.padding, c.overhang, {x.dim(2), x.dim(3)}};
    const Literal dy = RandomLiteral(PooledShape(op, x), 1);
    c.dtype == DType::kF64 ? pool.Add(op, {Random(c.dtype, c.x)})
                           : pool.AddEdge(op, {Random(c.dtype, c.x)});
    c.dtype == DType::kF64 ? gradient.Add(back, {dy}) : gradient.AddEdge(back, {dy});
  }
  pool.Reference([](const AvgPool2dOp& op, const Literals& in) {
        Literal y(PooledShape(op, in[0].shape()));
        const auto size = static_cast<double>(op.kernel[0] * op.kernel[1]);
        ForEachCovered(op, in[0].shape(), y.shape(), [&](const Index& from, const Index& to) {
          Accumulate(y, to, At(in[0], from) / size);
        });
        return y;
      })
      .ReferenceTolerance(1e-5, 1e-5)
      .Error("adaptive_avg_pool2d: takes x [N, C, H, W] and a size from 1 on, not f32[1,4] and 1x0",
             {Random(DType::kF32, {1, 4})},
             [](const Tensors& x) { (void)AdaptiveAvgPool2d(x[0], {1, 0}); });
  gradient.ReferenceTolerance(1e-5, 1e-5)
      .Reference([](const AvgPool2dGradOp& op, const Literals& in) {
        const Shape& dy = in[0].shape();
        Literal dx(Shape(dy.dtype(), {dy.dim(0), dy.dim(1), op.size[0], op.size[1]}));
        const auto size = static_cast<double>(op.kernel[0] * op.kernel[1]);
        ForEachCovered(op, dx.shape(), dy, [&](const Index& from, const Index& to) {
          Accumulate(dx, from, At(in[0], to) / size);
        });
        return dx;
      });
}

}  // namespace

void AddPoolSamples(Table& table) {
  AddMaxPool(table);
  AddMaxPoolGrad(table);
  AddMaxPoolPick(table);
  AddAvgPool(table);
}

}  // namespace lazuli::lazy::test
