#include "lazy/ops/shape/shape_ops.h"

#include <algorithm>
#include <limits>

#include "lazy/ops/core/dims.h"

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

lowering::Op SelectOp::Lower(lowering::Builder& b, lowering::Op x) const {
  Dims starts(static_cast<std::size_t>(x.rank()), 0), strides(starts.size(), 1);
  Dims limits = DimsOf(x.shape());
  const auto d = static_cast<std::size_t>(dim);
  if (d >= starts.size() || index < 0 || index >= limits[d]) {
    return b.Error(
        OutOfRange("index ", index, " is out of range for dim ", dim, " of ", x.shape()));
  }
  starts[d] = index;
  limits[d] = index + 1;
  Dims dims = DimsOf(x.shape());
  dims.erase(dims.begin() + dim);
  return b.Reshape(b.Slice(x, starts, limits, strides), dims);
}

Tensors SelectOp::Vjp(const Saved& s, const Tensor& dy) const {
  Dims low(static_cast<std::size_t>(s.shape().rank()), 0), high = low;
  const Dims interior = low;
  low[static_cast<std::size_t>(dim)] = index;
  high[static_cast<std::size_t>(dim)] = s.shape().dim(dim) - index - 1;
  return {PadZeros(Unsqueeze(dy, dim), low, high, interior)};
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

Dims ReshapedDims(std::string_view op, const Shape& x, absl::Span<const int64_t> dims) {
  Dims result(dims.begin(), dims.end());
  int64_t known = 1;
  int unknown = -1;
  for (std::size_t i = 0; i < result.size(); ++i) {
    if (result[i] == -1 && unknown < 0)
      unknown = static_cast<int>(i);
    else if (result[i] < 0)
      ThrowRecordError(op,
                       InvalidArgument("dims (", Join(dims, ", "), ") have more than one unknown"));
    else if (__builtin_mul_overflow(known, result[i], &known))
      known = std::numeric_limits<int64_t>::max();  // which a 0 further on makes 0
  }
  const int64_t count = x.num_elements();
  if (unknown >= 0 && known > 0 && count % known == 0) {
    result[static_cast<std::size_t>(unknown)] = count / known;
    known = count;
  }
  if (known != count || (unknown >= 0 && result[static_cast<std::size_t>(unknown)] < 0)) {
    ThrowRecordError(op, InvalidArgument(x, " has ", count, " elements, which do not fit dims (",
                                         Join(dims, ", "), ")"));
  }
  return result;
}

Tensor Reshape(const Tensor& x, absl::Span<const int64_t> dims) {
  Dims result = ReshapedDims("reshape", x.shape(), dims);
  if (x.shape().dims() == absl::MakeConstSpan(result)) return x;
  if (x.shape().num_elements() == 0) CheckShape("reshape", result, x.dtype());
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

Dims Permutation(std::string_view op, const Shape& x, absl::Span<const int64_t> dims) {
  Dims result;
  for (int64_t d : dims) result.push_back(NormalizeDim(op, d, x.rank()));
  Dims sorted = result;
  std::sort(sorted.begin(), sorted.end());
  bool valid = static_cast<int64_t>(sorted.size()) == x.rank();
  for (std::size_t i = 0; valid && i < sorted.size(); ++i)
    valid = sorted[i] == static_cast<int64_t>(i);
  if (!valid) {
    ThrowRecordError(op,
                     InvalidArgument("dims (", Join(dims, ", "), ") are not a permutation of ", x));
  }
  return result;
}

Tensor Permute(const Tensor& x, absl::Span<const int64_t> dims) {
  Dims result = Permutation("permute", x.shape(), dims);
  return std::is_sorted(result.begin(), result.end()) ? x : Record(PermuteOp{std::move(result)}, x);
}

Dims TransposedDims(const Shape& x, int64_t dim0, int64_t dim1) {
  Dims dims(static_cast<std::size_t>(x.rank()));
  for (std::size_t i = 0; i < dims.size(); ++i) dims[i] = static_cast<int64_t>(i);
  const int64_t rank = std::max<int64_t>(x.rank(), 1);  // of rank 0 nothing is to be exchanged
  const int64_t a = NormalizeDim("transpose", dim0, rank);
  const int64_t b = NormalizeDim("transpose", dim1, rank);
  if (!dims.empty())
    std::swap(dims[static_cast<std::size_t>(a)], dims[static_cast<std::size_t>(b)]);
  return dims;
}

Tensor Transpose(const Tensor& x, int64_t dim0, int64_t dim1) {
  return Permute(x, TransposedDims(x.shape(), dim0, dim1));
}

Tensor Slice(const Tensor& x, absl::Span<const int64_t> starts, absl::Span<const int64_t> limits,
             absl::Span<const int64_t> strides) {
  return Record(SliceOp{Dims(starts.begin(), starts.end()), Dims(limits.begin(), limits.end()),
                        Dims(strides.begin(), strides.end())},
                x);
}

std::pair<int64_t, int64_t> CheckedNarrow(const Shape& x, int64_t dim, int64_t start,
                                          int64_t length) {
  const int64_t d = NormalizeDim("narrow", dim, x.rank());
  if (start < 0) start += x.dim(d);
  int64_t end = 0;
  if (__builtin_add_overflow(start, length, &end)) end = std::numeric_limits<int64_t>::max();
  if (start < 0 || length < 0 || end > x.dim(d)) {
    ThrowRecordError("narrow",
                     OutOfRange("[", start, ", ", end, ") is out of range for dim ", d, " of ", x));
  }
  return {d, start};
}

Tensor Narrow(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  const auto [d, first] = CheckedNarrow(x.shape(), dim, start, length);
  if (length == x.dim(d)) return x;
  Dims starts(static_cast<std::size_t>(x.rank()), 0), strides(starts.size(), 1);
  Dims limits = DimsOf(x.shape());
  starts[static_cast<std::size_t>(d)] = first;
  limits[static_cast<std::size_t>(d)] = first + length;
  return Slice(x, starts, limits, strides);
}

std::pair<int64_t, int64_t> CheckedSelect(const Shape& x, int64_t dim, int64_t index) {
  const int64_t d = NormalizeDim("select", dim, x.rank());
  const int64_t at = index < 0 ? index + x.dim(d) : index;
  if (at < 0 || at >= x.dim(d)) {
    ThrowRecordError("select",
                     OutOfRange("index ", index, " is out of range for dim ", d, " of ", x));
  }
  return {d, at};
}

Tensor Select(const Tensor& x, int64_t dim, int64_t index) {
  const auto [d, at] = CheckedSelect(x.shape(), dim, index);
  return Record(SelectOp{d, at}, x);
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
  if (dims.empty()) return Clone(x);
  return Record(FlipOp{NormalizeDims("flip", dims, x.rank())}, x);
}

Tensor Cat(absl::Span<const Tensor> xs, int64_t dim) {
  if (xs.empty()) ThrowRecordError("cat", InvalidArgument("needs at least one tensor"));
  // A tensor [0] fits all others, as PyTorch has it, and adds nothing.
  const auto is_nothing = [](const Tensor& x) { return x.rank() == 1 && x.dim(0) == 0; };
  const auto first = std::find_if_not(xs.begin(), xs.end(), is_nothing);
  const Tensor& model = first == xs.end() ? xs[0] : *first;
  DType dtype = xs[0].dtype();
  const int64_t d = NormalizeDim("cat", dim, model.rank());
  for (const Tensor& x : xs) {
    bool fits = x.rank() == model.rank();
    for (int64_t i = 0; fits && i < x.rank(); ++i) fits = i == d || x.dim(i) == model.dim(i);
    if (!fits && !is_nothing(x))
      ThrowRecordError("cat", InvalidArgument(model.shape(), " and ", x.shape(),
                                              " differ in more than dim ", d));
    const auto common = Promote(dtype, x.dtype());
    if (!common)
      ThrowRecordError("cat", InvalidArgument("dtypes of ", xs[0].shape(), " and ", x.shape(),
                                              " have no common type"));
    dtype = *common;
  }
  Tensors converted;
  for (const Tensor& x : xs) {
    if (x.rank() == model.rank()) converted.push_back(To(x, dtype));
  }
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
  Dims dims = DimsOf(x.shape());
  dims.insert(dims.begin() + NormalizeDim("unsqueeze", dim, x.rank() + 1), 1);
  return Reshape(x, dims);
}

Dims FlattenedDims(const Shape& x, int64_t start_dim, int64_t end_dim) {
  if (x.rank() == 0) return {1};
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
  return dims;
}

Tensor Flatten(const Tensor& x, int64_t start_dim, int64_t end_dim) {
  return Reshape(x, FlattenedDims(x.shape(), start_dim, end_dim));
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

}  // namespace lazuli::lazy
