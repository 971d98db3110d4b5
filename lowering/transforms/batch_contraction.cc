// Batch rules of products and convolutions, and of batch norms.
//
// Where one operand of a product is batched, the batch dim is one more free dim of it: a layer's product
// with its weights stays one product. A convolution has no free dims: the batch becomes part of the
// images, of the kernel's output features, or of the groups.
#include <utility>

#include "lowering/transforms/batch_rules.h"

namespace lazuli::lowering {
namespace {

Dims DimsOf(Op x) { return Dims(x.shape().dims().begin(), x.shape().dims().end()); }

// Makes the batch dim in front part of dim `d` (of the array without it), inside of each of `groups`
// equal parts of that.
Op Fold(BatchScope& s, Op x, int64_t d, int64_t groups) {
  Builder& b = s.b;
  if (!b.status().ok()) return x;
  Dims dims = DimsOf(x);
  const auto at = static_cast<std::size_t>(d + 1);
  const int64_t part = dims[at] / groups;
  Dims merged(dims.begin() + 1, dims.end());
  merged[at - 1] *= s.size();
  dims[at] = groups;
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at) + 1, part);
  return b.Reshape(s.MoveDim(b.Reshape(x, dims), 0, d + 1), merged);
}

// The reverse of it.
Op Unfold(BatchScope& s, Op x, int64_t d, int64_t groups) {
  Builder& b = s.b;
  if (!b.status().ok()) return x;
  Dims dims = DimsOf(x);
  const auto at = static_cast<std::size_t>(d);
  const int64_t part = dims[at] / groups / s.size();
  Dims apart = dims;
  apart[at] = groups;
  apart.insert(apart.begin() + d + 1, {s.size(), part});
  dims[at] = groups * part;
  return b.Reshape(s.MoveDim(b.Reshape(x, apart), d + 1, 0), WithFront(s.size(), dims));
}

// An op of these attributes on operands in which the batch is part of another dim.
Op AddFolded(BatchScope& s, const hlo::Instruction& i, absl::Span<const Op> operands,
             hlo::Attrs attrs, int64_t d) {
  Shape shape = i.shape();
  shape.set_dim(d, shape.dim(d) * s.size());
  return s.b.Add(i.opcode(), operands, std::move(attrs), {}, &shape);
}

}  // namespace

BatchValue BatchDot(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  const BatchValue &x = operands[0], &y = operands[1];
  hlo::DotAttrs attrs = i.attrs_as<hlo::DotAttrs>();
  const auto batch_dims = static_cast<int64_t>(attrs.lhs_batch_dims.size());
  const int64_t free = i.operand(0)->shape().rank() - batch_dims -
                       static_cast<int64_t>(attrs.lhs_contracting_dims.size());
  if (x.batched) {
    attrs.lhs_batch_dims = Shifted(attrs.lhs_batch_dims);
    attrs.lhs_contracting_dims = Shifted(attrs.lhs_contracting_dims);
  }
  if (y.batched) {
    attrs.rhs_batch_dims = Shifted(attrs.rhs_batch_dims);
    attrs.rhs_contracting_dims = Shifted(attrs.rhs_contracting_dims);
  }
  if (x.batched && y.batched) {
    attrs.lhs_batch_dims = WithFront(0, attrs.lhs_batch_dims);
    attrs.rhs_batch_dims = WithFront(0, attrs.rhs_batch_dims);
    return s.AddBatched(i, {x.op, y.op}, std::move(attrs));
  }
  // The batch dim is the first free one of its operand.
  const int64_t at = x.batched ? batch_dims : batch_dims + free;
  Dims dims(i.shape().dims().begin(), i.shape().dims().end());
  dims.insert(dims.begin() + at, s.size());
  const Shape shape(i.shape().dtype(), dims);
  return BatchScope::Array(
      s.MoveDim(s.b.Add(i.opcode(), {x.op, y.op}, std::move(attrs), {}, &shape), at, 0));
}

BatchValue BatchScaledDot(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  hlo::DotAttrs attrs = i.attrs_as<hlo::DotAttrs>();
  attrs.lhs_batch_dims = WithFront(0, Shifted(attrs.lhs_batch_dims));
  attrs.rhs_batch_dims = WithFront(0, Shifted(attrs.rhs_batch_dims));
  attrs.lhs_contracting_dims = Shifted(attrs.lhs_contracting_dims);
  attrs.rhs_contracting_dims = Shifted(attrs.rhs_contracting_dims);
  return s.AddBatched(i, s.FullOperands(operands), std::move(attrs));
}

BatchValue BatchConvolution(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  const BatchValue &x = operands[0], &kernel = operands[1];
  hlo::ConvolutionAttrs attrs = i.attrs_as<hlo::ConvolutionAttrs>();
  const hlo::ConvDims& at = attrs.dim_labels;
  if (s.size() * i.shape().num_elements() == 0)
    return BatchScope::Array(s.b.Full(s.Batched(i.shape()), 0));
  if (x.batched && kernel.batched) {  // each sample has groups of its own
    const bool by_batch = attrs.batch_group_count > 1;
    (by_batch ? attrs.batch_group_count : attrs.feature_group_count) *= s.size();
    const Op image = Fold(s, x.op, by_batch ? at.input_batch : at.input_feature, 1);
    const Op filters = Fold(s, kernel.op, at.kernel_output_feature, 1);
    const Op y = AddFolded(s, i, {image, filters}, attrs, at.output_feature);
    return BatchScope::Array(Unfold(s, y, at.output_feature, 1));
  }
  if (x.batched) {  // more images
    const Op images = Fold(s, x.op, at.input_batch, attrs.batch_group_count);
    const Op y = AddFolded(s, i, {images, kernel.op}, attrs, at.output_batch);
    return BatchScope::Array(Unfold(s, y, at.output_batch, 1));
  }
  const int64_t groups = attrs.feature_group_count * attrs.batch_group_count;
  const Op filters = Fold(s, kernel.op, at.kernel_output_feature, groups);
  const Op y = AddFolded(s, i, {x.op, filters}, attrs, at.output_feature);
  return BatchScope::Array(Unfold(s, y, at.output_feature, groups));
}

// Statistics are those of each feature, and each sample has features of its own.
BatchValue BatchBatchNorm(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  Builder& b = s.b;
  const int64_t feature = i.attrs_as<hlo::BatchNormAttrs>().feature_index;
  std::vector<Op> folded;
  for (const BatchValue& operand : operands) {
    const Op full = s.Full(operand);
    folded.push_back(Fold(s, full, full.rank() == 2 ? 0 : feature, 1));
  }
  const Op made = b.Add(i.opcode(), folded, i.attrs());
  if (!made.shape().IsTuple()) return BatchScope::Array(Unfold(s, made, feature, 1));
  BatchValue results{.is_tuple = true};
  for (int64_t k = 0; k < 3; ++k) {
    results.elements.push_back(
        BatchScope::Array(Unfold(s, b.GetTupleElement(made, k), k == 0 ? feature : 0, 1)));
  }
  return results;
}

}  // namespace lazuli::lowering
