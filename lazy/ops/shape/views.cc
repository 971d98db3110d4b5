// The functions that give views: the elements of what an op gives, with the memory they have.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/hlo/shapes/shape_inference.h"
#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/elementwise/complex.h"
#include "lazy/ops/shape/shape_ops.h"
#include "lazy/ops/shape/strided.h"

namespace lazuli::lazy {
namespace {

// Strides of the same elements, which have `strides`, under other dims; none if they lie in memory
// so that there are none. As torch finds them.
std::optional<Dims> ReshapedStrides(absl::Span<const int64_t> from, const Dims& strides,
                                    absl::Span<const int64_t> to) {
  if (std::find(from.begin(), from.end(), 0) != from.end())
    return from == to ? strides : ContiguousStrides(to);
  if (from.empty()) return Dims(to.size(), 1);
  Dims result(to.size());
  auto next = static_cast<int64_t>(to.size()) - 1;
  int64_t base = strides.back(), count = 1, given = 1;  // of dims of `from` that lie together
  for (std::size_t i = from.size(); i-- > 0;) {
    count *= from[i];
    if (i != 0 && (from[i - 1] == 1 || strides[i - 1] == count * base)) continue;
    for (; next >= 0 && (given < count || to[At(next)] == 1); --next) {
      result[At(next)] = given * base;
      given *= to[At(next)];
    }
    if (given != count) return std::nullopt;
    if (i > 0) base = strides[i - 1];
    count = given = 1;
  }
  return next < 0 ? std::optional(std::move(result)) : std::nullopt;
}

Tensor RecordReshaped(const Tensor& x, const Dims& dims, Geometry geometry) {
  ReshapeOp op{dims};
  return RecordView(std::move(op), x, x, dims, std::move(geometry));
}

Tensor Permuted(const Tensor& x, Dims permutation) {
  const Geometry geometry = GeometryOf(x);
  Shape shape(x.dtype(), permutation);
  Dims strides(permutation.begin(), permutation.end());
  for (int64_t i = 0; i < x.rank(); ++i) {
    const int64_t from = permutation[At(i)];
    shape.set_dim(i, x.dim(from));
    strides[At(i)] = geometry.strides[At(from)];
  }
  return RecordView(PermuteOp{std::move(permutation)}, x, x, std::move(shape),
                    {std::move(strides), geometry.offset});
}

// `op` names the function; none: a copy where no view is possible.
Tensor Reshaped(const Tensor& x, Dims dims, std::string_view op = {}) {
  // Without elements dims may be of any size beside the 0.
  if (x.shape().num_elements() == 0) CheckShape(op.empty() ? "reshape" : op, dims, x.dtype());
  Geometry geometry = GeometryOf(x);
  std::optional<Dims> strides = ReshapedStrides(x.shape().dims(), geometry.strides, dims);
  if (!strides && op.empty()) return Record(ReshapeOp{std::move(dims)}, x);
  if (!strides) {
    ThrowRecordError(
        op, InvalidArgument("size (", Join(dims, ", "), ") is not compatible with the strides (",
                            Join(geometry.strides, ", "), ") of ", x.shape(),
                            ": a dim would span two parts of memory; use reshape()"));
  }
  return RecordReshaped(x, dims, {*std::move(strides), geometry.offset});
}

Tensor Narrowed(const Tensor& x, int64_t d, int64_t start, int64_t length, bool one_of_several) {
  Geometry geometry = GeometryOf(x);
  geometry.offset += start * geometry.strides[At(d)];
  SliceOp op{Dims(At(x.rank()), 0), DimsOf(x.shape()), Dims(At(x.rank()), 1)};
  op.starts[At(d)] = start;
  op.limits[At(d)] = start + length;
  Shape shape(x.dtype(), x.shape().dims());
  shape.set_dim(d, length);
  return RecordView(std::move(op), x, x, std::move(shape), std::move(geometry), one_of_several);
}

// Along d, which is given up.
Tensor Selected(const Tensor& x, int64_t d, int64_t index, bool one_of_several) {
  Geometry geometry = GeometryOf(x);
  geometry.offset += index * geometry.strides[At(d)];
  geometry.strides.erase(geometry.strides.begin() + d);
  Dims dims = DimsOf(x.shape());
  dims.erase(dims.begin() + d);
  return RecordView(SelectOp{d, index}, x, x, dims, std::move(geometry), one_of_several);
}

Tensors Pieces(const Tensor& x, int64_t size, int64_t dim) {
  Tensors pieces;
  const int64_t n = x.dim(dim);
  for (int64_t start = 0; start < n; start += size)
    pieces.push_back(Narrowed(x, dim, start, std::min(size, n - start), /*one_of_several=*/true));
  if (pieces.empty()) pieces.push_back(Narrowed(x, dim, 0, n, /*one_of_several=*/true));
  return pieces;
}

}  // namespace

Tensor ReshapeView(const Tensor& x, absl::Span<const int64_t> dims) {
  return Reshaped(x, ReshapedDims("reshape", x.shape(), dims));
}

Tensor ViewView(const Tensor& x, absl::Span<const int64_t> dims) {
  return Reshaped(x, ReshapedDims("view", x.shape(), dims), "view");
}

Tensor FlattenView(const Tensor& x, int64_t start_dim, int64_t end_dim) {
  Dims dims = FlattenedDims(x.shape(), start_dim, end_dim);
  if (x.shape().dims() == absl::MakeConstSpan(dims)) return x;
  return Reshaped(x, std::move(dims));
}

Tensor SqueezeView(const Tensor& x) {
  Dims all(At(x.rank()));
  std::iota(all.begin(), all.end(), 0);
  return SqueezeView(x, all);
}

Tensor SqueezeView(const Tensor& x, absl::Span<const int64_t> dim) {
  const int64_t rank = std::max<int64_t>(x.rank(), 1);
  const Dims given = dim.empty() ? Dims() : NormalizeDims("squeeze", dim, rank);
  const Geometry geometry = GeometryOf(x);
  Dims dims, strides;
  for (int64_t i = 0; i < x.rank(); ++i) {
    if (x.dim(i) == 1 && std::find(given.begin(), given.end(), i) != given.end()) continue;
    dims.push_back(x.dim(i));
    strides.push_back(geometry.strides[At(i)]);
  }
  return RecordReshaped(x, dims, {std::move(strides), geometry.offset});
}

Tensor UnsqueezeView(const Tensor& x, int64_t dim) {
  const int64_t d = NormalizeDim("unsqueeze", dim, x.rank() + 1);
  Geometry geometry = GeometryOf(x);
  const int64_t stride = d < x.rank() ? x.dim(d) * geometry.strides[At(d)] : 1;
  geometry.strides.insert(geometry.strides.begin() + d, stride);
  Dims dims = DimsOf(x.shape());
  dims.insert(dims.begin() + d, 1);
  return RecordReshaped(x, dims, std::move(geometry));
}

Tensor BroadcastToView(const Tensor& x, absl::Span<const int64_t> dims) {
  Dims wanted(dims.begin(), dims.end());
  const int64_t extra = static_cast<int64_t>(dims.size()) - x.rank();
  for (int64_t i = std::max<int64_t>(extra, 0); i < static_cast<int64_t>(dims.size()); ++i) {
    if (wanted[At(i)] == -1) wanted[At(i)] = x.dim(i - extra);
  }
  const Geometry geometry = GeometryOf(x);
  Dims strides(wanted.size(), 0);
  bool fits = extra >= 0 && Shape::Make(x.dtype(), wanted).ok();
  for (int64_t i = static_cast<int64_t>(wanted.size()) - 1; i >= 0; --i) {
    const bool is_new = i < extra;
    const int64_t size = is_new ? 1 : x.dim(i - extra);
    fits = fits && (size == wanted[At(i)] || size == 1);
    if (wanted[At(i)] != size) continue;
    strides[At(i)] = !is_new                     ? geometry.strides[At(i - extra)]
                     : At(i) + 1 < wanted.size() ? wanted[At(i) + 1] * strides[At(i) + 1]
                                                 : 1;
  }
  BroadcastToOp op{wanted};
  if (!fits) return Record(std::move(op), x);  // which reports what is wrong
  return RecordView(std::move(op), x, x, wanted, {std::move(strides), geometry.offset});
}

Tensor ExpandView(const Tensor& x, absl::Span<const int64_t> dims) {
  if (static_cast<int64_t>(dims.size()) < x.rank()) {
    ThrowRecordError("expand",
                     InvalidArgument(dims.size(), " numbers are too few for ", x.shape()));
  }
  return BroadcastToView(x, dims);
}

Tensor ExpandAsView(const Tensor& x, const Tensor& other) {
  return BroadcastToView(x, other.shape().dims());
}

Tensor PermuteView(const Tensor& x, absl::Span<const int64_t> dims) {
  return Permuted(x, Permutation("permute", x.shape(), dims));
}

Tensor TransposeView(const Tensor& x, int64_t dim0, int64_t dim1) {
  return Permuted(x, TransposedDims(x.shape(), dim0, dim1));
}

Tensor NarrowView(const Tensor& x, int64_t dim, int64_t start, int64_t length) {
  const auto [d, first] = CheckedNarrow(x.shape(), dim, start, length);
  return Narrowed(x, d, first, length, /*one_of_several=*/false);
}

Tensor SelectView(const Tensor& x, int64_t dim, int64_t index) {
  const auto [d, at] = CheckedSelect(x.shape(), dim, index);
  return Selected(x, d, at, /*one_of_several=*/false);
}

Tensors UnbindView(const Tensor& x, int64_t dim) {
  const int64_t d = NormalizeDim("unbind", dim, x.rank());
  Tensors slices;
  for (int64_t i = 0; i < x.dim(d); ++i)
    slices.push_back(Selected(x, d, i, /*one_of_several=*/true));
  return slices;
}

Tensors SplitView(const Tensor& x, int64_t size, int64_t dim) {
  if (size < 1) ThrowRecordError("split", InvalidArgument("size must be at least 1, is ", size));
  return Pieces(x, size, NormalizeDim("split", dim, x.rank()));
}

Tensors ChunkView(const Tensor& x, int64_t chunks, int64_t dim) {
  if (chunks < 1)
    ThrowRecordError("chunk", InvalidArgument("chunks must be at least 1, is ", chunks));
  const int64_t d = NormalizeDim("chunk", dim, x.rank());
  return Pieces(x, std::max<int64_t>((x.dim(d) + chunks - 1) / chunks, 1), d);
}

Tensors SplitView(const Tensor& x, absl::Span<const int64_t> split_size, int64_t dim) {
  const int64_t d = NormalizeDim("split", dim, x.rank());
  int64_t total = 0;
  for (const int64_t n : split_size) {
    if (n < 0) ThrowRecordError("split", InvalidArgument("a size is negative: ", n));
    total += n;
  }
  if (total != x.dim(d)) {
    ThrowRecordError(
        "split", InvalidArgument("sizes (", Join(split_size, ", "), ") add up to ", total, ", dim ",
                                 d, " of ", x.shape(), " has ", x.dim(d), " elements"));
  }
  Tensors pieces;
  int64_t start = 0;
  for (const int64_t n : split_size) {
    pieces.push_back(Narrowed(x, d, start, n, /*one_of_several=*/true));
    start += n;
  }
  return pieces;
}

Tensor MovedimView(const Tensor& x, absl::Span<const int64_t> source,
                   absl::Span<const int64_t> destination) {
  if (source.size() != destination.size()) {
    ThrowRecordError("movedim", InvalidArgument("moves dims (", Join(source, ", "), ") to (",
                                                Join(destination, ", "), "), as many"));
  }
  Dims order(At(x.rank()), -1), rest;
  std::vector<bool> moved(order.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    const int64_t rank = std::max<int64_t>(x.rank(), 1);  // a number has the dim 0, too
    const int64_t from = NormalizeDim("movedim", source[i], rank);
    const int64_t to = NormalizeDim("movedim", destination[i], rank);
    if (x.rank() == 0) continue;
    if (moved[At(from)] || order[At(to)] >= 0) {
      ThrowRecordError("movedim", InvalidArgument("a dim occurs twice in (", Join(source, ", "),
                                                  ") or (", Join(destination, ", "), ")"));
    }
    moved[At(from)] = true;
    order[At(to)] = from;
  }
  int64_t next = 0;
  for (int64_t& d : order) {
    if (d >= 0) continue;
    while (moved[At(next)]) ++next;
    d = next++;
  }
  return PermuteView(x, order);
}
Tensor MoveaxisView(const Tensor& x, absl::Span<const int64_t> source,
                    absl::Span<const int64_t> destination) {
  return MovedimView(x, source, destination);
}
Tensor SwapdimsView(const Tensor& x, int64_t dim0, int64_t dim1) {
  return TransposeView(x, dim0, dim1);
}
Tensor SwapaxesView(const Tensor& x, int64_t axis0, int64_t axis1) {
  return TransposeView(x, axis0, axis1);
}

Tensor UnflattenView(const Tensor& x, int64_t dim, absl::Span<const int64_t> sizes) {
  const int64_t d = NormalizeDim("unflatten", dim, x.rank());
  if (sizes.empty()) ThrowRecordError("unflatten", InvalidArgument("takes at least one size"));
  const Dims part = ReshapedDims("unflatten", Shape(x.dtype(), {x.dim(d)}), sizes);
  Dims dims = DimsOf(x.shape());
  dims.erase(dims.begin() + d);
  dims.insert(dims.begin() + d, part.begin(), part.end());
  return Reshaped(x, std::move(dims), "unflatten");
}

Tensor RavelView(const Tensor& x) {
  const bool is_flat = x.rank() == 1 && IsContiguous(x.shape().dims(), GeometryOf(x).strides);
  return is_flat ? x : Reshaped(x, {x.shape().num_elements()});
}

namespace {

// Whether x is a view with a history of its own. A tensor that is made of its memory then passes its
// gradient to x, and not to the base of x.
bool HasOwnHistory(const Tensor& x) {
  return GradEnabled() && x.storage().view() != nullptr && x.requires_grad();
}

// The elements of this geometry in the memory that x lies in.
Tensor Restrided(const Tensor& x, const Shape& shape, Geometry geometry) {
  const TensorImpl& impl = *x.impl();
  const Tensor memory = impl.base() != nullptr ? Tensor(impl.base_ptr()) : x;
  if (memory.storage().view() != nullptr) return MakeUnreadView(x, shape, std::move(geometry));
  AsStridedOp op{DimsOf(shape), geometry.strides, geometry.offset, shape.dtype()};
  return RecordView(std::move(op), memory, x, shape, std::move(geometry));
}

// Elements of x, whose geometry `place` finds from that of x.
template <typename Place>
Tensor RestridedBy(const Place& place, const Tensor& x, const Shape& shape) {
  if (!HasOwnHistory(x)) return Restrided(x, shape, place(GeometryOf(x)));
  const Geometry among = place(Geometry{ContiguousStrides(x.shape().dims()), 0});
  AsStridedOp op{DimsOf(shape), among.strides, among.offset, shape.dtype()};
  return RecordView(std::move(op), x, x, shape, place(GeometryOf(x)));
}

// The memory of x, which is a view. Its elements that belong to x are those of x and pass their
// gradients to it; the others pass none.
Tensor MemoryAround(const Tensor& x) {
  const View& view = *x.storage().view();
  const Tensor memory(view.base());
  Tensor elements = x;  // of which one stands for all that lie in one place
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (x.dim(d) > 1 && view.strides()[At(d)] == 0)
      elements = Narrowed(elements, d, 0, 1, /*one_of_several=*/false);
  }
  return Record(AsStridedScatterOp{view.strides(), view.offset()}, memory, elements);
}

// The geometry of complex numbers among their parts.
Geometry AmongParts(Geometry geometry) {
  for (int64_t& stride : geometry.strides) stride *= 2;
  geometry.offset *= 2;
  return geometry;
}
// Numbers that must be multiples of `by`, divided by it; the last stride must be 1 and becomes so.
std::optional<Geometry> Wider(Geometry geometry, int64_t by) {
  bool fits =
      !geometry.strides.empty() && geometry.strides.back() == 1 && geometry.offset % by == 0;
  for (std::size_t i = 0; i + 1 < geometry.strides.size(); ++i) {
    fits = fits && geometry.strides[i] % by == 0;
    geometry.strides[i] /= by;
  }
  geometry.offset /= by;
  return fits ? std::optional(std::move(geometry)) : std::nullopt;
}

}  // namespace

