// Pieces along a dim that are not all of one size, ranks that tensors have at least, and the elements
// of views in memory of their own.
#include <algorithm>
#include <string_view>

#include "lazy/ops/functions.h"
#include "lazy/ops/shape_ops.h"

namespace lazuli::lazy {
namespace {

void CheckRankAtLeast(std::string_view op, const Tensor& x, int64_t rank) {
  if (x.rank() >= rank) return;
  ThrowRecordError(op,
                   InvalidArgument("takes a rank of at least ", rank, ", but x is ", x.shape()));
}

// A position that counts from the end if it is negative, within [low, n].
int64_t Bounded(int64_t position, int64_t low, int64_t n) {
  return std::clamp(position < 0 ? position + n : position, low, std::max(low, n));
}

Tensors EqualPieces(std::string_view op, const Tensor& x, int64_t sections, int64_t dim) {
  if (sections < 1 || x.dim(dim) % sections != 0) {
    ThrowRecordError(
        op, InvalidArgument("dim ", dim, " of ", x.shape(), " is not divisible by ", sections));
  }
  return TensorSplitView(x, sections, dim);
}

int64_t Across(const Tensor& x) {  // the dim that hsplit goes along
  CheckRankAtLeast("hsplit", x, 1);
  return x.rank() == 1 ? 0 : 1;
}

template <class F>
Tensors Each(absl::Span<const Tensor> xs, F&& f) {
  Tensors all;
  for (const Tensor& x : xs) all.push_back(f(x));
  return all;
}
Tensors Cloned(const Tensors& views) {
  return Each(views, [](const Tensor& x) { return Clone(x); });
}

}  // namespace

Tensors TensorSplitView(const Tensor& x, int64_t sections, int64_t dim) {
  CheckRankAtLeast("tensor_split", x, 1);
  const int64_t d = NormalizeDim("tensor_split", dim, x.rank()), n = x.dim(d);
  if (sections < 1) {
    ThrowRecordError("tensor_split",
                     InvalidArgument("number of sections must be larger than 0, got ", sections));
  }
  constexpr int64_t kMost = int64_t{1} << 24;  // pieces, each a tensor
  if (sections > kMost) {
    ThrowRecordError("tensor_split", InvalidArgument(sections, " sections are too many"));
  }
  Tensors pieces;
  for (int64_t i = 0, start = 0; i < sections; ++i) {
    const int64_t length = n / sections + (i < n % sections ? 1 : 0);
    pieces.push_back(NarrowView(x, d, start, length));
    start += length;
  }
  return pieces;
}
Tensors TensorSplitView(const Tensor& x, absl::Span<const int64_t> indices, int64_t dim) {
  CheckRankAtLeast("tensor_split", x, 1);
  const int64_t d = NormalizeDim("tensor_split", dim, x.rank()), n = x.dim(d);
  Tensors pieces;
  int64_t start = 0;
  for (std::size_t i = 0; i <= indices.size(); ++i) {
    const int64_t from = Bounded(start, 0, n);
    const int64_t end = Bounded(i < indices.size() ? indices[i] : n, from, n);
    pieces.push_back(NarrowView(x, d, from, end - from));
    if (i < indices.size()) start = indices[i];
  }
  return pieces;
}

Tensors HsplitView(const Tensor& x, int64_t sections) {
  return EqualPieces("hsplit", x, sections, Across(x));
}
Tensors HsplitView(const Tensor& x, absl::Span<const int64_t> indices) {
  return TensorSplitView(x, indices, Across(x));
}
Tensors VsplitView(const Tensor& x, int64_t sections) {
  CheckRankAtLeast("vsplit", x, 2);
  return EqualPieces("vsplit", x, sections, 0);
}
Tensors VsplitView(const Tensor& x, absl::Span<const int64_t> indices) {
  CheckRankAtLeast("vsplit", x, 2);
  return TensorSplitView(x, indices, 0);
}
Tensors DsplitView(const Tensor& x, int64_t sections) {
  CheckRankAtLeast("dsplit", x, 3);
  return EqualPieces("dsplit", x, sections, 2);
}
Tensors DsplitView(const Tensor& x, absl::Span<const int64_t> indices) {
  CheckRankAtLeast("dsplit", x, 3);
  return TensorSplitView(x, indices, 2);
}

Tensors SplitWithSizesView(const Tensor& x, absl::Span<const int64_t> split_sizes, int64_t dim) {
  return SplitView(x, split_sizes, dim);
}
Tensors UnsafeSplitView(const Tensor& x, int64_t split_size, int64_t dim) {
  const int64_t d = NormalizeDim("unsafe_split", dim, x.rank()), n = x.dim(d);
  if (split_size < 1 && (split_size < 0 || n > 0)) {
    ThrowRecordError("unsafe_split",
                     InvalidArgument("split_size must be at least 1, is ", split_size));
  }
  Tensors pieces;
  for (int64_t start = 0; start < n; start += split_size)
    pieces.push_back(NarrowView(x, d, start, std::min(split_size, n - start)));
  if (pieces.empty()) pieces.push_back(NarrowView(x, d, 0, n));
  return pieces;
}
Tensors UnsafeSplitWithSizesView(const Tensor& x, absl::Span<const int64_t> split_sizes,
                                 int64_t dim) {
  const int64_t d = NormalizeDim("unsafe_split_with_sizes", dim, x.rank());
  int64_t start = 0;
  Tensors pieces;
  for (const int64_t n : split_sizes) {
    pieces.push_back(NarrowView(x, d, start, n));
    start += n;
  }
  if (start != x.dim(d)) {
    ThrowRecordError("unsafe_split_with_sizes",
                     InvalidArgument("sizes (", Join(split_sizes, ", "), ") add up to ", start,
                                     ", dim ", d, " of ", x.shape(), " has ", x.dim(d)));
  }
  return pieces;
}
Tensors UnsafeChunkView(const Tensor& x, int64_t chunks, int64_t dim) {
  const int64_t d = NormalizeDim("unsafe_chunk", dim, x.rank());
  if (chunks < 1) {
    ThrowRecordError("unsafe_chunk", InvalidArgument("chunks must be at least 1, is ", chunks));
  }
  return UnsafeSplitView(x, std::max<int64_t>((x.dim(d) + chunks - 1) / chunks, 1), d);
}

Tensor Atleast1dView(const Tensor& x) { return x.rank() == 0 ? ReshapeView(x, {1}) : x; }
Tensor Atleast2dView(const Tensor& x) {
  return x.rank() == 0 ? ReshapeView(x, {1, 1}) : x.rank() == 1 ? UnsqueezeView(x, 0) : x;
}
Tensor Atleast3dView(const Tensor& x) {
  return x.rank() < 3 ? UnsqueezeView(Atleast2dView(x), -1) : x;
}
Tensors Atleast1dView(absl::Span<const Tensor> xs) {
  return Each(xs, [](const Tensor& x) { return Atleast1dView(x); });
}
Tensors Atleast2dView(absl::Span<const Tensor> xs) {
  return Each(xs, [](const Tensor& x) { return Atleast2dView(x); });
}
Tensors Atleast3dView(absl::Span<const Tensor> xs) {
  return Each(xs, [](const Tensor& x) { return Atleast3dView(x); });
}

Tensor AdjointView(const Tensor& x) {
  if (x.rank() == 1)
    ThrowRecordError("adjoint", InvalidArgument("takes matrices, not ", x.shape()));
  const Tensor transposed = x.rank() == 0 ? ReshapeView(x, {}) : TransposeView(x, -2, -1);
  return IsComplex(x.dtype()) ? Conj(transposed) : transposed;
}

// --- copies

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
