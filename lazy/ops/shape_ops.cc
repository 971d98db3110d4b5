#include "lazy/ops/shape_ops.h"

#include <algorithm>
#include <limits>

namespace lazuli::lazy {

Tensors PermuteOp::Vjp(const Saved&, const Tensor& dy) const {
  Dims inverse(dims.size());
  for (std::size_t i = 0; i < dims.size(); ++i)
    inverse[static_cast<std::size_t>(dims[i])] = static_cast<int64_t>(i);
  return {Permute(dy, inverse)};
}

Tensors SliceOp::Vjp(const Saved& s, const Tensor& dy) const {
  // Back to where the elements came from: `starts` zeros before, stride - 1 between, the rest
  // after.
  Dims high, interior;
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const int64_t n = dy.dim(static_cast<int64_t>(i)), stride = strides[i];
    const int64_t covered = starts[i] + (n == 0 ? 0 : (n - 1) * stride + 1);
    high.push_back(s.shape().dim(static_cast<int64_t>(i)) - covered);
    interior.push_back(stride - 1);
  }
  return {PadZeros(dy, starts, high, interior)};
}

Tensors PadOp::Vjp(const Saved& s, const Tensor& dy) const {
  // Undo the outer padding (negative padding pads back), then take every (interior + 1)-th element.
  Dims unlow, unhigh, zero(low.size(), 0), starts(low.size(), 0), strides;
  for (std::size_t i = 0; i < low.size(); ++i) {
    unlow.push_back(-low[i]);
    unhigh.push_back(-high[i]);
    strides.push_back(interior[i] + 1);
  }
  const Tensor inner = PadZeros(dy, unlow, unhigh, zero);
  const bool dense = std::all_of(strides.begin(), strides.end(), [](int64_t v) { return v == 1; });
  if (dense) return {inner};
  const Tensor x = Slice(inner, starts, inner.shape().dims(), strides);
  return {Reshape(x, s.shape().dims())};
}

Tensors CatOp::Vjp(const Saved& s, const Tensor& dy) const {
  Tensors grads(s.size());
  int64_t start = 0;
  for (std::size_t i = 0; i < s.size(); ++i) {
    const int64_t n = s.shape(i).dim(dim);
    if (s.needs(i)) grads[i] = To(Narrow(dy, dim, start, n), s.shape(i).dtype());
    start += n;
  }
  return grads;
}

// --- functions

Tensor Reshape(const Tensor& x, absl::Span<const int64_t> dims) {
  Dims result(dims.begin(), dims.end());
  int64_t known = 1;
  int unknown = -1;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] == -1 && unknown < 0)
      unknown = static_cast<int>(i);
    else if (result[i] < 0)
      ThrowRecordError("reshape",
                       InvalidArgument("dims (", Join(dims, ", "), ") have more than one unknown"));
    else if (__builtin_mul_overflow(known, result[i], &known))
      known = std::numeric_limits<int64_t>::max();  // which a 0 further on makes 0
  }
  const int64_t count = x.shape().num_elements();
  if (unknown >= 0 && known > 0 && count % known == 0) {
    result[static_cast<std::size_t>(unknown)] = count / known;
    known = count;
  }
  if (known != count || (unknown >= 0 && result[static_cast<std::size_t>(unknown)] < 0)) {
    ThrowRecordError(
        "reshape", InvalidArgument(x.shape(), " has ", count, " elements, which do not fit dims (",
                                   Join(dims, ", "), ")"));
  }
  if (x.shape().dims() == absl::MakeConstSpan(result)) return x;
  return Record(ReshapeOp{std::move(result)}, x);
}

Tensor BroadcastTo(const Tensor& x, absl::Span<const int64_t> dims) {
  if (x.shape().dims() == dims) return x;
  Dims result(dims.begin(), dims.end());
  const int64_t extra = static_cast<int64_t>(dims.size()) - x.rank();
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] == -1 && static_cast<int64_t>(i) >= extra)
      result[i] = x.dim(static_cast<int64_t>(i) - extra);
  }
  return Record(BroadcastToOp{std::move(result)}, x);
}

Tensor Permute(const Tensor& x, absl::Span<const int64_t> dims) {
  Dims result;
  for (int64_t d : dims) result.push_back(NormalizeDim("permute", d, x.rank()));
  Dims sorted = result;
  std::sort(sorted.begin(), sorted.end());
  bool valid = static_cast<int64_t>(sorted.size()) == x.rank(), identity = valid;
  for (std::size_t i = 0; i < sorted.size(); ++i) {
    valid = valid && sorted[i] == static_cast<int64_t>(i);
    identity = identity && result[i] == static_cast<int64_t>(i);
  }
  if (!valid)
    ThrowRecordError("permute", InvalidArgument("dims (", Join(dims, ", "),
                                                ") are no permutation of ", x.shape()));
  return identity ? x : Record(PermuteOp{std::move(result)}, x);
}

