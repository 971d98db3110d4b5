// Normalisation.
#include <cmath>

#include "lazy/ops/normalization/normalization.h"
#include "tests/ops/sample.h"

namespace lazuli::lazy::test {
namespace {

// {(x - mean) / sqrt(variance + eps), mean, variance}, with the elements that share statistics told
// by `group`: the index of their mean.
Literals Standardized(const Literal& x, const Dims& group_dims, double eps,
                      const std::function<Index(const Index&)>& group) {
  const DType dtype = x.shape().dtype();
  Literal sum(Shape(DType::kF64, group_dims)), squares(Shape(DType::kF64, group_dims));
  const double count = static_cast<double>(x.shape().num_elements()) /
                       static_cast<double>(sum.shape().num_elements());
  const auto add = [](Literal& to, const Index& at, double v) {
    const int64_t offset = Offset(to.shape().dims(), at);
    to.SetFromDouble(offset, to.AsDouble(offset) + v);
  };
  ForEachIndex(x.shape().dims(), [&](const Index& i) { add(sum, group(i), At(x, i) / count); });
  ForEachIndex(x.shape().dims(), [&](const Index& i) {
    add(squares, group(i), std::pow(At(x, i) - At(sum, group(i)), 2) / count);
  });
  Literals results;
  results.push_back(Build(x.shape(), [&](const Index& i) {
    return (At(x, i) - At(sum, group(i))) / std::sqrt(At(squares, group(i)) + eps);
  }));
  results.push_back(sum.Converted(dtype));
  results.push_back(squares.Converted(dtype));
  return results;
}

}  // namespace

void AddNormSamples(Table& table) {
  table.Op<LayerNormOp>()
      .Add({1, 0.1}, {Random(DType::kF64, {2, 3})})
      .Add({0, 0.1}, {Random(DType::kF64, {4})})
      .Add({1, 0.1}, {Random(DType::kF64, {2, 2, 2})})
      .AddEdge({2, 1e-5}, {Random(DType::kF32, {3, 4, 65})})
      .ReferenceTolerance(1e-4, 1e-5)
      .Reference([](const LayerNormOp& op, const Literals& in) {
        const auto axis = static_cast<std::ptrdiff_t>(op.axis);
        const auto dims = in[0].shape().dims();
        return Standardized(in[0], Dims(dims.begin(), dims.begin() + axis), op.eps,
                            [axis](const Index& i) { return Index(i.begin(), i.begin() + axis); });
      })
      .Error("layer_norm: takes floats, not s32[2,3]", {Random(DType::kS32, {2, 3})},
             [](const Tensors& x) { (void)LayerNorm(x[0], 1, 1e-5); });
  table.Op<BatchNormOp>()
      .Add({0.1}, {Random(DType::kF64, {3, 2})})
      .Add({0.1}, {Random(DType::kF64, {2, 2, 2, 1})})
      .AddEdge({1e-5}, {Random(DType::kF32, {4, 6, 5, 3})})
      .ReferenceTolerance(1e-4, 1e-5)
      .Reference([](const BatchNormOp& op, const Literals& in) {
        return Standardized(in[0], {in[0].shape().dim(1)}, op.eps,
                            [](const Index& i) { return Index{i[1]}; });
      })
      .Error("batch_norm: takes x [N, C, ...], not f32[3]", {Random(DType::kF32, {3})},
             [](const Tensors& x) { (void)BatchNorm(x[0], 1e-5); })
      .Error("group_norm: 2 groups do not divide the channels (dim 1) of f32[1,3]",
             {Random(DType::kF32, {1, 3})},
             [](const Tensors& x) { (void)GroupNorm(x[0], 2, 1e-5); });
}

}  // namespace lazuli::lazy::test
