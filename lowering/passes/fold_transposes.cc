#include "lowering/passes/fold_transposes.h"

#include <utility>

#include "absl/algorithm/container.h"

#include "ir/types/permutation.h"
#include "lowering/passes/rewriter.h"

namespace lazuli::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;

const Dims& Permutation(const Instruction* transpose) {
  return transpose->attrs_as<hlo::DimensionsAttrs>().dimensions;
}

// Where the dimension that was at d before (or after, for `inverse`) the transpose is.
int64_t Mapped(const Dims& permutation, int64_t d) {
  return permutation[static_cast<std::size_t>(d)];
}
Dims Mapped(const Dims& permutation, const Dims& dims) {
  Dims result;
  for (int64_t d : dims) result.push_back(Mapped(permutation, d));
  return result;
}

// The dims of a dot's operand that are neither batch nor contracted appear in the result in their
// order.
bool KeepsFreeOrder(const Dims& permutation, const Dims& batch, const Dims& contracting) {
  int64_t last = -1;
  for (int64_t d = 0; d < static_cast<int64_t>(permutation.size()); ++d) {
    if (absl::c_linear_search(batch, d) || absl::c_linear_search(contracting, d)) continue;
    if (Mapped(permutation, d) < last) return false;
    last = Mapped(permutation, d);
  }
  return true;
}

bool FoldDotOperands(Instruction* dot, Rewriter& r) {
  hlo::DotAttrs attrs = dot->attrs_as<hlo::DotAttrs>();
  Instruction* operands[] = {dot->operand(0), dot->operand(1)};
  bool folded = false;
  for (int side : {0, 1}) {
    Instruction* const transpose = operands[side];
    if (transpose->opcode() != Opcode::kTranspose) continue;
    Dims& batch = side == 0 ? attrs.lhs_batch_dims : attrs.rhs_batch_dims;
    Dims& contracting = side == 0 ? attrs.lhs_contracting_dims : attrs.rhs_contracting_dims;
    if (!KeepsFreeOrder(Permutation(transpose), batch, contracting)) continue;
    batch = Mapped(Permutation(transpose), batch);
    contracting = Mapped(Permutation(transpose), contracting);
    operands[side] = transpose->operand(0);
    folded = true;
  }
  if (folded) r.Replace(dot, r.Add(Opcode::kDot, dot->shape(), operands, attrs));
  return folded;
}

void MapInput(hlo::ConvDims& labels, const Dims& permutation) {
  labels.input_batch = Mapped(permutation, labels.input_batch);
  labels.input_feature = Mapped(permutation, labels.input_feature);
  labels.input_spatial = Mapped(permutation, labels.input_spatial);
}

void MapKernel(hlo::ConvDims& labels, const Dims& permutation) {
  labels.kernel_input_feature = Mapped(permutation, labels.kernel_input_feature);
  labels.kernel_output_feature = Mapped(permutation, labels.kernel_output_feature);
  labels.kernel_spatial = Mapped(permutation, labels.kernel_spatial);
}

void MapOutput(hlo::ConvDims& labels, const Dims& permutation) {
  labels.output_batch = Mapped(permutation, labels.output_batch);
  labels.output_feature = Mapped(permutation, labels.output_feature);
  labels.output_spatial = Mapped(permutation, labels.output_spatial);
}

// Devices tell the gradient of a kernel by a batch behind the features. What was not written as one
// does not become one, whose products are added in another order.
bool KeepsBatchFirst(const hlo::ConvDims& labels, const Dims& permutation) {
  return (labels.input_batch < labels.input_feature) ==
         (Mapped(permutation, labels.input_batch) < Mapped(permutation, labels.input_feature));
}

bool FoldConvolutionOperands(Instruction* conv, Rewriter& r) {
  hlo::ConvolutionAttrs attrs = conv->attrs_as<hlo::ConvolutionAttrs>();
  Instruction *input = conv->operand(0), *kernel = conv->operand(1);
  if (input->opcode() == Opcode::kTranspose &&
      KeepsBatchFirst(attrs.dim_labels, Permutation(input))) {
    MapInput(attrs.dim_labels, Permutation(input));
    input = input->operand(0);
  }
  if (kernel->opcode() == Opcode::kTranspose) {
    MapKernel(attrs.dim_labels, Permutation(kernel));
    kernel = kernel->operand(0);
  }
  if (input == conv->operand(0) && kernel == conv->operand(1)) return false;
  r.Replace(conv, r.Add(Opcode::kConvolution, conv->shape(), {input, kernel}, attrs));
  return true;
}

bool FoldIntoConvolution(Instruction* transpose, Rewriter& r) {
  Instruction* const x = transpose->operand(0);
  if (x->opcode() != Opcode::kConvolution || x->users().size() != 1 || x->IsRoot()) return false;
  hlo::ConvolutionAttrs attrs = x->attrs_as<hlo::ConvolutionAttrs>();
  MapOutput(attrs.dim_labels, Inverse(Permutation(transpose)));
  r.Replace(transpose, r.Add(Opcode::kConvolution, transpose->shape(), x->operands(), attrs));
  return true;
}

bool IsContraction(Opcode opcode) {
  return opcode == Opcode::kDot || opcode == Opcode::kConvolution;
}

bool FoldTransposesIn(hlo::Computation* computation) {
  bool transposes = false, contractions = false;
  for (const auto& i : computation->instructions()) {
    transposes |= i->opcode() == Opcode::kTranspose;
    contractions |= IsContraction(i->opcode());
  }
  if (!transposes || !contractions) return false;
  Rewriter r(computation);
  // Results first: what replaces a transposed result then takes its operands' transposes.
  for (Instruction* i : computation->PostOrder()) {
    if (i->opcode() != Opcode::kTranspose || (i->users().empty() && !i->IsRoot())) continue;
    r.set_origin(i);
    FoldIntoConvolution(i, r);
  }
  for (Instruction* i : computation->PostOrder()) {
    if (r.IsErased(i) || (i->users().empty() && !i->IsRoot())) continue;
    r.set_origin(i);
    if (i->opcode() == Opcode::kDot) FoldDotOperands(i, r);
    if (i->opcode() == Opcode::kConvolution) FoldConvolutionOperands(i, r);
  }
  return r.changed();
}

}  // namespace

absl::StatusOr<bool> FoldTransposes::Run(hlo::Module& module) {
  bool changed = false;
  for (const auto& computation : module.computations())
    changed |= FoldTransposesIn(computation.get());
  return changed;
}

}  // namespace lazuli::lowering
