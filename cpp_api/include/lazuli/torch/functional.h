// Functions of nn with options that are built, in LibTorch's words:
//
//   F::max_pool2d(x, F::MaxPool2dFuncOptions(2).stride(2))
//
// Each is an overload of the function that lazuli has.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lazuli/torch/nn.h"

namespace lazuli::torch_names {

// Modes of interpolate() and pad().
inline constexpr const char *kNearest = "nearest", *kLinear = "linear", *kBilinear = "bilinear",
                            *kBicubic = "bicubic", *kTrilinear = "trilinear", *kArea = "area",
                            *kConstant = "constant", *kReflect = "reflect",
                            *kReplicate = "replicate", *kCircular = "circular";

namespace nn::functional {

using namespace lazuli::nn::functional;
using lazuli::nn::functional::adaptive_avg_pool2d;
using lazuli::nn::functional::avg_pool2d;
using lazuli::nn::functional::conv2d;
using lazuli::nn::functional::cross_entropy;
using lazuli::nn::functional::dropout;
using lazuli::nn::functional::gumbel_softmax;
using lazuli::nn::functional::interpolate;
using lazuli::nn::functional::leaky_relu;
using lazuli::nn::functional::log_softmax;
using lazuli::nn::functional::max_pool2d;
using lazuli::nn::functional::mse_loss;
using lazuli::nn::functional::nll_loss;
using lazuli::nn::functional::normalize;
using lazuli::nn::functional::pad;
using lazuli::nn::functional::rrelu;
using lazuli::nn::functional::softmax;

// A setter and the value of an option.
#define LAZULI_OPTION(Options, type, name, initial)               \
  Options& name(type v) { return name##_ = std::move(v), *this; } \
  const type& name() const { return name##_; }                    \
                                                                  \
 private:                                                         \
  type name##_ = initial;                                         \
                                                                  \
 public:

// The functions below take their options as templates: then `{2, 2}` and numbers are never options.

struct Conv2dFuncOptions {
  LAZULI_OPTION(Conv2dFuncOptions, Tensor, bias, {})
  LAZULI_OPTION(Conv2dFuncOptions, Size2, stride, 1)
  LAZULI_OPTION(Conv2dFuncOptions, Padding, padding, 0)
  LAZULI_OPTION(Conv2dFuncOptions, Size2, dilation, 1)
  LAZULI_OPTION(Conv2dFuncOptions, std::int64_t, groups, 1)
};
template <std::same_as<Conv2dFuncOptions> O>
Tensor conv2d(const Tensor& x, const Tensor& weight, const O& o, LAZULI_LOC) {
  const auto pair = [](Size2 size) { return std::pair(size.height, size.width); };
  return lazuli::conv2d(x, weight, o.bias(),
                        {.stride = pair(o.stride()),
                         .padding = o.padding(),
                         .dilation = pair(o.dilation()),
                         .groups = o.groups()},
                        loc);
}

struct MaxPool2dFuncOptions {
  MaxPool2dFuncOptions(Size2 kernel) : kernel_size_(kernel) {}  // NOLINT: implicit
  LAZULI_OPTION(MaxPool2dFuncOptions, Size2, kernel_size, 1)
  LAZULI_OPTION(MaxPool2dFuncOptions, OptionalSize2, stride, {})
  LAZULI_OPTION(MaxPool2dFuncOptions, Size2, padding, 0)
  LAZULI_OPTION(MaxPool2dFuncOptions, Size2, dilation, 1)
  LAZULI_OPTION(MaxPool2dFuncOptions, bool, ceil_mode, false)
};
template <std::same_as<MaxPool2dFuncOptions> O>
Tensor max_pool2d(const Tensor& x, const O& o, LAZULI_LOC) {
  return lazuli::max_pool2d(x, o.kernel_size(), o.stride(), o.padding(), o.dilation(),
                            o.ceil_mode(), loc);
}

using lazuli::max_pool2d_with_indices;
template <std::same_as<MaxPool2dFuncOptions> O>
std::pair<Tensor, Tensor> max_pool2d_with_indices(const Tensor& x, const O& o, LAZULI_LOC) {
  return lazuli::max_pool2d_with_indices(x, o.kernel_size(), o.stride(), o.padding(), o.dilation(),
                                         o.ceil_mode(), loc);
}

struct AvgPool2dFuncOptions {
  AvgPool2dFuncOptions(Size2 kernel) : kernel_size_(kernel) {}  // NOLINT: implicit
  LAZULI_OPTION(AvgPool2dFuncOptions, Size2, kernel_size, 1)
  LAZULI_OPTION(AvgPool2dFuncOptions, OptionalSize2, stride, {})
  LAZULI_OPTION(AvgPool2dFuncOptions, Size2, padding, 0)
  LAZULI_OPTION(AvgPool2dFuncOptions, bool, ceil_mode, false)
  LAZULI_OPTION(AvgPool2dFuncOptions, bool, count_include_pad, true)
  LAZULI_OPTION(AvgPool2dFuncOptions, std::optional<std::int64_t>, divisor_override, {})
};
template <std::same_as<AvgPool2dFuncOptions> O>
Tensor avg_pool2d(const Tensor& x, const O& o, LAZULI_LOC) {
  return lazuli::avg_pool2d(x, o.kernel_size(), o.stride(), o.padding(), o.ceil_mode(),
                            o.count_include_pad(), o.divisor_override(), loc);
}

struct AdaptiveAvgPool2dFuncOptions {
  AdaptiveAvgPool2dFuncOptions(Size2 size) : output_size_(size) {}  // NOLINT: implicit
  LAZULI_OPTION(AdaptiveAvgPool2dFuncOptions, Size2, output_size, 1)
};
template <std::same_as<AdaptiveAvgPool2dFuncOptions> O>
Tensor adaptive_avg_pool2d(const Tensor& x, const O& o, LAZULI_LOC) {
  return lazuli::adaptive_avg_pool2d(x, o.output_size(), loc);
}

struct DropoutFuncOptions {
  LAZULI_OPTION(DropoutFuncOptions, double, p, 0.5)
  LAZULI_OPTION(DropoutFuncOptions, bool, training, false)
  LAZULI_OPTION(DropoutFuncOptions, bool, inplace, false)  // of x, which is the result, too
};
template <std::same_as<DropoutFuncOptions> O>
Tensor dropout(Tensor x, const O& o, LAZULI_LOC) {
  if (!o.training()) return x;
  return o.inplace() ? x.dropout_(o.p(), loc) : lazuli::dropout(x, o.p(), loc);
}

// The other dropouts, which have the same options.
using Dropout2dFuncOptions = DropoutFuncOptions;
using Dropout3dFuncOptions = DropoutFuncOptions;
using AlphaDropoutFuncOptions = DropoutFuncOptions;
using FeatureAlphaDropoutFuncOptions = DropoutFuncOptions;
using lazuli::alpha_dropout;
using lazuli::feature_alpha_dropout;
inline Tensor Dropped(Tensor x, const Tensor& y, bool inplace, SourceLocation loc) {
  return inplace ? x.copy_(y, loc) : y;
}
template <std::same_as<DropoutFuncOptions> O>
Tensor dropout2d(const Tensor& x, const O& o, LAZULI_LOC) {
  return Dropped(x, feature_dropout(x, o.p(), o.training(), loc), o.inplace(), loc);
}
template <std::same_as<DropoutFuncOptions> O>
Tensor dropout3d(const Tensor& x, const O& o, LAZULI_LOC) {
  return dropout2d(x, o, loc);
}
template <std::same_as<DropoutFuncOptions> O>
Tensor alpha_dropout(const Tensor& x, const O& o, LAZULI_LOC) {
  return Dropped(x, lazuli::alpha_dropout(x, o.p(), o.training(), loc), o.inplace(), loc);
}
template <std::same_as<DropoutFuncOptions> O>
Tensor feature_alpha_dropout(const Tensor& x, const O& o, LAZULI_LOC) {
  return Dropped(x, lazuli::feature_alpha_dropout(x, o.p(), o.training(), loc), o.inplace(), loc);
}

struct SoftmaxFuncOptions {
  SoftmaxFuncOptions(std::int64_t dim) : dim_(dim) {}  // NOLINT: implicit
  LAZULI_OPTION(SoftmaxFuncOptions, std::int64_t, dim, 0)
  LAZULI_OPTION(SoftmaxFuncOptions, std::optional<DType>, dtype, {})
};
template <std::same_as<SoftmaxFuncOptions> O>
Tensor softmax(const Tensor& x, const O& o, LAZULI_LOC) {
  return lazuli::softmax(x, o.dim(), o.dtype(), loc);
}
struct LogSoftmaxFuncOptions {
  LogSoftmaxFuncOptions(std::int64_t dim) : dim_(dim) {}  // NOLINT: implicit
  LAZULI_OPTION(LogSoftmaxFuncOptions, std::int64_t, dim, 0)
  LAZULI_OPTION(LogSoftmaxFuncOptions, std::optional<DType>, dtype, {})
};
template <std::same_as<LogSoftmaxFuncOptions> O>
Tensor log_softmax(const Tensor& x, const O& o, LAZULI_LOC) {
  return lazuli::log_softmax(x, o.dim(), o.dtype(), loc);
}

struct LeakyReLUFuncOptions {
  LAZULI_OPTION(LeakyReLUFuncOptions, double, negative_slope, 0.01)
  LAZULI_OPTION(LeakyReLUFuncOptions, bool, inplace, false)
};
template <std::same_as<LeakyReLUFuncOptions> O>
Tensor leaky_relu(Tensor x, const O& o, LAZULI_LOC) {
  return o.inplace() ? x.leaky_relu_(o.negative_slope(), loc)
                     : lazuli::leaky_relu(x, o.negative_slope(), loc);
}

struct RReLUFuncOptions {
  LAZULI_OPTION(RReLUFuncOptions, double, lower, 1.0 / 8)
  LAZULI_OPTION(RReLUFuncOptions, double, upper, 1.0 / 3)
  LAZULI_OPTION(RReLUFuncOptions, bool, training, false)
  LAZULI_OPTION(RReLUFuncOptions, bool, inplace, false)
};
template <std::same_as<RReLUFuncOptions> O>
Tensor rrelu(Tensor x, const O& o, LAZULI_LOC) {
  return o.inplace() ? x.rrelu_(o.lower(), o.upper(), o.training(), loc)
                     : lazuli::rrelu(x, o.lower(), o.upper(), o.training(), loc);
}

struct InterpolateFuncOptions {
  LAZULI_OPTION(InterpolateFuncOptions, std::vector<std::int64_t>, size, {})
  LAZULI_OPTION(InterpolateFuncOptions, std::vector<double>, scale_factor, {})
  LAZULI_OPTION(InterpolateFuncOptions, std::string, mode, kNearest)
  LAZULI_OPTION(InterpolateFuncOptions, std::optional<bool>, align_corners, {})
};
template <std::same_as<InterpolateFuncOptions> O>
Tensor interpolate(const Tensor& x, const O& o, LAZULI_LOC) {
  return lazuli::nn::functional::interpolate(x, o.size(), o.scale_factor(), o.mode(),
                                             o.align_corners(), {}, false, loc);
}

struct PadFuncOptions {
  PadFuncOptions(std::vector<std::int64_t> pad) : pad_(std::move(pad)) {}  // NOLINT: implicit
  LAZULI_OPTION(PadFuncOptions, std::vector<std::int64_t>, pad, {})
  LAZULI_OPTION(PadFuncOptions, std::string, mode, kConstant)
  LAZULI_OPTION(PadFuncOptions, std::optional<double>, value, {})
};
template <std::same_as<PadFuncOptions> O>
Tensor pad(const Tensor& x, const O& o, LAZULI_LOC) {
  return lazuli::pad(x, o.pad(), o.mode(), o.value(), loc);
}

struct NormalizeFuncOptions {
  LAZULI_OPTION(NormalizeFuncOptions, double, p, 2)
  LAZULI_OPTION(NormalizeFuncOptions, std::int64_t, dim, 1)
  LAZULI_OPTION(NormalizeFuncOptions, double, eps, 1e-12)
};
template <std::same_as<NormalizeFuncOptions> O>
Tensor normalize(const Tensor& x, const O& o, LAZULI_LOC) {
  return lazuli::normalize(x, o.p(), o.dim(), o.eps(), loc);
}

struct MSELossFuncOptions {
  MSELossFuncOptions(Reduction reduction = kMean) : reduction_(reduction) {}  // NOLINT: implicit
  LAZULI_OPTION(MSELossFuncOptions, Reduction, reduction, kMean)
};
template <std::same_as<MSELossFuncOptions> O>
Tensor mse_loss(const Tensor& x, const Tensor& y, const O& o, LAZULI_LOC) {
  return lazuli::nn::functional::mse_loss(x, y, o.reduction(), loc);
}

struct CrossEntropyFuncOptions {
  LAZULI_OPTION(CrossEntropyFuncOptions, Tensor, weight, {})
  LAZULI_OPTION(CrossEntropyFuncOptions, std::int64_t, ignore_index, -100)
  LAZULI_OPTION(CrossEntropyFuncOptions, Reduction, reduction, kMean)
  LAZULI_OPTION(CrossEntropyFuncOptions, double, label_smoothing, 0)
};
template <std::same_as<CrossEntropyFuncOptions> O>
Tensor cross_entropy(const Tensor& logits, const Tensor& target, const O& o, LAZULI_LOC) {
  return lazuli::nn::functional::cross_entropy(logits, target, o.weight(), o.ignore_index(),
                                               o.reduction(), o.label_smoothing(), loc);
}

struct NLLLossFuncOptions {
  LAZULI_OPTION(NLLLossFuncOptions, Tensor, weight, {})
  LAZULI_OPTION(NLLLossFuncOptions, std::int64_t, ignore_index, -100)
  LAZULI_OPTION(NLLLossFuncOptions, Reduction, reduction, kMean)
};
template <std::same_as<NLLLossFuncOptions> O>
Tensor nll_loss(const Tensor& log_probs, const Tensor& target, const O& o, LAZULI_LOC) {
  return lazuli::nn::functional::nll_loss(log_probs, target, o.weight(), o.ignore_index(),
                                          o.reduction(), loc);
}

struct GumbelSoftmaxFuncOptions {
  LAZULI_OPTION(GumbelSoftmaxFuncOptions, double, tau, 1)
  LAZULI_OPTION(GumbelSoftmaxFuncOptions, bool, hard, false)
  LAZULI_OPTION(GumbelSoftmaxFuncOptions, std::int64_t, dim, -1)
};
template <std::same_as<GumbelSoftmaxFuncOptions> O>
Tensor gumbel_softmax(const Tensor& logits, const O& o, LAZULI_LOC) {
  return lazuli::nn::functional::gumbel_softmax(logits, o.tau(), o.hard(), 1e-10, o.dim(), loc);
}
#undef LAZULI_OPTION

}  // namespace nn::functional
}  // namespace lazuli::torch_names
