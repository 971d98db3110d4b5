#include "backend/cpu/passes/assign_layouts.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "backend/cpu/passes/convolution_form.h"
#include "lowering/passes/rewriter.h"
#include "lowering/passes/scheduled.h"

namespace lazuli::cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Minor to major: feature, spatial dimensions from last to first, batch.
Dims FeaturesInnermost(int64_t batch, int64_t feature, const Dims& spatial) {
  Dims layout{feature};
  layout.insert(layout.end(), spatial.rbegin(), spatial.rend());
  layout.push_back(batch);
  return layout;
}

Dims RowMajor(int64_t rank) {
  Dims layout;
  for (int64_t d = rank; d-- > 0;) layout.push_back(d);
  return layout;
}

// For a pooling window: of the dimensions it does not slide over, the first is the batch and the
// last the feature. Row major if there are fewer than two.
Dims WindowLayout(const hlo::Window& window) {
  Dims fixed, spatial;
  for (std::size_t d = 0; d < window.size(); ++d) {
    (window[d] == hlo::WindowDim{} ? fixed : spatial).push_back(static_cast<int64_t>(d));
  }
  if (fixed.size() < 2 || spatial.empty()) return RowMajor(static_cast<int64_t>(window.size()));
  Dims layout{fixed.back()};
  layout.insert(layout.end(), spatial.rbegin(), spatial.rend());
  layout.insert(layout.end(), fixed.rbegin() + 1, fixed.rend());
  return layout;
}

class Assigner {
 public:
  explicit Assigner(hlo::Computation* entry) : entry_(entry), rewriter_(entry) {}

  bool Run() {
    for (Instruction* i : entry_->PostOrder()) Assign(i);
    return rewriter_.changed() || changed_;
  }

 private:
  void Assign(Instruction* i);
  void AssignConvolution(Instruction* i);
  void AssignElementwise(Instruction* i);
  void AssignWindow(Instruction* i);
  void SetLayout(Instruction* i, const Dims& layout);
  void Require(Instruction* user, int64_t operand, const Dims& layout);
  void RequireRowMajor(Instruction* user);

  hlo::Computation* entry_;
  lowering::Rewriter rewriter_;
  std::map<std::pair<const Instruction*, std::vector<int64_t>>, Instruction*> copies_;
  bool changed_ = false;
};

void Assigner::SetLayout(Instruction* i, const Dims& layout) {
  Shape shape = i->shape().WithLayout(layout);
  if (shape == i->shape()) return;
  *i->mutable_shape() = std::move(shape);
  changed_ = true;
}

void Assigner::Require(Instruction* user, int64_t operand, const Dims& layout) {
  Instruction* value = user->operand(operand);
  if (!value->shape().IsArray() || value->shape().minor_to_major() == layout) return;
  Instruction*& copy = copies_[{value, {layout.begin(), layout.end()}}];
  if (copy == nullptr) {
    rewriter_.set_origin(value);
    copy = rewriter_.Add(Opcode::kCopy, value->shape().WithLayout(layout), {value});
  }
  rewriter_.ReplaceOperand(user, operand, copy);
}

void Assigner::RequireRowMajor(Instruction* user) {
  for (int64_t k = 0; k < user->operand_count(); ++k) {
    Require(user, k, RowMajor(user->operand(k)->shape().rank()));
  }
}

void Assigner::AssignConvolution(Instruction* i) {
  const hlo::ConvDims& labels = i->attrs_as<hlo::ConvolutionAttrs>().dim_labels;
  const int64_t rank = i->shape().rank();
  if (FormOf(*i) == ConvolutionForm::kWeightGradient) {
    Require(i, 0,
            FeaturesInnermost(labels.input_feature, labels.input_batch, labels.input_spatial));
    Require(i, 1,
            FeaturesInnermost(labels.kernel_input_feature, labels.kernel_output_feature,
                              labels.kernel_spatial));
    return;
  }
  Require(i, 0, FeaturesInnermost(labels.input_batch, labels.input_feature, labels.input_spatial));
  Require(i, 1, RowMajor(rank));
  SetLayout(i,
            FeaturesInnermost(labels.output_batch, labels.output_feature, labels.output_spatial));
}

// The layout of the first operand that has one of its own; kernels read the others as they are.
void Assigner::AssignElementwise(Instruction* i) {
  for (const Instruction* operand : i->operands()) {
    if (operand->shape().has_layout() && operand->shape().rank() == i->shape().rank()) {
      return SetLayout(i, operand->shape().minor_to_major());
    }
  }
}

void Assigner::AssignWindow(Instruction* i) {
  const Dims layout = WindowLayout(i->attrs_as<hlo::WindowAttrs>().window);
  if (!i->shape().IsArray()) return RequireRowMajor(i);
  Require(i, 0, layout);
  if (i->opcode() == Opcode::kSelectAndScatter) Require(i, 1, layout);
  SetLayout(i, layout);
}

void Assigner::Assign(Instruction* i) {
  switch (i->opcode()) {
    case Opcode::kConvolution:
      return AssignConvolution(i);
    case Opcode::kReduceWindow:
    case Opcode::kSelectAndScatter:
      return AssignWindow(i);
    case Opcode::kSlice:
    case Opcode::kPad:
    case Opcode::kConcatenate:
    case Opcode::kReverse:
      return AssignElementwise(i);
    case Opcode::kParameter:
    case Opcode::kConstant:
    case Opcode::kIota:
    case Opcode::kCopy:       // says itself where to
    case Opcode::kBroadcast:  // kernels read any layout
    case Opcode::kTranspose:
    case Opcode::kReduce:
    case Opcode::kGetTupleElement:
      return;
    default:
      if (i->IsElementwise()) return AssignElementwise(i);
      return RequireRowMajor(i);
  }
}

// What prefers a layout of its own, or has one.
bool Concerns(const Instruction& i) {
  return i.opcode() == Opcode::kConvolution || i.opcode() == Opcode::kReduceWindow ||
         i.opcode() == Opcode::kSelectAndScatter || (i.shape().IsArray() && i.shape().has_layout());
}

absl::StatusOr<bool> AssignIn(hlo::Computation* computation) {
  const auto& all = computation->instructions();
  if (std::none_of(all.begin(), all.end(), [](const auto& i) { return Concerns(*i); }))
    return false;
  Instruction* root = computation->root();
  const bool changed = Assigner(computation).Run();
  // The root tuple has asked for row-major operands; a root that is an array has not.
  if (!root->shape().IsArray() || !root->shape().has_layout()) return changed;
  lowering::Rewriter rewriter(computation);
  rewriter.set_origin(root);
  computation->set_root(rewriter.Add(Opcode::kCopy, root->shape().WithDefaultLayout(), {root}));
  return true;
}

}  // namespace

absl::StatusOr<bool> AssignLayouts::Run(hlo::Module& module) {
  return lowering::RewriteScheduled(module, AssignIn);
}

}  // namespace lazuli::cpu