Tensor Transpose(const Tensor& x, int64_t dim0, int64_t dim1) {
  Dims dims(static_cast<std::size_t>(x.rank()));
  for (std::size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<int64_t>(i);
  std::swap(dims[static_cast<std::size_t>(NormalizeDim("transpose", dim0, x.rank()))],
            dims[static_cast<std::size_t>(NormalizeDim("transpose", dim1, x.rank()))]);
  return Permute(x, dims);
}

Tensor Slice(const Tensor& x, absl::Span<const int64_t> starts, absl::Span<const int64_t> limits,
             absl::Span<const int64_t> strides) {
  return Record(SliceOp{Dims(starts.begin(), starts.end()), Dims(limits.begin(), limits.end()),
                        Dims(strides.begin(), strides.end())},
                x);
}

Tensor Narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  const int64_t d = NormalizeDim("narrow", dim, x.rank());
  int64_t end = 0;
  if (__builtin_add_overflow(start, length, &end)) end = std::numeric_limits<int64_t>::max();
  if (start < 0 || length < 0 || end > x.dim(d)) {
    ThrowRecordError("narrow", OutOfRange("[", start, ", ", end, ") is out of range for dim ", d,
                                          " of ", x.shape()));
  }
  if (length == x.dim(d)) return x;
  Dims starts(static_cast<std::size_t>(x.rank()), 0), strides(starts.size(), 1);
  Dims limits(x.shape().dims().begin(), x.shape().dims().end());
  starts[static_cast<std::size_t>(d)] = start;
  limits[static_cast<std::size_t>(d)] = start + length;
  return Slice(x, starts, limits, strides);
}

Tensor PadZeros(const Tensor& x, absl::Span<const int64_t> low, absl::Span<const int64_t> high,
                absl::Span<const int64_t> interior) {
  auto zero = [](absl::Span<const int64_t> v) {
    return std::all_of(v.begin(), v.end(), [](int64_t e) { return e == 0; });
  };
  if (zero(low) && zero(high) && zero(interior)) return x;
  return Record(PadOp{Dims(low.begin(), low.end()), Dims(high.begin(), high.end()),
                      Dims(interior.begin(), interior.end())},
                x);
}

Tensor Flip(const Tensor& x, absl::Span<const int64_t> dims) {
  return Record(FlipOp{NormalizeDims("flip", dims, x.rank())}, x);
}

Tensor Cat(absl::Span<const Tensor> xs, int64_t dim) {
  if (xs.empty()) ThrowRecordError("cat", InvalidArgument("needs at least one tensor"));
  DType dtype = xs[0].dtype();
  const int64_t d = NormalizeDim("cat", dim, xs[0].rank());
  for (const Tensor& x : xs) {
    bool fits = x.rank() == xs[0].rank();
    for (int64_t i = 0; fits && i < x.rank(); ++i) fits = i == d || x.dim(i) == xs[0].dim(i);
    if (!fits)
      ThrowRecordError("cat", InvalidArgument(xs[0].shape(), " and ", x.shape(),
                                              " differ in more than dim ", d));
    const auto common = Promote(dtype, x.dtype());
    if (!common)
      ThrowRecordError("cat", InvalidArgument("dtypes of ", xs[0].shape(), " and ", x.shape(),
                                              " have no common type"));
    dtype = *common;
  }
  Tensors converted;
  for (const Tensor& x : xs) converted.push_back(To(x, dtype));
  std::vector<Operand> in(converted.begin(), converted.end());
  return RecordOne(CatOp{d}, in);
}

Tensor Squeeze(const Tensor& x, std::optional<int64_t> dim) {
  Dims dims;
  const int64_t only = dim ? NormalizeDim("squeeze", *dim, x.rank()) : -1;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (x.dim(i) != 1 || (dim && i != only)) dims.push_back(x.dim(i));
  }
  return Reshape(x, dims);
}

Tensor Unsqueeze(const Tensor& x, int64_t dim) {
  Dims dims(x.shape().dims().begin(), x.shape().dims().end());
  dims.insert(dims.begin() + NormalizeDim("unsqueeze", dim, x.rank() + 1), 1);
  return Reshape(x, dims);
}

Tensor Flatten(const Tensor& x, int64_t start_dim, int64_t end_dim) {
  if (x.rank() == 0) return Reshape(x, {1});
  const int64_t first = NormalizeDim("flatten", start_dim, x.rank()),
                last = NormalizeDim("flatten", end_dim, x.rank());
  if (first > last)
    ThrowRecordError("flatten",
                     InvalidArgument("start_dim ", start_dim, " comes after end_dim ", end_dim));
  Dims dims;
  int64_t flat = 1;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (i < first || i > last)
      dims.push_back(x.dim(i));
    else
      flat *= x.dim(i);
    if (i == last) dims.push_back(flat);
  }
  return Reshape(x, dims);
}

