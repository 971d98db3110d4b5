#include "lazy/ops/shape/strided.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "lazy/ops/core/dims.h"
#include "lazy/ops/shape/shape_ops.h"

namespace lazuli::lazy {
namespace {

using lowering::Builder;
using lowering::Op;

// Dims of more than one place in memory, by decreasing strides.
Dims BySize(absl::Span<const int64_t> dims, absl::Span<const int64_t> strides) {
  Dims order;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] != 1 && strides[i] != 0) order.push_back(static_cast<int64_t>(i));
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t a, int64_t b) { return strides[At(a)] > strides[At(b)]; });
  return order;
}

// A rectangle of a row-major array.
struct Rectangle {
  Dims array;                   // the dims that memory is seen with
  Dims starts, sizes, strides;  // in each of them
  bool whole = true;
  bool dense = true;  // all strides are 1
};

// The rectangle of the elements of memory of `count`; none if they are no rectangle. `order`: of
// the dims, by decreasing strides. In each step the rest of the dims lies within a unit, which is a
// dim of the array with those before it: the largest that the stride allows.
std::optional<Rectangle> FindRectangle(absl::Span<const int64_t> dims, const Geometry& geometry,
                                       const Dims& order, int64_t count) {
  Dims sizes, strides;  // neighbours that lie one after the other are one
  for (const int64_t i : order) {
    const int64_t n = dims[At(i)], stride = geometry.strides[At(i)];
    if (!sizes.empty() && strides.back() == n * stride) {
      sizes.back() *= n;
      strides.back() = stride;
    } else {
      sizes.push_back(n);
      strides.push_back(stride);
    }
  }
  Rectangle r;
  const auto add = [&](int64_t n, int64_t start, int64_t size, int64_t stride) {
    r.array.push_back(n);
    r.starts.push_back(start);
    r.sizes.push_back(size);
    r.strides.push_back(stride);
    r.whole = r.whole && size == n;
    r.dense = r.dense && stride == 1;
  };
  int64_t unit = count, offset = geometry.offset;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const int64_t next = std::gcd(strides[i], unit), step = strides[i] / next, n = unit / next;
    const int64_t start = offset / next;
    if (start + (sizes[i] - 1) * step >= n) return std::nullopt;
    if (step > 1 && n % step == 0) {
      add(n / step, start / step, sizes[i], 1);
      add(step, start % step, 1, 1);
    } else {
      add(n, start, sizes[i], step);
    }
    offset %= next;
    unit = next;
  }
  if (unit > 1 || r.array.empty()) add(unit, offset, 1, 1);
  return r;
}

// The position in memory of each element.
Op MemoryPositions(Builder& b, absl::Span<const int64_t> dims, const Geometry& geometry) {
  const Shape shape(DType::kS64, dims);
  Op at = b.Full(shape, static_cast<double>(geometry.offset));
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == 1 || geometry.strides[i] == 0) continue;
    at = b.Plus(at, b.Times(b.Iota(shape, static_cast<int64_t>(i)),
                            b.Full(shape, static_cast<double>(geometry.strides[i]))));
  }
  return at;
}

// Where in ascending order each of the numbers stands.
Dims Ranks(const Dims& order) {
  Dims sorted(order), ranks;
  std::sort(sorted.begin(), sorted.end());
  for (const int64_t i : order)
    ranks.push_back(std::lower_bound(sorted.begin(), sorted.end(), i) - sorted.begin());
  return ranks;
}
Dims Inverse(const Dims& permutation) {
  Dims inverse(permutation.size());
  for (std::size_t i = 0; i < permutation.size(); ++i)
    inverse[At(permutation[i])] = static_cast<int64_t>(i);
  return inverse;
}
Op Transposed(Builder& b, Op x, const Dims& permutation) {
  return std::is_sorted(permutation.begin(), permutation.end()) ? x : b.Transpose(x, permutation);
}

Op Gathered(Builder& b, Op x, absl::Span<const int64_t> dims, const Geometry& geometry) {
  hlo::GatherAttrs attrs;
  attrs.collapsed_slice_dims = attrs.start_index_map = {0};
  attrs.slice_sizes = {1};
  attrs.index_vector_dim = static_cast<int64_t>(dims.size());
  return b.Gather(b.Reshape(x, {x.shape().num_elements()}), MemoryPositions(b, dims, geometry),
                  std::move(attrs));
}

