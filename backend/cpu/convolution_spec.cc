#include "backend/cpu/convolution_spec.h"

#include <algorithm>

#include "backend/cpu/passes/convolution_form.h"

namespace lazuli::cpu {
namespace {

using Computes = ConvolutionSpec::Computes;

// Sizes and strides of an array in the order {first, second, spatial...}.
void Gather(const Shape& shape, int64_t first, int64_t second, const Dims& spatial, Dims& sizes,
            Dims& strides) {
  const Dims all = shape.strides();
  const auto add = [&](int64_t d) {
    sizes.push_back(shape.dim(d));
    strides.push_back(all[static_cast<std::size_t>(d)]);
  };
  add(first);
  add(second);
  for (int64_t d : spatial) add(d);
}

// The padding behind the source that makes the forward convolution's sizes come out; false if none
// does.
bool FitPadding(ConvolutionSpec& spec) {
  spec.pad_high.clear();
  for (std::size_t d = 0; d < spec.stride.size(); ++d) {
    const int64_t reach = (spec.weights[d + 2] - 1) * spec.dilation[d] + 1;
    const int64_t needed = (spec.target[d + 2] - 1) * spec.stride[d] + reach;
    const int64_t high = std::max<int64_t>(0, needed - spec.source[d + 2] - spec.pad_low[d]);
    const int64_t padded = spec.source[d + 2] + spec.pad_low[d] + high;
    if (spec.pad_low[d] < 0 || padded < reach ||
        (padded - reach) / spec.stride[d] + 1 != spec.target[d + 2])
      return false;
    spec.pad_high.push_back(high);
  }
  return true;
}

bool All(const hlo::Window& window, bool (*property)(const hlo::WindowDim&)) {
  return std::all_of(window.begin(), window.end(), property);
}

bool NotStrided(const hlo::WindowDim& w) { return w.stride == 1; }
bool NotBaseDilated(const hlo::WindowDim& w) { return w.base_dilation == 1; }
bool Reversed(const hlo::WindowDim& w) { return w.reversal; }
bool NotReversed(const hlo::WindowDim& w) { return !w.reversal; }

std::optional<ConvolutionSpec> Forward(const hlo::ConvolutionAttrs& attrs, const Shape& lhs,
                                       const Shape& rhs, const Shape& result) {
  const hlo::ConvDims& labels = attrs.dim_labels;
  ConvolutionSpec spec;
  spec.groups = attrs.feature_group_count;
  Gather(lhs, labels.input_batch, labels.input_feature, labels.input_spatial, spec.source,
         spec.source_strides);
  Gather(rhs, labels.kernel_output_feature, labels.kernel_input_feature, labels.kernel_spatial,
         spec.weights, spec.weights_strides);
  Gather(result, labels.output_batch, labels.output_feature, labels.output_spatial, spec.target,
         spec.target_strides);
  spec.group_stride = spec.weights[0] / spec.groups * spec.weights_strides[0];
  for (const hlo::WindowDim& w : attrs.window) {
    spec.stride.push_back(w.stride);
    spec.dilation.push_back(w.window_dilation);
    spec.pad_low.push_back(w.pad_low);
    spec.flip_weights |= w.reversal;
  }
  if (!FitPadding(spec)) return std::nullopt;
  return spec;
}

// lhs is the gradient of the target; what is wanted is that of the source. An output of size x at
// position i is x = o * stride + k * dilation - pad, where pad = (k - 1) * dilation - pad_low of
// the HLO window.
std::optional<ConvolutionSpec> BackwardData(const hlo::ConvolutionAttrs& attrs, const Shape& lhs,
                                            const Shape& rhs, const Shape& result) {
  const hlo::ConvDims& labels = attrs.dim_labels;
  ConvolutionSpec spec;
  spec.computes = Computes::kSource;
  spec.groups = attrs.feature_group_count;
  Gather(result, labels.output_batch, labels.output_feature, labels.output_spatial, spec.source,
         spec.source_strides);
  Gather(rhs, labels.kernel_input_feature, labels.kernel_output_feature, labels.kernel_spatial,
         spec.weights, spec.weights_strides);
  Gather(lhs, labels.input_batch, labels.input_feature, labels.input_spatial, spec.target,
         spec.target_strides);
  // The kernel's input features are those of one group of the target, its output features those of
  // all groups of the source.
  spec.weights[0] *= spec.groups;
  spec.weights[1] /= spec.groups;
  spec.group_stride = spec.weights[1] * spec.weights_strides[1];
  for (const hlo::WindowDim& w : attrs.window) {
    spec.stride.push_back(w.base_dilation);
    spec.dilation.push_back(w.window_dilation);
    spec.pad_low.push_back((w.size - 1) * w.window_dilation - w.pad_low);
    spec.flip_weights |= !w.reversal;
  }
  if (!FitPadding(spec)) return std::nullopt;
  return spec;
}

std::optional<ConvolutionSpec> BackwardWeights(const hlo::ConvolutionAttrs& attrs, const Shape& lhs,
                                               const Shape& rhs, const Shape& result) {
  const hlo::ConvDims& labels = attrs.dim_labels;
  ConvolutionSpec spec;
  spec.computes = Computes::kWeights;
  spec.groups = attrs.batch_group_count;
  Gather(lhs, labels.input_feature, labels.input_batch, labels.input_spatial, spec.source,
         spec.source_strides);
  Gather(result, labels.output_feature, labels.output_batch, labels.output_spatial, spec.weights,
         spec.weights_strides);
  Gather(rhs, labels.kernel_input_feature, labels.kernel_output_feature, labels.kernel_spatial,
         spec.target, spec.target_strides);
  spec.group_stride = spec.weights[0] / spec.groups * spec.weights_strides[0];
  for (const hlo::WindowDim& w : attrs.window) {
    spec.stride.push_back(w.window_dilation);
    spec.dilation.push_back(w.stride);
    spec.pad_low.push_back(w.pad_low);
  }
  if (!FitPadding(spec)) return std::nullopt;
  return spec;
}

// Arrays of one element type, none of them empty.
bool IsOrdinary(const hlo::Instruction& convolution) {
  const auto fits = [&](const hlo::Instruction* i) {
    return i->shape().dtype() == convolution.shape().dtype() && i->shape().num_elements() > 0;
  };
  return fits(&convolution) && fits(convolution.operand(0)) && fits(convolution.operand(1));
}

}  // namespace

std::optional<ConvolutionSpec> MatchConvolution(const hlo::Instruction& convolution) {
  const auto& attrs = convolution.attrs_as<hlo::ConvolutionAttrs>();
  const Shape& lhs = convolution.operand(0)->shape();
  const Shape& rhs = convolution.operand(1)->shape();
  const Shape& result = convolution.shape();
  const std::size_t spatial = attrs.window.size();
  if (result.dtype() != DType::kF32 || !IsOrdinary(convolution)) return std::nullopt;
  if (spatial < 1 || spatial > 3) return std::nullopt;
  if (!All(attrs.window, Reversed) && !All(attrs.window, NotReversed)) return std::nullopt;
  const bool whole_batch = attrs.batch_group_count == 1;
  // The gradient of a convolution that is not strided is one forward: its bits are those of the
  // convolution that it is written as, whether or not a reverse was folded into it.
  if (!All(attrs.window, NotBaseDilated)) {
    if (!whole_batch || !All(attrs.window, NotStrided)) return std::nullopt;
    return BackwardData(attrs, lhs, rhs, result);
  }
  if (FormOf(convolution) == ConvolutionForm::kWeightGradient) {
    if (auto spec = BackwardWeights(attrs, lhs, rhs, result)) return spec;
  }
  if (!whole_batch) return std::nullopt;
  return Forward(attrs, lhs, rhs, result);
}

std::optional<WindowedConvolution> AnyConvolution(const hlo::Instruction& convolution) {
  if (!IsOrdinary(convolution)) return std::nullopt;
  const auto& attrs = convolution.attrs_as<hlo::ConvolutionAttrs>();
  const hlo::ConvDims& labels = attrs.dim_labels;
  WindowedConvolution spec;
  spec.dtype = convolution.shape().dtype();
  spec.feature_groups = attrs.feature_group_count;
  spec.batch_groups = attrs.batch_group_count;
  spec.window = attrs.window;
  Gather(convolution.operand(0)->shape(), labels.input_batch, labels.input_feature,
         labels.input_spatial, spec.input, spec.input_strides);
  Gather(convolution.operand(1)->shape(), labels.kernel_output_feature, labels.kernel_input_feature,
         labels.kernel_spatial, spec.kernel, spec.kernel_strides);
  Gather(convolution.shape(), labels.output_batch, labels.output_feature, labels.output_spatial,
         spec.result, spec.result_strides);
  return spec;
}

}  // namespace lazuli::cpu
