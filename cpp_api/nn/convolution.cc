// Convolutions of other ranks than 2, and transposed ones.
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cpp_api/nn/padding_mode.h"
#include "lazuli/autograd.h"
#include "lazuli/internal/fail.h"
#include "lazuli/internal/text.h"
#include "lazuli/nn.h"

namespace lazuli::nn {
namespace {

using lazuli::internal::Fail;

// What weights are made of; the kernel's dims are one for each dim of space.
struct ConvolutionSizes {
  const char* layer;
  std::int64_t in_channels, out_channels, groups;
  Dims kernel;
  bool transposed;
};

Dims EachDim(const IntList& numbers, std::size_t rank) {
  return numbers.size() == 1 ? Dims(rank, numbers[0]) : Dims(numbers);
}

void CheckSizes(const ConvolutionSizes& sizes, SourceLocation loc) {
  const auto check = [&](const std::string& what, std::int64_t value) {
    if (value >= 1) return;
    Fail(ErrorCode::kInvalidArgument,
         std::string(sizes.layer) + ": " + what + " is " + std::to_string(value) +
             ", it must be at least 1",
         loc);
  };
  check("in_channels", sizes.in_channels);
  check("out_channels", sizes.out_channels);
  check("groups", sizes.groups);
  for (const std::int64_t k : sizes.kernel) check("a dim of the kernel", k);
  if (sizes.in_channels % sizes.groups == 0 && sizes.out_channels % sizes.groups == 0) return;
  Fail(ErrorCode::kInvalidArgument,
       std::string(sizes.layer) + ": groups = " + std::to_string(sizes.groups) +
           " does not divide in_channels = " + std::to_string(sizes.in_channels) +
           " and out_channels = " + std::to_string(sizes.out_channels),
       loc);
}

// Registers the weight, and the bias if there is one, uniform in +-1 / sqrt(fan_in) as PyTorch's.
template <class L>
void MakeParameters(L& layer, const ConvolutionSizes& sizes, bool bias, SourceLocation loc) {
  const SiteScope site(loc);
  const NoGrad no_grad;
  CheckSizes(sizes, loc);
  const std::int64_t rows = sizes.transposed ? sizes.in_channels : sizes.out_channels,
                     columns = sizes.transposed ? sizes.out_channels : sizes.in_channels;
  Dims dims{rows, columns / sizes.groups};
  dims.insert(dims.end(), sizes.kernel.begin(), sizes.kernel.end());
  std::int64_t fan_in = dims[1];
  for (const std::int64_t k : sizes.kernel) fan_in *= k;
  const double bound = 1.0 / std::sqrt(static_cast<double>(fan_in));
  const auto draw = [&](const Dims& shape) { return rand(shape) * (2.0 * bound) - bound; };
  layer.weight = layer.register_parameter("weight", draw(dims));
  if (bias) layer.bias = layer.register_parameter("bias", draw({sizes.out_channels}));
}

Dims Both(Size2 size) { return {size.height, size.width}; }

std::vector<std::pair<std::int64_t, std::int64_t>> BeforeAndBehind(const Dims& padding) {
  std::vector<std::pair<std::int64_t, std::int64_t>> around;
  for (const std::int64_t p : padding) around.emplace_back(p, p);
  return around;
}

}  // namespace

void CheckPaddingMode(const std::string& layer, const std::string& mode, SourceLocation loc) {
  for (const char* known : {"zeros", "reflect", "replicate", "circular"}) {
    if (mode == known) return;
  }
  Fail(ErrorCode::kInvalidArgument,
       layer + ": padding_mode is '" + mode +
           "', it must be 'zeros', 'reflect', 'replicate' or 'circular'",
       loc);
}

Tensor PaddedBy(const Tensor& x, const std::vector<std::pair<std::int64_t, std::int64_t>>& around,
                const std::string& mode, SourceLocation loc) {
  Dims sides;
  for (const auto& [before, after] : around) sides.insert(sides.begin(), {before, after});
  return pad(x, sides, mode, std::nullopt, loc);
}

std::pair<std::int64_t, std::int64_t> SameAround(std::int64_t kernel, std::int64_t dilation) {
  const std::int64_t all = dilation * (kernel - 1);
  return {all / 2, all - all / 2};
}

Conv1d::Conv1d(std::int64_t in_channels, std::int64_t out_channels, std::int64_t kernel,
               const Conv1dOptions& options, SourceLocation loc)
    : options_(options) {
  CheckPaddingMode("Conv1d", options.padding_mode, loc);
  MakeParameters(*this, {"Conv1d", in_channels, out_channels, options.groups, {kernel}, false},
                 options.bias, loc);
}
Tensor Conv1d::forward(const Tensor& x, SourceLocation loc) const {
  if (options_.padding_mode != "zeros")
    return conv1d(PaddedBy(x, BeforeAndBehind({options_.padding}), options_.padding_mode, loc),
                  weight, bias, options_.stride, 0, options_.dilation, options_.groups, loc);
  return conv1d(x, weight, bias, options_.stride, options_.padding, options_.dilation,
                options_.groups, loc);
}

Conv3d::Conv3d(std::int64_t in_channels, std::int64_t out_channels, const IntList& kernel,
               const Conv3dOptions& options, SourceLocation loc)
    : options_(options) {
  CheckPaddingMode("Conv3d", options.padding_mode, loc);
  MakeParameters(*this,
                 {"Conv3d", in_channels, out_channels, options.groups, EachDim(kernel, 3), false},
                 options.bias, loc);
}
Tensor Conv3d::forward(const Tensor& x, SourceLocation loc) const {
  const Dims padding = EachDim(options_.padding, 3);
  if (options_.padding_mode != "zeros")
    return conv3d(PaddedBy(x, BeforeAndBehind(padding), options_.padding_mode, loc), weight, bias,
                  EachDim(options_.stride, 3), {}, EachDim(options_.dilation, 3), options_.groups,
                  loc);
  return conv3d(x, weight, bias, EachDim(options_.stride, 3), padding,
                EachDim(options_.dilation, 3), options_.groups, loc);
}

ConvTranspose1d::ConvTranspose1d(std::int64_t in_channels, std::int64_t out_channels,
                                 std::int64_t kernel, const ConvTranspose1dOptions& options,
                                 SourceLocation loc)
    : options_(options) {
  MakeParameters(*this,
                 {"ConvTranspose1d", in_channels, out_channels, options.groups, {kernel}, true},
                 options.bias, loc);
}
Tensor ConvTranspose1d::forward(const Tensor& x, SourceLocation loc) const {
  return conv_transpose1d(x, weight, bias, options_.stride, options_.padding,
                          options_.output_padding, options_.groups, options_.dilation, loc);
}

ConvTranspose2d::ConvTranspose2d(std::int64_t in_channels, std::int64_t out_channels, Size2 kernel,
                                 const ConvTranspose2dOptions& options, SourceLocation loc)
    : options_(options) {
  MakeParameters(*this,
                 {"ConvTranspose2d", in_channels, out_channels, options.groups, Both(kernel), true},
                 options.bias, loc);
}
Tensor ConvTranspose2d::forward(const Tensor& x, SourceLocation loc) const {
  return conv_transpose2d(x, weight, bias, Both(options_.stride), Both(options_.padding),
                          Both(options_.output_padding), options_.groups, Both(options_.dilation),
                          loc);
}

ConvTranspose3d::ConvTranspose3d(std::int64_t in_channels, std::int64_t out_channels,
                                 const IntList& kernel, const ConvTranspose3dOptions& options,
                                 SourceLocation loc)
    : options_(options) {
  MakeParameters(
      *this,
      {"ConvTranspose3d", in_channels, out_channels, options.groups, EachDim(kernel, 3), true},
      options.bias, loc);
}
Tensor ConvTranspose3d::forward(const Tensor& x, SourceLocation loc) const {
  return conv_transpose3d(x, weight, bias, EachDim(options_.stride, 3),
                          EachDim(options_.padding, 3), EachDim(options_.output_padding, 3),
                          options_.groups, EachDim(options_.dilation, 3), loc);
}

}  // namespace lazuli::nn