Op Scattered(Builder& b, Op x, Op source, const Geometry& geometry) {
  const Shape& shape = source.shape();
  const int64_t n = shape.num_elements();
  hlo::ScatterAttrs attrs;
  attrs.inserted_window_dims = attrs.scatter_dims_to_operand_dims = {0};
  attrs.index_vector_dim = 1;
  const Op put = b.Scatter(b.Reshape(x, {x.shape().num_elements()}),
                           b.Reshape(MemoryPositions(b, shape.dims(), geometry), {n, 1}),
                           b.Reshape(source, {n}), std::move(attrs), lowering::Opcode::kCopy);
  return b.Reshape(put, x.shape().dims());
}

Op Bitcast(Builder& b, Op x, DType dtype, absl::Span<const int64_t> dims) {
  const Shape shape(dtype, dims);
  return b.Add(lowering::Opcode::kBitcastConvert, {x}, hlo::NoAttrs{}, {}, &shape);
}

// The memory of x as a row of elements of the dtype.
Op Row(Builder& b, Op x, DType dtype) {
  const int64_t n = x.shape().num_elements();
  x = b.Reshape(x, {n});
  if (x.dtype() == dtype) return x;
  if (IsComplex(x.dtype())) {
    const auto part = [&](lowering::Opcode opcode) {
      return b.Reshape(b.Unary(opcode, x), {n, 1});
    };
    return Row(b, b.Concatenate({part(lowering::Opcode::kReal), part(lowering::Opcode::kImag)}, 1),
               dtype);
  }
  if (IsComplex(dtype)) {
    x = Row(b, x, hlo::PartType(dtype));
    const int64_t count = x.shape().dim(0) / 2;
    const Op parts = b.Reshape(x, {count, 2});
    const auto part = [&](int64_t i) {
      return b.Reshape(b.Slice(parts, {0, i}, {count, i + 1}, {1, 1}), {count});
    };
    return b.Binary(lowering::Opcode::kComplex, part(0), part(1));
  }
  if (x.dtype() == DType::kPred) return Row(b, b.Convert(x, DType::kU8), dtype);
  if (dtype == DType::kPred) {
    x = Row(b, x, DType::kU8);
    return b.Compare(hlo::ComparisonDirection::kNe, x, b.ZerosLike(x));
  }
  const int64_t from = ByteWidth(x.dtype()), to = ByteWidth(dtype), count = n * from / to;
  if (from == to) return Bitcast(b, x, dtype, {n});
  if (from > to) return b.Reshape(Bitcast(b, x, dtype, {n, from / to}), {count});
  return Bitcast(b, b.Reshape(x, {count, to / from}), dtype, {count});
}
// x with the memory that is such a row.
Op FromRow(Builder& b, Op row, const Shape& x) {
  return b.Reshape(Row(b, row, x.dtype()), x.dims());
}

// `update` in place of the rectangle of `array`.
Op Updated(Builder& b, Op array, Op update, const Rectangle& r) {
  if (r.dense) {
    std::vector<Op> starts;
    for (const int64_t start : r.starts)
      starts.push_back(b.Scalar(DType::kS64, static_cast<double>(start)));
    return b.DynamicUpdateSlice(array, update, starts);
  }
  Dims high, interior;
  for (std::size_t i = 0; i < r.array.size(); ++i) {
    high.push_back(r.array[i] - r.starts[i] - ((r.sizes[i] - 1) * r.strides[i] + 1));
    interior.push_back(r.strides[i] - 1);
  }
  const auto spread = [&](Op x) {
    return b.Pad(x, b.Scalar(x.dtype(), 0), r.starts, high, interior);
  };
  const Op mask = spread(b.Full(Shape(DType::kPred, r.sizes), 1));
  return b.Select(mask, spread(update), array);
}

}  // namespace