Tensor DiagonalView(const Tensor& x, int64_t offset, int64_t dim1, int64_t dim2) {
  const int64_t a = NormalizeDim("diagonal", dim1, x.rank());
  const int64_t b = NormalizeDim("diagonal", dim2, x.rank());
  if (a == b) {
    ThrowRecordError("diagonal", InvalidArgument("dims cannot be the same: ", dim1, ", ", dim2));
  }
  const int64_t n =
      offset >= 0 ? std::min(x.dim(a), x.dim(b) - offset) : std::min(x.dim(a) + offset, x.dim(b));
  const auto without_both = [&](Dims numbers) {
    for (const int64_t d : {std::max(a, b), std::min(a, b)}) numbers.erase(numbers.begin() + d);
    return numbers;
  };
  const auto place = [&](const Geometry& of) {
    const int64_t row = of.strides[At(a)], column = of.strides[At(b)];
    Geometry geometry{without_both(of.strides), of.offset};
    geometry.strides.push_back(row + column);
    if (n > 0) geometry.offset += offset >= 0 ? offset * column : -offset * row;
    return geometry;
  };
  Dims dims = without_both(DimsOf(x.shape()));
  dims.push_back(std::max<int64_t>(n, 0));
  return RestridedBy(place, x, Shape(x.dtype(), dims));
}

