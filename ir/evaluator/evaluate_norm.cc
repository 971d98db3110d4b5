// Batch normalisation, in f64 and rounded once at the end. Statistics are over all dimensions but
// the feature's; the variance is the biased one.

#include <cmath>

#include "ir/evaluator/internal.h"

namespace lazuli::hlo {
namespace {

// Calls f(position, feature) for every element of an array.
template <class F>
void ForEachElement(const Shape& shape, int64_t feature_index, F&& f) {
  const Dims strides = ElementStrides(shape.dims());
  const int64_t stride = strides[static_cast<std::size_t>(feature_index)];
  const int64_t features = shape.dim(feature_index);
  for (int64_t i = 0; i < shape.num_elements(); ++i)
    f(static_cast<std::size_t>(i), static_cast<std::size_t>(i / stride % features));
}

std::vector<double> Values(const Literal& literal) {
  const Literal wide = literal.Converted(DType::kF64);
  return {wide.data<double>().begin(), wide.data<double>().end()};
}

Literal Made(const Shape& shape, const std::vector<double>& values) {
  return Literal::FromValues<double>(shape.dims(), values).Converted(shape.dtype());
}

struct Normalization {
  const Shape& shape;
  int64_t feature_index;
  double epsilon;
  std::vector<double> x;
  std::size_t features() const { return static_cast<std::size_t>(shape.dim(feature_index)); }
  double per_feature() const {
    return static_cast<double>(shape.num_elements()) / static_cast<double>(features());
  }
};

// Sums of f(i, c) by feature c.
template <class F>
std::vector<double> Sums(const Normalization& p, F&& f) {
  std::vector<double> sums(p.features(), 0.0);
  ForEachElement(p.shape, p.feature_index,
                 [&](std::size_t i, std::size_t c) { sums[c] += f(i, c); });
  return sums;
}

std::vector<double> Normalised(const Normalization& p, const std::vector<double>& scale,
                               const std::vector<double>& offset, const std::vector<double>& mean,
                               const std::vector<double>& variance) {
  std::vector<double> y(p.x.size());
  ForEachElement(p.shape, p.feature_index, [&](std::size_t i, std::size_t c) {
    y[i] = (p.x[i] - mean[c]) / std::sqrt(variance[c] + p.epsilon) * scale[c] + offset[c];
  });
  return y;
}

Literal Training(const Instruction& instruction, const Normalization& p, Operands operands) {
  std::vector<double> mean = Sums(p, [&](std::size_t i, std::size_t) { return p.x[i]; });
  for (double& m : mean) m /= p.per_feature();
  std::vector<double> variance = Sums(
      p, [&](std::size_t i, std::size_t c) { return (p.x[i] - mean[c]) * (p.x[i] - mean[c]); });
  for (double& v : variance) v /= p.per_feature();
  const auto& shapes = instruction.shape().tuple();
  return Literal::Tuple(
      {Made(shapes[0], Normalised(p, Values(*operands[1]), Values(*operands[2]), mean, variance)),
       Made(shapes[1], mean), Made(shapes[2], variance)});
}

// Operands: x, scale, mean, variance, gradient of the output.
Literal Gradient(const Instruction& instruction, const Normalization& p, Operands operands) {
  const std::vector<double> scale = Values(*operands[1]), mean = Values(*operands[2]);
  const std::vector<double> variance = Values(*operands[3]), g = Values(*operands[4]);
  const std::vector<double> offset_grad = Sums(p, [&](std::size_t i, std::size_t) { return g[i]; });
  const std::vector<double> products =
      Sums(p, [&](std::size_t i, std::size_t c) { return g[i] * (p.x[i] - mean[c]); });
  std::vector<double> scale_grad = products, x_grad(p.x.size());
  for (std::size_t c = 0; c < p.features(); ++c)
    scale_grad[c] /= std::sqrt(variance[c] + p.epsilon);
  ForEachElement(p.shape, p.feature_index, [&](std::size_t i, std::size_t c) {
    const double centred = p.x[i] - mean[c];
    const double correction = offset_grad[c] / p.per_feature() +
                              centred * products[c] / p.per_feature() / (variance[c] + p.epsilon);
    x_grad[i] = scale[c] / std::sqrt(variance[c] + p.epsilon) * (g[i] - correction);
  });
  const auto& shapes = instruction.shape().tuple();
  return Literal::Tuple(
      {Made(shapes[0], x_grad), Made(shapes[1], scale_grad), Made(shapes[2], offset_grad)});
}

}  // namespace

absl::StatusOr<Literal> EvaluateBatchNorm(const Instruction& instruction, Operands operands) {
  const auto& attrs = instruction.attrs_as<BatchNormAttrs>();
  const Normalization p{operands[0]->shape(), attrs.feature_index,
                        static_cast<double>(attrs.epsilon), Values(*operands[0])};
  switch (instruction.opcode()) {
    case Opcode::kBatchNormTraining:
      return Training(instruction, p, operands);
    case Opcode::kBatchNormGrad:
      return Gradient(instruction, p, operands);
    default:
      return Made(instruction.shape(), Normalised(p, Values(*operands[1]), Values(*operands[2]),
                                                  Values(*operands[3]), Values(*operands[4])));
  }
}

}  // namespace lazuli::hlo