Dims ContiguousStrides(absl::Span<const int64_t> dims) {
  Dims strides(dims.begin(), dims.end());
  int64_t* const s = strides.data();
  int64_t next = 1;
  for (std::size_t i = dims.size(); i-- > 0;)
    s[i] = std::exchange(next, next * std::max<int64_t>(dims[i], 1));
  return strides;
}

Geometry GeometryOf(const Tensor& x) {
  const View* const view = x.storage().view();
  if (view == nullptr) return {ContiguousStrides(x.shape().dims()), 0};
  return {view->strides(), view->offset()};
}

int64_t CountIn(const Shape& memory, DType dtype) {
  if (memory.dtype() == dtype) return memory.num_elements();
  return memory.byte_size() / ByteWidth(dtype);
}

bool IsContiguous(absl::Span<const int64_t> dims, absl::Span<const int64_t> strides) {
  int64_t next = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    if (dims[i] != 1 && strides[i] != next) return Count(dims) == 0;
    next *= dims[i];
  }
  return true;
}

bool IsExpanded(absl::Span<const int64_t> dims, absl::Span<const int64_t> strides) {
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] > 1 && strides[i] == 0) return true;
  }
  return false;
}

bool IsWhole(absl::Span<const int64_t> dims, const Geometry& geometry, int64_t count) {
  if (Count(dims) != count || IsExpanded(dims, geometry.strides)) return false;
  const auto r = FindRectangle(dims, geometry, BySize(dims, geometry.strides), count);
  return r && r->whole;
}

Op AsStridedOp::Lower(Builder& b, Op x) const {
  if (Count(dims) == 0) return b.Full(Shape(dtype, dims), 0);
  if (x.dtype() != dtype) x = Row(b, x, dtype);
  const int64_t count = x.shape().num_elements();
  const Geometry geometry{strides, offset};
  const Dims order = BySize(dims, strides);
  const auto r = FindRectangle(dims, geometry, order, count);
  if (!r) return Gathered(b, x, dims, geometry);
  Op y = b.Reshape(x, r->array);
  if (!r->whole) {
    Dims limits;
    for (std::size_t i = 0; i < r->array.size(); ++i)
      limits.push_back(r->starts[i] + (r->sizes[i] - 1) * r->strides[i] + 1);
    y = b.Slice(y, r->starts, limits, r->strides);
  }
  Dims sizes, kept(order);
  for (const int64_t i : order) sizes.push_back(dims[At(i)]);
  std::sort(kept.begin(), kept.end());
  y = Transposed(b, b.Reshape(y, sizes), Inverse(Ranks(order)));
  return IsExpanded(dims, strides) ? b.Broadcast(y, dims, kept) : b.Reshape(y, dims);
}

namespace {

// Zeros of the shape, but dy at the strides from the offset.
Tensor WithElements(const AsStridedOp& op, const Shape& shape, const Tensor& dy) {
  const auto& [dims, strides, offset, dtype] = op;
  const Tensor zeros = FullConstant(shape, 0, dy.device());
  // What is one place gets the sum.
  Dims summed, rest, rest_strides;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] > 1 && strides[i] == 0) {
      summed.push_back(static_cast<int64_t>(i));
    } else {
      rest.push_back(dims[i]);
      rest_strides.push_back(strides[i]);
    }
  }
  const Tensor dx = summed.empty() ? dy : Sum(dy, summed, /*keepdim=*/false);
  const Geometry geometry{rest_strides, offset};
  const int64_t count = shape.num_elements();
  if (FindRectangle(rest, geometry, BySize(rest, rest_strides), count) || Count(rest) == 0)
    return Record(AsStridedScatterOp{rest_strides, offset}, zeros, dx);
  const Tensor positions = Positions({count}, 0, dy.device());
  const Tensor there =
      Record(AsStridedOp{rest, rest_strides, offset, positions.dtype()}, positions);
  return Reshape(IndexAdd(Reshape(zeros, {count}), 0, Reshape(there, {-1}), Reshape(dx, {-1})),
                 shape.dims());
}

}  // namespace

