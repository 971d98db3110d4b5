#include "backend/cpu/passes/fold_kernel_reverse.h"

#include <algorithm>

#include "backend/cpu/passes/convolution_form.h"
#include "lowering/passes/rewriter.h"
#include "lowering/passes/scheduled.h"

namespace lazuli::cpu {
namespace {

// The convolution's attributes with the kernel's dimensions flipped; false if one of them is not
// spatial, or the library has no call for what comes of it.
bool Flip(const Dims& dimensions, hlo::ConvolutionAttrs& attrs) {
  const Dims& spatial = attrs.dim_labels.kernel_spatial;
  for (int64_t d : dimensions) {
    const auto at = std::find(spatial.begin(), spatial.end(), d);
    if (at == spatial.end()) return false;
    bool& reversal = attrs.window[static_cast<std::size_t>(at - spatial.begin())].reversal;
    reversal = !reversal;
  }
  return std::all_of(attrs.window.begin(), attrs.window.end(), [&](const hlo::WindowDim& w) {
    return w.reversal == attrs.window[0].reversal;
  });
}

absl::StatusOr<bool> FoldIn(hlo::Computation* computation) {
  const auto& all = computation->instructions();
  const auto reverses = [](const auto& i) { return i->opcode() == hlo::Opcode::kReverse; };
  if (std::none_of(all.begin(), all.end(), reverses)) return false;
  lowering::Rewriter rewriter(computation);
  for (hlo::Instruction* i : computation->PostOrder()) {
    if (i->opcode() != hlo::Opcode::kConvolution ||
        i->operand(1)->opcode() != hlo::Opcode::kReverse || FormOf(*i) != ConvolutionForm::kForward)
      continue;
    hlo::Instruction* reverse = i->operand(1);
    auto attrs = i->attrs_as<hlo::ConvolutionAttrs>();
    if (!Flip(reverse->attrs_as<hlo::DimensionsAttrs>().dimensions, attrs)) continue;
    rewriter.SetAttrs(i, std::move(attrs));
    rewriter.ReplaceOperand(i, 1, reverse->operand(0));
  }
  return rewriter.changed();
}

}  // namespace

absl::StatusOr<bool> FoldKernelReverse::Run(hlo::Module& module) {
  return lowering::RewriteScheduled(module, FoldIn);
}

}  // namespace lazuli::cpu
