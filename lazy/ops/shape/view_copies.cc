// The functions called _copy: the elements of a view in memory of their own.
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"

namespace lazuli::lazy {
namespace {

Tensors Cloned(const Tensors& views) {
  Tensors all;
  for (const Tensor& x : views) all.push_back(Clone(x));
  return all;
}

}  // namespace

Tensor AliasCopy(const Tensor& x) { return Clone(x); }
Tensor AsStridedCopy(const Tensor& x, absl::Span<const int64_t> size,
                     absl::Span<const int64_t> stride, std::optional<int64_t> storage_offset) {
  return Clone(AsStridedView(x, size, stride, storage_offset));
}
Tensor DetachCopy(const Tensor& x) { return Clone(Detach(x)); }
Tensor DiagonalCopy(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  return Clone(DiagonalView(x, offset, dim1, dim2));
}
Tensor ExpandCopy(const Tensor& x, absl::Span<const int64_t> dims) {
  return Clone(ExpandView(x, dims));
}
Tensor NarrowCopy(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  return Clone(NarrowView(x, dim, start, length));
}
Tensor PermuteCopy(const Tensor& x, absl::Span<const int64_t> dims) {
  return Clone(PermuteView(x, dims));
}
Tensor SelectCopy(const Tensor& x, int64_t dim, int64_t index) {
  return Clone(SelectView(x, dim, index));
}
Tensor SliceCopy(const Tensor& x, int64_t dim, std::optional<int64_t> start,
                 std::optional<int64_t> end, int64_t step) {
  const int64_t d = NormalizeDim("slice_copy", dim, x.rank()), n = x.dim(d);
  if (step < 1) ThrowRecordError("slice_copy", InvalidArgument("step must be positive, is ", step));
  Dims starts(At(x.rank()), 0), limits = DimsOf(x.shape()), steps(At(x.rank()), 1);
  starts[At(d)] = Bounded(start.value_or(0), 0, n);
  limits[At(d)] = Bounded(end.value_or(n), starts[At(d)], n);
  steps[At(d)] = step;
  return Clone(Slice(x, starts, limits, steps));
}
Tensors SplitCopy(const Tensor& x, int64_t split_size, int64_t dim) {
  return Cloned(SplitView(x, split_size, dim));
}
Tensors SplitWithSizesCopy(const Tensor& x, absl::Span<const int64_t> split_sizes, int64_t dim) {
  return Cloned(SplitView(x, split_sizes, dim));
}
Tensor SqueezeCopy(const Tensor& x) { return Clone(SqueezeView(x)); }
Tensor SqueezeCopy(const Tensor& x, absl::Span<const int64_t> dim) {
  return Clone(SqueezeView(x, dim));
}
Tensor TCopy(const Tensor& x) { return Clone(TView(x)); }
Tensor TransposeCopy(const Tensor& x, int64_t dim0, int64_t dim1) {
  return Clone(TransposeView(x, dim0, dim1));
}
Tensors UnbindCopy(const Tensor& x, int64_t dim) { return Cloned(UnbindView(x, dim)); }
Tensor UnfoldCopy(const Tensor& x, int64_t dimension, int64_t size, int64_t step) {
  return Clone(UnfoldView(x, dimension, size, step));
}
Tensor UnsqueezeCopy(const Tensor& x, int64_t dim) { return Clone(UnsqueezeView(x, dim)); }
Tensor ViewAsComplexCopy(const Tensor& x) { return Clone(ViewAsComplexView(x)); }
Tensor ViewAsRealCopy(const Tensor& x) { return Clone(ViewAsRealView(x)); }
Tensor ViewCopy(const Tensor& x, absl::Span<const int64_t> dims) {
  return Clone(ViewView(x, dims));
}
Tensor ViewCopy(const Tensor& x, DType dtype) { return Clone(ViewView(x, dtype)); }

}  // namespace lazuli::lazy