Tensors AsStridedOp::Vjp(const Saved& s, const Tensor& dy) const {
  if (s.shape().dtype() != dtype) {
    // The gradient of a row of such elements, as one of what the memory is.
    const Shape row(dtype, {CountIn(s.shape(), dtype)});
    const Tensor zeros = FullConstant(s.shape(), 0, dy.device());
    return {Record(AsStridedScatterOp{ContiguousStrides(row.dims()), 0}, zeros,
                   WithElements(*this, row, dy))};
  }
  const Shape shape(dy.dtype(), s.shape().dims());
  return {WithElements(*this, shape, dy)};
}

Op AsStridedScatterOp::Lower(Builder& b, Op x, Op source) const {
  const Shape& shape = source.shape();
  if (shape.num_elements() == 0) return x;
  if (x.dtype() != source.dtype())
    return FromRow(b, Lower(b, Row(b, x, source.dtype()), source), x.shape());
  const Geometry geometry{strides, offset};
  const Dims order = BySize(shape.dims(), strides);
  const auto r = FindRectangle(shape.dims(), geometry, order, x.shape().num_elements());
  if (!r || IsExpanded(shape.dims(), strides)) return Scattered(b, x, source, geometry);
  Dims kept(order), sizes;
  std::sort(kept.begin(), kept.end());
  for (const int64_t i : kept) sizes.push_back(shape.dim(i));
  const Op update = b.Reshape(Transposed(b, b.Reshape(source, sizes), Ranks(order)), r->sizes);
  return b.Reshape(r->whole ? update : Updated(b, b.Reshape(x, r->array), update, *r),
                   x.shape().dims());
}

Tensors AsStridedScatterOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Geometry geometry{strides, offset};
  Tensors grads(2);
  if (s.needs(0)) {
    const Tensor zeros = FullConstant(s.shape(1), 0, dy.device());
    grads[0] = Record(*this, dy, zeros);
  }
  if (s.needs(1)) {
    const Shape& source = s.shape(1);
    grads[1] = Record(AsStridedOp{DimsOf(source), strides, offset, source.dtype()}, dy);
  }
  return grads;
}

namespace {

class StridedView final : public View {
 public:
  StridedView(const StoragePtr& base, Geometry&& geometry)
      : View(base, std::move(geometry.strides), geometry.offset) {}

  bool IsWhole(const Shape& shape) const override {
    const Shape& memory = base()->shape();
    return shape.dtype() == memory.dtype() &&
           lazy::IsWhole(shape.dims(), {strides(), offset()}, memory.num_elements());
  }
  bool IsExpanded(const Shape& shape) const override {
    return lazy::IsExpanded(shape.dims(), strides());
  }

  Value Read(const Shape& shape, const Value& base, SiteId site) const override {
    std::array<Value, 1> in{base};
    return {MakeIntrusive<OpNode<AsStridedOp>>(
                AsStridedOp{DimsOf(shape), strides(), offset(), shape.dtype()}, absl::MakeSpan(in),
                site),
            0};
  }
  Value Written(const Value& base, const Value& elements, SiteId site) const override {
    if (!base) return Whole(elements, site);
    std::array<Value, 2> in{base, elements};
    return {MakeIntrusive<OpNode<AsStridedScatterOp>>(AsStridedScatterOp{strides(), offset()},
                                                      absl::MakeSpan(in), site),
            0};
  }
  IntrusivePtr<GradNode> ReadHistory(const Tensor& base, const Tensor& view) const override {
    const Operand in(base);
    const Geometry geometry = In(base, view.shape());
    return MakeIntrusive<OpGradNode<AsStridedOp>>(
        AsStridedOp{DimsOf(view.shape()), geometry.strides, geometry.offset, view.dtype()},
        absl::MakeConstSpan(&in, 1), absl::MakeConstSpan(&view, 1), base.storage().version(),
        CurrentSite());
  }
  IntrusivePtr<GradNode> WrittenHistory(const Tensor& base, const Tensor& elements) const override {
    const std::array<Operand, 2> in{Operand(base), Operand(elements)};
    const Geometry geometry = In(base, elements.shape());
    return MakeIntrusive<OpGradNode<AsStridedScatterOp>>(
        AsStridedScatterOp{geometry.strides, geometry.offset}, in, absl::MakeConstSpan(&base, 1),
        VersionsOf(in), CurrentSite());
  }