Tensor UnfoldView(const Tensor& x, int64_t dimension, int64_t size, int64_t step) {
  const int64_t d = NormalizeDim("unfold", dimension, std::max<int64_t>(x.rank(), 1));
  const int64_t n = x.rank() == 0 ? 1 : x.dim(d);
  if (step <= 0) ThrowRecordError("unfold", InvalidArgument("step is ", step, " but must be > 0"));
  if (size < 0 || size > n) {
    ThrowRecordError(
        "unfold", InvalidArgument("size ", size, " is not a size of windows along dim ", d, " of ",
                                  x.shape(), ", which has ", n, " elements"));
  }
  const auto place = [&](Geometry geometry) {
    geometry.strides.push_back(x.rank() == 0 ? 1 : geometry.strides[At(d)]);
    if (x.rank() > 0) geometry.strides[At(d)] *= step;
    return geometry;
  };
  Dims dims = DimsOf(x.shape());
  if (x.rank() > 0) dims[At(d)] = (n - size) / step + 1;
  dims.push_back(size);
  return RestridedBy(place, x, Shape(x.dtype(), dims));
}

Tensor AsStridedView(const Tensor& x, absl::Span<const int64_t> size,
                     absl::Span<const int64_t> stride, std::optional<int64_t> storage_offset) {
  const int64_t offset = storage_offset.value_or(GeometryOf(x).offset);
  if (size.size() != stride.size()) {
    ThrowRecordError("as_strided",
                     InvalidArgument("mismatch in the numbers of sizes (", Join(size, ", "),
                                     ") and strides (", Join(stride, ", "), ")"));
  }
  int64_t last = offset;
  bool valid = offset >= 0, empty = false;
  for (std::size_t i = 0; i < size.size(); ++i) {
    int64_t length = 0;
    valid = valid && size[i] >= 0 && stride[i] >= 0 &&
            !__builtin_mul_overflow(std::max<int64_t>(size[i] - 1, 0), stride[i], &length) &&
            !__builtin_add_overflow(last, length, &last);
    empty = empty || size[i] == 0;
  }
  const int64_t count = CountIn(x.storage().written().shape(), x.dtype());
  if (!valid || (!empty && last >= count)) {
    ThrowRecordError("as_strided",
                     InvalidArgument("sizes (", Join(size, ", "), "), strides (",
                                     Join(stride, ", "), ") and offset ", offset,
                                     " are out of bounds for memory of ", count, " elements"));
  }
  CheckShape("as_strided", size, x.dtype());
  const Shape shape(x.dtype(), size);
  Geometry geometry{Dims(stride.begin(), stride.end()), offset};
  if (!HasOwnHistory(x)) return Restrided(x, shape, std::move(geometry));
  AsStridedOp op{DimsOf(shape), geometry.strides, offset, shape.dtype()};
  return RecordView(std::move(op), MemoryAround(x), x, shape, std::move(geometry));
}

