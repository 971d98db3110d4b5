// Views of the pieces along a dim: tensor_split, hsplit and its like, and the unsafe splits. split, chunk
// and unbind are in views.cc.
#include <algorithm>
#include <string_view>

#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"

namespace lazuli::lazy {
namespace {

void CheckRankAtLeast(std::string_view op, const Tensor& x, int64_t rank) {
  if (x.rank() >= rank) return;
  ThrowRecordError(op,
                   InvalidArgument("takes a rank of at least ", rank, ", but x is ", x.shape()));
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

}  // namespace lazuli::lazy
