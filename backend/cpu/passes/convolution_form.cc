#include "backend/cpu/passes/convolution_form.h"

#include <algorithm>

namespace lazuli::cpu {
namespace {

int64_t SpatialElements(const Shape& shape, const Dims& spatial) {
  int64_t count = 1;
  for (int64_t d : spatial) count *= shape.dim(d);
  return count;
}

}  // namespace

ConvolutionForm FormOf(const hlo::Instruction& convolution) {
  const auto& attrs = convolution.attrs_as<hlo::ConvolutionAttrs>();
  const hlo::ConvDims& labels = attrs.dim_labels;
  const bool plain =
      attrs.feature_group_count == 1 &&
      std::all_of(attrs.window.begin(), attrs.window.end(),
                  [](const hlo::WindowDim& w) { return w.base_dilation == 1 && !w.reversal; });
  if (plain && labels.input_feature < labels.input_batch &&
      SpatialElements(convolution.operand(1)->shape(), labels.kernel_spatial) >
          SpatialElements(convolution.shape(), labels.output_spatial)) {
    return ConvolutionForm::kWeightGradient;
  }
  return ConvolutionForm::kForward;
}

}  // namespace lazuli::cpu