Tensor ResizeInPlace(const Tensor& x, absl::Span<const int64_t> size) {
  constexpr char kOp[] = "resize_";
  if (x.requires_grad())
    ThrowRecordError(kOp, FailedPrecondition("cannot resize tensors that require a gradient"));
  int64_t count = 1;
  for (const int64_t n : size) {
    if (n < 0 || __builtin_mul_overflow(count, n, &count))
      ThrowRecordError(kOp, InvalidArgument("(", Join(size, ", "), ") are not sizes"));
  }
  CheckShape(kOp, size, x.dtype());
  if (x.shape().dims() == size) return x;
  const GradModeGuard no_grad(false);
  const int64_t offset = GeometryOf(x).offset;
  const int64_t room = CountIn(x.storage().written().shape(), x.dtype()) - offset;
  if (count <= room) {
    const Dims dims(size.begin(), size.end());
    BecomeView(kOp, x, Restrided(x, Shape(x.dtype(), dims), {ContiguousStrides(dims), offset}));
    return x;
  }
  const Tensor there = Clone(Restrided(x, Shape(x.dtype(), {room}), {Dims{1}, offset}));
  const Tensor more = FullConstant(Shape(x.dtype(), {count - room}), 0, x.device());
  const Tensor all = Reshape(Cat(std::array<Tensor, 2>{there, more}, 0), size);
  x.impl()->set_storage(all.impl()->storage());
  return x;
}
Tensor ResizeAsInPlace(const Tensor& x, const Tensor& the_template) {
  return ResizeInPlace(x, the_template.shape().dims());
}

