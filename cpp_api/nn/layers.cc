#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cpp_api/nn/padding_mode.h"
#include "lazuli/autograd.h"
#include "lazuli/internal/fail.h"
#include "lazuli/internal/text.h"
#include "lazuli/nn.h"

namespace lazuli::nn {
namespace {

using lazuli::internal::Fail;
using lazuli::internal::NumberText;
using lazuli::internal::ShapeText;

void CheckPositive(std::string_view layer, std::string_view argument, std::int64_t value,
                   SourceLocation loc) {
  if (value >= 1) return;
  Fail(ErrorCode::kInvalidArgument,
       std::string(layer) + ": " + std::string(argument) + " is " + std::to_string(value) +
           ", it must be at least 1",
       loc);
}

void CheckKernel(std::string_view layer, Size2 kernel, SourceLocation loc) {
  CheckPositive(layer, "the kernel's height", kernel.height, loc);
  CheckPositive(layer, "the kernel's width", kernel.width, loc);
}

// An f64 input, as NumPy makes them, would turn what follows into f64 and slow.
void CheckDType(std::string_view layer, const Tensor& x, const Tensor& weight, SourceLocation loc) {
  if (!x.defined() || x.dtype() != kFloat64 || weight.dtype() == kFloat64) return;
  if (weight.dtype() != kFloat32 && weight.dtype() != kFloat16 && weight.dtype() != kBFloat16)
    return;
  Fail(ErrorCode::kInvalidArgument,
       std::string(layer) + ": x is " + ShapeText(x) + ", but " + weight.name() + " is " +
           ShapeText(weight) + ": both must be of one dtype; convert x, or the module",
       loc);
}

// Uniform in +-1 / sqrt(fan_in): PyTorch's kaiming_uniform with a = sqrt(5), and its default for
// biases.
Tensor UniformByFanIn(const Dims& dims, std::int64_t fan_in) {
  const NoGrad no_grad;
  const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in));
  return rand(dims) * (2.0 * bound) - bound;
}

}  // namespace

Linear::Linear(std::int64_t in_features, std::int64_t out_features, const LinearOptions& options,
               SourceLocation loc) {
  const SiteScope site(loc);
  CheckPositive("Linear", "in_features", in_features, loc);
  CheckPositive("Linear", "out_features", out_features, loc);
  weight = register_parameter("weight", UniformByFanIn({out_features, in_features}, in_features));
  if (options.bias) bias = register_parameter("bias", UniformByFanIn({out_features}, in_features));
}

Tensor Linear::forward(const Tensor& x, SourceLocation loc) const {
  const SiteScope site(loc);
  if (x.defined() && (x.dim() == 0 || x.size(-1) != weight.size(1))) {
    Fail(ErrorCode::kInvalidArgument,
         "linear: the last dim of x must be " + std::to_string(weight.size(1)) + ", as " +
             weight.name() + " is " + ShapeText(weight) + ", but x is " + ShapeText(x),
         loc);
  }
  CheckDType("linear", x, weight, loc);
  return linear(x, weight, bias);
}

Bilinear::Bilinear(std::int64_t in1_features, std::int64_t in2_features, std::int64_t out_features,
                   const BilinearOptions& options, SourceLocation loc) {
  const SiteScope site(loc);
  CheckPositive("Bilinear", "in1_features", in1_features, loc);
  CheckPositive("Bilinear", "in2_features", in2_features, loc);
  CheckPositive("Bilinear", "out_features", out_features, loc);
  weight = register_parameter(
      "weight", UniformByFanIn({out_features, in1_features, in2_features}, in1_features));
  if (options.bias) bias = register_parameter("bias", UniformByFanIn({out_features}, in1_features));
}

Tensor Bilinear::forward(const Tensor& x, const Tensor& y, SourceLocation loc) const {
  return bilinear(x, y, weight, bias, loc);
}

Conv2d::Conv2d(std::int64_t in_channels, std::int64_t out_channels, Size2 kernel,
               const Conv2dOptions& options, SourceLocation loc)
    : options_{.stride = {options.stride.height, options.stride.width},
               .padding = options.padding,
               .dilation = {options.dilation.height, options.dilation.width},
               .groups = options.groups},
      padding_mode_(options.padding_mode) {
  const SiteScope site(loc);
  CheckPaddingMode("Conv2d", padding_mode_, loc);
  CheckPositive("Conv2d", "in_channels", in_channels, loc);
  CheckPositive("Conv2d", "out_channels", out_channels, loc);
  CheckPositive("Conv2d", "groups", options.groups, loc);
  CheckKernel("Conv2d", kernel, loc);
  if (in_channels % options.groups != 0 || out_channels % options.groups != 0) {
    Fail(ErrorCode::kInvalidArgument,
         "Conv2d: groups = " + std::to_string(options.groups) + " does not divide in_channels = " +
             std::to_string(in_channels) + " and out_channels = " + std::to_string(out_channels),
         loc);
  }
  const Dims dims{out_channels, in_channels / options.groups, kernel.height, kernel.width};
  const std::int64_t fan_in = dims[1] * dims[2] * dims[3];
  weight = register_parameter("weight", UniformByFanIn(dims, fan_in));
  if (options.bias) bias = register_parameter("bias", UniformByFanIn({out_channels}, fan_in));
}