 private:
  // The base of elements that are all of it.
  Value Whole(Value elements, SiteId site) const {
    const Dims dims = DimsOf(elements.shape());
    Dims permutation(dims.size());
    std::iota(permutation.begin(), permutation.end(), 0);
    std::stable_sort(permutation.begin(), permutation.end(), [&](int64_t a, int64_t b) {
      const bool a_counts = dims[At(a)] != 1, b_counts = dims[At(b)] != 1;
      return a_counts && b_counts ? strides()[At(a)] > strides()[At(b)] : a_counts < b_counts;
    });
    const auto record = [&]<class T>(T op) {
      std::array<Value, 1> in{std::move(elements)};
      elements = {MakeIntrusive<OpNode<T>>(std::move(op), absl::MakeSpan(in), site), 0};
    };
    const auto base_dims = base()->shape().dims();
    if (!std::is_sorted(permutation.begin(), permutation.end()))
      record(PermuteOp{std::move(permutation)});
    if (elements.shape().dims() != base_dims) record(ReshapeOp{DimsOf(base()->shape())});
    return elements;
  }

  // The geometry of the view, which has this shape, among the elements of a tensor, in row-major
  // order, that is a view of the base itself: one that was detached, say, or transposed in place.
  Geometry In(const Tensor& tensor, const Shape& shape) const {
    const View* const outer = tensor.storage().view();
    if (outer == nullptr) return {strides(), offset()};
    const auto sizes = tensor.shape().dims();
    const int64_t first =
        offset() - outer->offset() * ByteWidth(tensor.dtype()) / ByteWidth(shape.dtype());
    if (IsContiguous(sizes, outer->strides())) return {strides(), first};
    std::optional<Geometry> geometry;
    if (tensor.dtype() == shape.dtype())
      geometry = AmongElements(shape.dims(), sizes, outer->strides(), first);
    if (geometry) return *std::move(geometry);
    throw StatusError(Unimplemented("a view of ", tensor.shape(),
                                    ", which is a view that is not contiguous itself, was changed "
                                    "in place with gradients"));
  }

  // The same where each dim of the view lies along one dim of such a tensor; none if one does not.
  std::optional<Geometry> AmongElements(absl::Span<const int64_t> dims,
                                        absl::Span<const int64_t> sizes, const Dims& memory,
                                        int64_t first) const {
    const Dims order = BySize(sizes, memory), rows = ContiguousStrides(sizes);
    Geometry geometry{Dims(dims.size(), 0), 0};
    Dims last(sizes.size(), 0);  // of the view's positions, along each dim of the tensor
    for (const int64_t d : order) {
      last[At(d)] = first / memory[At(d)];
      first %= memory[At(d)];
      geometry.offset += last[At(d)] * rows[At(d)];
    }
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (dims[i] <= 1 || strides()[i] == 0) continue;
      const auto along = std::find_if(order.begin(), order.end(),
                                      [&](int64_t d) { return strides()[i] % memory[At(d)] == 0; });
      if (along == order.end()) return std::nullopt;
      const int64_t step = strides()[i] / memory[At(*along)];
      geometry.strides[i] = step * rows[At(*along)];
      last[At(*along)] += (dims[i] - 1) * step;
    }
    for (std::size_t d = 0; d < sizes.size(); ++d) {
      if (last[d] < 0 || last[d] >= std::max<int64_t>(sizes[d], 1)) return std::nullopt;
    }
    return first == 0 ? std::optional(std::move(geometry)) : std::nullopt;
  }
};

}  // namespace

std::unique_ptr<View> MakeView(const Tensor& x, Geometry&& geometry) {
  const View* const view = x.storage().view();
  return std::make_unique<StridedView>(view != nullptr ? view->base() : x.impl()->storage(),
                                       std::move(geometry));
}

Tensor MakeUnreadView(const Tensor& x, const Shape& shape, Geometry geometry) {
  Tensor view =
      ViewOf(x, Context::Current().NewView(shape, x.device(), MakeView(x, std::move(geometry))));
  view.impl()->HistoryIsTheBases();
  return view;
}

}  // namespace lazuli::lazy