// --- the same memory as elements of another dtype

Tensor RealView(const Tensor& x) {
  if (!IsComplex(x.dtype())) return x;
  const Shape part(hlo::PartType(x.dtype()), x.shape().dims());
  return RecordView(RealOp{}, x, x, part, AmongParts(GeometryOf(x)));
}

Tensor ImagView(const Tensor& x) {
  if (!IsComplex(x.dtype()))
    ThrowRecordError("imag", WrongType("takes complex numbers, not ", x.shape()));
  const Shape part(hlo::PartType(x.dtype()), x.shape().dims());
  Geometry geometry = AmongParts(GeometryOf(x));
  ++geometry.offset;
  return RecordView(ImagOp{}, x, x, part, std::move(geometry));
}

Tensor ViewAsRealView(const Tensor& x) {
  if (!IsComplex(x.dtype()))
    ThrowRecordError("view_as_real", WrongType("takes complex numbers, not ", x.shape()));
  const auto place = [](Geometry geometry) {
    geometry = AmongParts(std::move(geometry));
    geometry.strides.push_back(1);
    return geometry;
  };
  Dims dims = DimsOf(x.shape());
  dims.push_back(2);
  return RestridedBy(place, x, Shape(hlo::PartType(x.dtype()), dims));
}

Tensor ViewAsComplexView(const Tensor& x) {
  if (x.dtype() != DType::kF32 && x.dtype() != DType::kF64)
    ThrowRecordError("view_as_complex", WrongType("takes f32 or f64, not ", x.shape()));
  if (x.rank() == 0 || x.dim(x.rank() - 1) != 2) {
    ThrowRecordError("view_as_complex",
                     InvalidArgument("the last dim must have size 2, is of ", x.shape()));
  }
  if (!Wider(GeometryOf(x), 2)) {
    ThrowRecordError("view_as_complex",
                     InvalidArgument("the last stride must be 1, the others and the offset even; "
                                     "strides are (",
                                     Join(GeometryOf(x).strides, ", "), "), the offset is ",
                                     GeometryOf(x).offset));
  }
  const auto place = [](Geometry geometry) {
    geometry = *Wider(std::move(geometry), 2);
    geometry.strides.pop_back();
    return geometry;
  };
  const DType dtype = x.dtype() == DType::kF32 ? DType::kC64 : DType::kC128;
  return RestridedBy(place, x, Shape(dtype, x.shape().dims().first(At(x.rank() - 1))));
}