Tensor Conv2d::forward(const Tensor& x, SourceLocation loc) const {
  CheckDType("conv2d", x, weight, loc);
  if (padding_mode_ == "zeros") return conv2d(x, weight, bias, options_, loc);
  const Padding& padding = options_.padding;
  std::pair height(padding.height, padding.height), width(padding.width, padding.width);
  if (padding.same) {
    height = SameAround(weight.size(2), options_.dilation.first);
    width = SameAround(weight.size(3), options_.dilation.second);
  }
  lazuli::Conv2dOptions inside = options_;
  inside.padding = 0;
  return conv2d(PaddedBy(x, {height, width}, padding_mode_, loc), weight, bias, inside, loc);
}

MaxPool2d::MaxPool2d(Size2 kernel, const MaxPool2dOptions& options, SourceLocation loc)
    : kernel_(kernel), options_(options) {
  CheckKernel("MaxPool2d", kernel, loc);
}

Tensor MaxPool2d::forward(const Tensor& x, SourceLocation loc) const {
  return max_pool2d(x, kernel_, options_.stride, options_.padding, options_.dilation,
                    options_.ceil_mode, loc);
}

AvgPool2d::AvgPool2d(Size2 kernel, const AvgPool2dOptions& options, SourceLocation loc)
    : kernel_(kernel), options_(options) {
  CheckKernel("AvgPool2d", kernel, loc);
}

Tensor AvgPool2d::forward(const Tensor& x, SourceLocation loc) const {
  return avg_pool2d(x, kernel_, options_.stride, options_.padding, options_.ceil_mode,
                    options_.count_include_pad, options_.divisor_override, loc);
}

namespace {

// Normal rows; that of padding_idx is 0.
Tensor Table(std::string_view layer, std::int64_t rows, std::int64_t dim,
             std::optional<std::int64_t> padding_idx, SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  CheckPositive(layer, "rows", rows, loc);
  CheckPositive(layer, "dim", dim, loc);
  if (padding_idx && (*padding_idx < -rows || *padding_idx >= rows)) {
    Fail(ErrorCode::kOutOfRange,
         std::string(layer) + ": padding_idx " + std::to_string(*padding_idx) +
             " is out of range for " + std::to_string(rows) + " rows",
         loc);
  }
  Tensor table = randn({rows, dim});
  if (!padding_idx) return table;
  const std::int64_t row = *padding_idx < 0 ? *padding_idx + rows : *padding_idx;
  return where(unsqueeze(arange(rows), 1) == constant(static_cast<double>(row), kInt64), 0.0,
               table);
}

}  // namespace

Embedding::Embedding(std::int64_t rows, std::int64_t dim, const EmbeddingOptions& options,
                     SourceLocation loc)
    : padding_idx_(options.padding_idx) {
  weight = register_parameter("weight", Table("Embedding", rows, dim, padding_idx_, loc), loc);
}

EmbeddingBag::EmbeddingBag(std::int64_t rows, std::int64_t dim, const EmbeddingBagOptions& options,
                           SourceLocation loc)
    : options_(options) {
  weight =
      register_parameter("weight", Table("EmbeddingBag", rows, dim, options.padding_idx, loc), loc);
}

Tensor EmbeddingBag::forward(const Tensor& x, const Tensor& offsets,
                             const Tensor& per_sample_weights, SourceLocation loc) const {
  return functional::embedding_bag(x, weight, offsets, options_.max_norm, options_.norm_type,
                                   options_.scale_grad_by_freq, options_.mode, options_.sparse,
                                   per_sample_weights, options_.include_last_offset,
                                   options_.padding_idx, loc);
}

Tensor Embedding::forward(const Tensor& x, SourceLocation loc) const {
  return functional::embedding(x, weight, padding_idx_, loc);
}

Dropout::Dropout(double p, bool inplace, SourceLocation loc) : p_(p), inplace_(inplace) {
  if (p >= 0 && p <= 1) return;
  Fail(ErrorCode::kInvalidArgument,
       "Dropout: p is " + NumberText(p) + ", it must be a probability from 0 to 1", loc);
}

Tensor Dropout::forward(const Tensor& x, SourceLocation loc) const {
  if (!is_training() || p_ == 0) return x;
  if (!inplace_) return dropout(x, p_, loc);
  Tensor y = x;
  return y.dropout_(p_, loc);
}

PReLU::PReLU(std::int64_t channels, double init, SourceLocation loc) {
  const SiteScope site(loc);
  CheckPositive("PReLU", "channels", channels, loc);
  weight = register_parameter("weight", full({channels}, init));
}
Tensor PReLU::forward(const Tensor& x, SourceLocation loc) const { return prelu(x, weight, loc); }

Tensor Identity::forward(const Tensor& x, SourceLocation) const { return x; }

}  // namespace lazuli::nn