Tensor Stack(absl::Span<const Tensor> xs, int64_t dim) {
  if (xs.empty()) ThrowRecordError("stack", InvalidArgument("needs at least one tensor"));
  for (const Tensor& x : xs) {
    if (SameDims(x.shape(), xs[0].shape())) continue;
    ThrowRecordError("stack",
                     InvalidArgument("shapes differ: ", xs[0].shape(), " and ", x.shape()));
  }
  const int64_t d = NormalizeDim("stack", dim, xs[0].rank() + 1);
  Tensors rows;
  for (const Tensor& x : xs) rows.push_back(Unsqueeze(x, d));
  return Cat(rows, d);
}

namespace {

// The part of a matrix, or of matrices, where `keep` of column, row + diagonal holds.
Tensor Triangle(std::string_view op, const Tensor& x, int64_t diagonal,
                Tensor (*keep)(const Operand&, const Operand&)) {
  if (x.rank() < 2) ThrowRecordError(op, InvalidArgument("takes a matrix, not ", x.shape()));
  const Dims dims{x.dim(x.rank() - 2), x.dim(x.rank() - 1)};
  const Tensor row = Positions(dims, 0, x.device()), column = Positions(dims, 1, x.device());
  return Where(keep(column, row + static_cast<double>(diagonal)), x, Constant(0, x.dtype()));
}

void CheckPositive(std::string_view op, std::string_view what, int64_t value) {
  if (value < 1) ThrowRecordError(op, InvalidArgument(what, " must be at least 1, is ", value));
}

Tensors Pieces(const Tensor& x, int64_t size, int64_t dim) {
  Tensors pieces;
  const int64_t n = x.dim(dim);
  for (int64_t start = 0; start < n; start += size)
    pieces.push_back(Narrow(x, dim, start, std::min(size, n - start)));
  if (pieces.empty()) pieces.push_back(x);
  return pieces;
}

}  // namespace

namespace {

// The dims of x with dims of size 1 before them, so that there are `rank`.
Dims PaddedDims(std::string_view op, const Tensor& x, std::size_t rank) {
  if (rank < static_cast<std::size_t>(x.rank())) {
    ThrowRecordError(op, InvalidArgument(rank, " numbers are too few for ", x.shape()));
  }
  Dims dims(rank - static_cast<std::size_t>(x.rank()), 1);
  dims.insert(dims.end(), x.shape().dims().begin(), x.shape().dims().end());
  return dims;
}

}  // namespace

Tensor Expand(const Tensor& x, absl::Span<const int64_t> dims) {
  const Dims own = PaddedDims("expand", x, dims.size());
  Dims wanted(dims.begin(), dims.end());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool is_new = i + static_cast<std::size_t>(x.rank()) < wanted.size();
    if (wanted[i] == -1 && !is_new) wanted[i] = own[i];
  }
  return BroadcastTo(x, wanted);
}

Tensor ExpandAs(const Tensor& x, const Tensor& other) {
  return BroadcastTo(x, other.shape().dims());
}

Tensor Repeat(const Tensor& x, absl::Span<const int64_t> counts) {
  const Dims own = PaddedDims("repeat", x, counts.size());
  Dims apart, blocks, joined;  // [2, 3] twice along each: [1, 2, 1, 3] to [2, 2, 2, 3] to [4, 6]
  for (std::size_t i = 0; i < own.size(); ++i) {
    apart.insert(apart.end(), {1, own[i]});
    blocks.insert(blocks.end(), {counts[i], own[i]});
    joined.push_back(counts[i] * own[i]);
  }
  return Reshape(BroadcastTo(Reshape(x, apart), blocks), joined);
}

Tensors Unbind(const Tensor& x, int64_t dim) {
  const int64_t d = NormalizeDim("unbind", dim, x.rank());
  Tensors slices;
  for (int64_t i = 0; i < x.dim(d); ++i) slices.push_back(Select(x, d, i));
  return slices;
}

Tensor Tril(const Tensor& x, int64_t diagonal) { return Triangle("tril", x, diagonal, Le); }
Tensor Triu(const Tensor& x, int64_t diagonal) { return Triangle("triu", x, diagonal, Ge); }

Tensors Split(const Tensor& x, int64_t size, int64_t dim) {
  CheckPositive("split", "size", size);
  return Pieces(x, size, NormalizeDim("split", dim, x.rank()));
}
Tensors Chunk(const Tensor& x, int64_t chunks, int64_t dim) {
  CheckPositive("chunk", "chunks", chunks);
  const int64_t d = NormalizeDim("chunk", dim, x.rank());
  return Pieces(x, std::max<int64_t>((x.dim(d) + chunks - 1) / chunks, 1), d);
}

}  // namespace lazuli::lazy