Tensor ViewView(const Tensor& x, DType dtype) {
  if (x.dtype() == dtype) return Reshaped(x, DimsOf(x.shape()), "view");
  const int64_t from = ByteWidth(x.dtype()), to = ByteWidth(dtype);
  Geometry geometry = GeometryOf(x);
  Dims dims = DimsOf(x.shape());
  const auto fits = [&](bool so, std::string_view what) {
    if (so) return;
    ThrowRecordError("view",
                     InvalidArgument(x.shape(), " is not a view of ", DTypeText(dtype), ": ", what,
                                     "; strides are (", Join(GeometryOf(x).strides, ", "),
                                     "), the offset is ", GeometryOf(x).offset));
  };
  const auto is_part = [](DType t) { return t != DType::kPred && ir::Row(t).bits < 8; };
  if (is_part(x.dtype()) || is_part(dtype))
    fits(ir::Row(x.dtype()).bits == ir::Row(dtype).bits,
         "an element of fewer than 8 bits has a byte of memory");
  if (from != to) {
    fits(!dims.empty(), "elements of another size need a dim");
    fits(geometry.strides.back() == 1, "the last stride must be 1");
  }
  if (from > to) {
    const int64_t parts = from / to;
    dims.back() *= parts;
    for (std::size_t i = 0; i + 1 < dims.size(); ++i) geometry.strides[i] *= parts;
    geometry.offset *= parts;
  } else if (from < to) {
    const int64_t parts = to / from;
    fits(dims.back() % parts == 0, "the last dim must hold whole elements");
    dims.back() /= parts;
    std::optional<Geometry> wide = Wider(std::move(geometry), parts);
    fits(wide.has_value(), "strides and offset must be whole elements");
    geometry = *std::move(wide);
  }
  const GradModeGuard no_grad(false);  // bits have none
  return Restrided(x, Shape(dtype, dims), std::move(geometry));
}

Tensor TView(const Tensor& x) {
  if (x.rank() > 2) {
    ThrowRecordError("t", InvalidArgument("takes a tensor of at most 2 dims, not ", x.shape()));
  }
  return x.rank() == 2 ? TransposeView(x, 0, 1)
                       : RecordReshaped(x, DimsOf(x.shape()), GeometryOf(x));
}

Tensor AdjointView(const Tensor& x) {
  if (x.rank() == 1)
    ThrowRecordError("adjoint", InvalidArgument("takes matrices, not ", x.shape()));
  const Tensor transposed = x.rank() == 0 ? ReshapeView(x, {}) : TransposeView(x, -2, -1);
  return IsComplex(x.dtype()) ? Conj(transposed) : transposed;
}

}  // namespace lazuli::lazy
