#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

#include "lazuli/autograd.h"
#include "lazuli/internal/fail.h"
#include "lazuli/nn.h"

namespace lazuli::nn {
namespace {

using lazuli::internal::Fail;

void CheckPositive(std::string_view layer, std::string_view argument, std::int64_t value,
                   SourceLocation loc) {
  if (value >= 1) return;
  Fail(ErrorCode::kInvalidArgument,
       std::string(layer) + ": " + std::string(argument) + " is " + std::to_string(value) +
           ", it must be at least 1",
       loc);
}

// "f32[64,784]".
std::string ShapeText(const Tensor& x) {
  std::string text(to_string(x.dtype()));
  text += '[';
  const Dims dims = x.sizes();
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (i > 0) text += ',';
    text += std::to_string(dims[i]);
  }
  return text + ']';
}

std::string NumberText(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%g", value);
  return text;
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
  return linear(x, weight, bias);
}

Conv2d::Conv2d(std::int64_t in_channels, std::int64_t out_channels, Size2 kernel,
               const Conv2dOptions& options, SourceLocation loc)
    : options_{.stride = {options.stride.height, options.stride.width},
               .padding = {options.padding.height, options.padding.width},
               .dilation = {options.dilation.height, options.dilation.width},
               .groups = options.groups} {
  const SiteScope site(loc);
  CheckPositive("Conv2d", "in_channels", in_channels, loc);
  CheckPositive("Conv2d", "out_channels", out_channels, loc);
  CheckPositive("Conv2d", "groups", options.groups, loc);
  CheckPositive("Conv2d", "the kernel's height", kernel.height, loc);
  CheckPositive("Conv2d", "the kernel's width", kernel.width, loc);
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
  return conv2d(x, weight, bias, options_, loc);
}

MaxPool2d::MaxPool2d(std::int64_t kernel, const MaxPool2dOptions& options, SourceLocation loc)
    : kernel_(kernel), options_(options) {
  CheckPositive("MaxPool2d", "the kernel", kernel, loc);
}

Tensor MaxPool2d::forward(const Tensor& x, SourceLocation loc) const {
  return max_pool2d(x, kernel_, options_.stride, options_.padding, loc);
}

Tensor Flatten::forward(const Tensor& x, SourceLocation loc) const {
  return flatten(x, start_, end_, loc);
}

Dropout::Dropout(double p, SourceLocation loc) : p_(p) {
  if (p >= 0 && p <= 1) return;
  Fail(ErrorCode::kInvalidArgument,
       "Dropout: p is " + NumberText(p) + ", it must be a probability from 0 to 1", loc);
}

Tensor Dropout::forward(const Tensor& x, SourceLocation loc) const {
  return is_training() && p_ > 0 ? dropout(x, p_, loc) : x;
}

Tensor ReLU::forward(const Tensor& x, SourceLocation loc) const { return relu(x, loc); }
Tensor Tanh::forward(const Tensor& x, SourceLocation loc) const { return tanh(x, loc); }
Tensor Sigmoid::forward(const Tensor& x, SourceLocation loc) const { return sigmoid(x, loc); }
Tensor GELU::forward(const Tensor& x, SourceLocation loc) const { return gelu(x, loc); }

void Sequential::Append(AnyModule module, SourceLocation loc) {
  register_module(std::to_string(modules_.size()), module, loc);
  modules_.push_back(std::move(module));
}

Tensor Sequential::forward(const Tensor& x, SourceLocation loc) const {
  const SiteScope site(loc);
  Tensor y = x;
  for (const AnyModule& module : modules_) y = module.forward(y);
  return y;
}

const AnyModule& Sequential::at(std::size_t i, SourceLocation loc) const {
  if (i >= modules_.size()) {
    Fail(ErrorCode::kOutOfRange,
         "Sequential: there is no module " + std::to_string(i) + ", the size is " +
             std::to_string(modules_.size()),
         loc);
  }
  return modules_[i];
}

}  // namespace lazuli::nn
