#include "lazy/ops/index/index.h"

#include <algorithm>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "ir/hlo/monoid.h"
#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/elementwise/elementwise.h"
#include "lazy/ops/reduce/cumulative.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli::lazy {

absl::Status CheckRows(const Shape& index) {
  constexpr char kWanted[] = "index must be rank-1 integers, is ";
  if (!IsIntegral(index.dtype())) return InvalidArgument(kWanted, index);
  return index.rank() == 1 ? absl::OkStatus() : OutOfRange(kWanted, index);
}

namespace {

using hlo::ComparisonDirection;
using lowering::Opcode;

// Why an index along dim does not fit x; OK if it does.
absl::Status CheckIndex(const Shape& x, const Shape& index, int64_t dim) {
  if (!IsIntegral(index.dtype())) return InvalidArgument("index must be of integers, is ", index);
  bool fits = index.rank() == x.rank();
  for (int64_t d = 0; fits && d < x.rank(); ++d) fits = d == dim || index.dim(d) <= x.dim(d);
  if (fits) return absl::OkStatus();
  return InvalidArgument("index ", index, " must have the rank of ", x,
                         " and be no larger but along dim ", dim);
}

// Why slices of source do not fit x along dim; OK if they do.
absl::Status CheckSlices(const Shape& x, const Shape& index, const Shape& source, int64_t dim) {
  LAZULI_RETURN_IF_ERROR(CheckRows(index));
  Dims dims = DimsOf(x);
  dims[At(dim)] = index.dim(0);
  if (source == Shape(x.dtype(), dims)) return absl::OkStatus();
  return InvalidArgument("source ", source, " must be ", Shape(x.dtype(), dims), " for index ",
                         index, " along dim ", dim, " of x ", x);
}

Dims AllDims(int64_t rank) {
  Dims dims;
  for (int64_t d = 0; d < rank; ++d) dims.push_back(d);
  return dims;
}
Dims AllDimsBut(int64_t dim, int64_t rank) {
  Dims dims = AllDims(rank);
  dims.erase(dims.begin() + dim);
  return dims;
}

// The index in at least 32 bits. Positions outside of [0, n) fail the run; if n is 0, all are outside,
// and the call fails.
lowering::Op InRange(lowering::LoweringContext& c, std::string_view op, lowering::Op index,
                     int64_t n) {
  lowering::Builder& b = c.builder;
  if (n == 0 && index.shape().num_elements() > 0)
    return b.Error(OutOfRange("index ", index.shape(), " selects from a dim without elements"));
  index = WideIndex(index);
  const lowering::Op bad = b.Binary(
      Opcode::kOr, b.Compare(ComparisonDirection::kLt, index, b.ZerosLike(index)),
      b.Compare(ComparisonDirection::kGe, index, b.Full(index.shape(), static_cast<double>(n))));
  c.CheckNone(bad, index, {std::string(op), "index ", Str(" is out of range [0, ", n, ")")});
  return index;
}

// [index's dims..., rank]: the whole position in x of each element of index. Positions outside fail
// the run.
lowering::Op Positioned(lowering::LoweringContext& c, std::string_view op, const Shape& x,
                        lowering::Op index, int64_t dim) {
  lowering::Builder& b = c.builder;
  Dims column = DimsOf(index.shape());
  column.push_back(1);
  index = InRange(c, op, index, x.dim(dim));
  const Shape iota(index.dtype(), index.shape().dims());
  std::vector<lowering::Op> columns;
  for (int64_t d = 0; d < x.rank(); ++d)
    columns.push_back(b.Reshape(d == dim ? index : b.Iota(iota, d), column));
  return b.Concatenate(columns, x.rank());
}

// What scatters take: the tensor that is written to, where, and what.
struct ScatterOperands {
  lowering::Op x, index, source;
};

// `combiner`: kAdd, or kCopy to replace.
lowering::Op ScatterElements(lowering::LoweringContext& c, std::string_view op,
                             const ScatterOperands& operands, int64_t dim, Opcode combiner) {
  const auto& [x, index, source] = operands;
  if (absl::Status s = CheckIndex(x.shape(), index.shape(), dim); !s.ok())
    return c.builder.Error(std::move(s));
  if (source.shape() != Shape(x.dtype(), index.shape().dims())) {
    return c.builder.Error(InvalidArgument("source ", source.shape(),
                                           " must have the dims of index ", index.shape(),
                                           " and the dtype of x ", x.shape()));
  }
  hlo::ScatterAttrs attrs;
  attrs.inserted_window_dims = attrs.scatter_dims_to_operand_dims = AllDims(x.rank());
  attrs.index_vector_dim = x.rank();
  return c.builder.Scatter(x, Positioned(c, op, x.shape(), index, dim), source, std::move(attrs),
                           combiner);
}

lowering::Op ScatterSlices(lowering::LoweringContext& c, std::string_view op,
                           const ScatterOperands& operands, int64_t dim, Opcode combiner) {
  auto [x, index, source] = operands;
  if (absl::Status s = CheckSlices(x.shape(), index.shape(), source.shape(), dim); !s.ok())
    return c.builder.Error(std::move(s));
  const int64_t rows = index.shape().dim(0);
  index = InRange(c, op, index, x.shape().dim(dim));
  hlo::ScatterAttrs attrs;
  attrs.update_window_dims = AllDimsBut(dim, x.rank());
  attrs.inserted_window_dims = attrs.scatter_dims_to_operand_dims = {dim};
  attrs.index_vector_dim = 1;
  return c.builder.Scatter(x, c.builder.Reshape(index, {rows, 1}), source, std::move(attrs),
                           combiner);
}

Tensor ZerosOf(const Shape& shape, const Tensor& beside) {
  return FullConstant(Shape(beside.dtype(), shape.dims()), 0, beside.device());
}

// 0, 1, 2, ... in row-major order.
Tensor Numbered(const Shape& dims, backend::Device device) {
  return Reshape(Positions({dims.num_elements()}, 0, device), dims.dims());
}
Tensor Nobody(const Shape& dims, backend::Device device) {
  return FullConstant(Shape(DType::kS64, dims.dims()), -1, device);
}

}  // namespace

lowering::Op WideIndex(lowering::Op index) {
  return ByteWidth(index.dtype()) < 4 ? index.builder()->Convert(index, DType::kS32) : index;
}

lowering::Op GatherOp::Lower(lowering::LoweringContext& c, lowering::Op x,
                             lowering::Op index) const {
  if (absl::Status s = CheckIndex(x.shape(), index.shape(), dim); !s.ok())
    return c.builder.Error(std::move(s));
  if (index.shape().num_elements() == 0)  // of an empty tensor, too
    return c.builder.Full(Shape(x.dtype(), index.shape().dims()), 0);
  hlo::GatherAttrs attrs;
  attrs.collapsed_slice_dims = attrs.start_index_map = AllDims(x.rank());
  attrs.slice_sizes.assign(static_cast<std::size_t>(x.rank()), 1);
  attrs.index_vector_dim = x.rank();
  return c.builder.Gather(x, Positioned(c, kName, x.shape(), index, dim), std::move(attrs));
}

Tensors GatherOp::Vjp(const Saved& s, const Tensor& dy) const {
  return {ScatterAdd(ZerosOf(s.shape(0), dy), dim, s.x(1), dy), Tensor()};
}

lowering::Op ScatterAddOp::Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op index,
                                 lowering::Op source) const {
  return ScatterElements(c, kName, {x, index, source}, dim, Opcode::kAdd);
}

Tensors ScatterAddOp::Vjp(const Saved& s, const Tensor& dy) const {
  return {dy, Tensor(), s.needs(2) ? Gather(dy, dim, s.x(1)) : Tensor()};
}

lowering::Op ScatterOp::Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op index,
                              lowering::Op source) const {
  return ScatterElements(c, kName, {x, index, source}, dim, Opcode::kCopy);
}

lowering::Op ScatterReduceOp::Lower(lowering::LoweringContext& c, lowering::Op x,
                                    lowering::Op index, lowering::Op source) const {
  constexpr Opcode kCombiners[] = {Opcode::kMultiply, Opcode::kMaximum, Opcode::kMinimum};
  lowering::Builder& b = c.builder;
  const Opcode opcode = kCombiners[static_cast<std::size_t>(combiner)];
  if (!include_self && !b.shapes_only() && source.dtype() == x.dtype()) {
    const lowering::Op none = b.Constant(hlo::IdentityOf(opcode, x.dtype()));
    const lowering::Op all = b.Broadcast(none, source.shape().dims(), {});
    x = ScatterElements(c, kName, {x, index, all}, dim, Opcode::kCopy);
  }
  return ScatterElements(c, kName, {x, index, source}, dim, opcode);
}

namespace {

struct ScatterGradients {
  Tensor x, source;
};

// A factor of 0 leaves the product of the others, if it is the only one.
ScatterGradients ProductGradients(const ScatterReduceOp& op, const Saved& s, const Tensor& dy) {
  const Tensor x = s.x(0), index = s.x(1), source = s.x(2);
  const Value one = Constant(1, x.dtype()), zero = Constant(0, x.dtype());
  const auto product = [&](const Tensor& self, const Tensor& factors) {
    return Record(ScatterReduceOp{op.dim, ScatterCombiner::kProduct, op.include_self}, self, index,
                  factors);
  };
  ScatterGradients grads;
  if (s.needs(0)) {
    const Tensor self = Where(Eq(x, zero), one, x);
    grads.x = dy * product(self, source) / self;
  }
  if (!s.needs(2)) return grads;
  const Tensor is_zero = Eq(source, zero);
  const Tensor zeros = ScatterAdd(ZerosOf(s.shape(0), dy), op.dim, index, To(is_zero, dy.dtype()));
  const Tensor lonely =
      LogicalAnd(is_zero, Eq(Gather(zeros, op.dim, index), Constant(1, dy.dtype())));
  const Tensor others = product(x, Where(lonely, one, source));
  grads.source = Where(lonely, Gather(dy * others, op.dim, index),
                       Gather(dy * s.y(), op.dim, index) / Where(is_zero, one, source));
  return grads;
}

// Equal ones share the gradient.
ScatterGradients ExtremumGradients(const ScatterReduceOp& op, const Saved& s, const Tensor& dy) {
  const Tensor index = s.x(1), y = Detach(s.y());
  const Tensor self = To(Eq(Detach(s.x(0)), y), dy.dtype());
  const Tensor theirs = To(Eq(Detach(s.x(2)), Gather(y, op.dim, index)), dy.dtype());
  const Tensor count = ScatterAdd(self, op.dim, index, theirs);
  const Tensor share =
      dy / Where(Eq(count, Constant(0, dy.dtype())), Constant(1, dy.dtype()), count);
  return {self * share, s.needs(2) ? theirs * Gather(share, op.dim, index) : Tensor()};
}

}  // namespace

Tensors ScatterReduceOp::Vjp(const Saved& s, const Tensor& dy) const {
  auto [dx, dsource] = combiner == ScatterCombiner::kProduct ? ProductGradients(*this, s, dy)
                                                             : ExtremumGradients(*this, s, dy);
  if (s.needs(0) && !include_self) dx = Scatter(dx, dim, s.x(1), ZerosOf(s.shape(2), dy));
  return {s.needs(0) ? dx : Tensor(), Tensor(), dsource};
}

Tensors ScatterOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor index = s.x(1);
  const Tensor dx = s.needs(0) ? Scatter(dy, dim, index, ZerosOf(index.shape(), dy)) : Tensor();
  if (!s.needs(2)) return {dx, Tensor(), Tensor()};
  // Only what was written last has come through.
  const Tensor numbers = Numbered(index.shape(), dy.device());
  const Tensor last = Scatter(Nobody(s.shape(0), dy.device()), dim, index, numbers);
  return {dx, Tensor(),
          Where(Eq(Gather(last, dim, index), numbers), Gather(dy, dim, index),
                Constant(0, dy.dtype()))};
}

lowering::Op IndexSelectOp::Lower(lowering::LoweringContext& c, lowering::Op x,
                                  lowering::Op index) const {
  lowering::Builder& b = c.builder;
  if (absl::Status s = CheckRows(index.shape()); !s.ok()) return b.Error(std::move(s));
  const int64_t rows = index.shape().dim(0);
  if (rows == 0) {  // of a dim of size 0, too
    Dims dims = DimsOf(x.shape());
    dims[At(dim)] = 0;
    return b.Full(Shape(x.dtype(), dims), 0);
  }
  index = InRange(c, kName, index, x.shape().dim(dim));
  hlo::GatherAttrs attrs;
  attrs.offset_dims = AllDimsBut(dim, x.rank());
  attrs.slice_sizes.assign(x.shape().dims().begin(), x.shape().dims().end());
  attrs.slice_sizes[At(dim)] = 1;
  attrs.collapsed_slice_dims = attrs.start_index_map = {dim};
  attrs.index_vector_dim = 1;
  return b.Gather(x, b.Reshape(index, {rows, 1}), std::move(attrs));
}

Tensors IndexSelectOp::Vjp(const Saved& s, const Tensor& dy) const {
  return {IndexAdd(ZerosOf(s.shape(0), dy), dim, s.x(1), dy), Tensor()};
}

lowering::Op IndexAddOp::Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op index,
                               lowering::Op source) const {
  return ScatterSlices(c, kName, {x, index, source}, dim, Opcode::kAdd);
}

Tensors IndexAddOp::Vjp(const Saved& s, const Tensor& dy) const {
  return {dy, Tensor(), s.needs(2) ? IndexSelect(dy, dim, s.x(1)) : Tensor()};
}

lowering::Op IndexCopyOp::Lower(lowering::LoweringContext& c, lowering::Op x, lowering::Op index,
                                lowering::Op source) const {
  return ScatterSlices(c, kName, {x, index, source}, dim, Opcode::kCopy);
}

Tensors IndexCopyOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor index = s.x(1);
  const Tensor dx = s.needs(0) ? IndexCopy(dy, dim, index, ZerosOf(s.shape(2), dy)) : Tensor();
  if (!s.needs(2)) return {dx, Tensor(), Tensor()};
  // Only what was written last has come through.
  const Tensor numbers = Numbered(index.shape(), dy.device());
  const Shape along(DType::kS64, {dy.dim(dim)});
  const Tensor last = IndexCopy(Nobody(along, dy.device()), 0, index, numbers);
  Dims column(static_cast<std::size_t>(dy.rank()), 1);
  column[At(dim)] = index.dim(0);
  const Tensor came = Reshape(Eq(IndexSelect(last, 0, index), numbers), column);
  return {dx, Tensor(), Where(came, IndexSelect(dy, dim, index), Constant(0, dy.dtype()))};
}

lowering::Op MaskPositionsOp::Lower(lowering::LoweringContext& c, lowering::Op mask) const {
  lowering::Builder& b = c.builder;
  if (mask.dtype() != DType::kPred)
    return b.Error(InvalidArgument("takes a mask of pred, not ", mask.shape()));
  const int64_t n = mask.shape().num_elements();
  const lowering::Op flat = b.Reshape(mask, {n});
  const lowering::Op ones = b.Convert(flat, DType::kS64);
  const lowering::Op total = b.Reshape(b.Reduce(Opcode::kAdd, ones, {0}), {1});
  const auto number = [&](lowering::Op like, int64_t v) {
    return b.Full(like.shape(), static_cast<double>(v));
  };
  c.CheckNone(b.Compare(ComparisonDirection::kNe, total, number(total, count)), total,
              {"index_put_", "the mask picks ", Str(" elements, the value has ", count)});
  const lowering::Op before =
      b.Binary(Opcode::kSubtract, CumSumOp{0}.Lower(b, ones), number(ones, 1));
  const lowering::Op last = number(ones, std::max<int64_t>(count - 1, 0));
  return b.Reshape(b.Select(flat, b.Binary(Opcode::kMinimum, before, last), b.ZerosLike(ones)),
                   mask.shape().dims());
}

namespace {

// A number as elements of x, with these dims.
Tensor Spread(const Number& value, const Tensor& x, absl::Span<const int64_t> dims) {
  return Full(dims, value.AsElement(x.dtype()), x.device());
}

// The part of the source that the index speaks of, which may be smaller.
Tensor OfIndex(const Tensor& source, const Tensor& index) {
  if (source.rank() != index.rank()) return source;
  Tensor part = source;
  for (int64_t d = 0; d < index.rank(); ++d) {
    if (index.dim(d) < part.dim(d)) part = Narrow(part, d, 0, index.dim(d));
  }
  return part;
}

Tensor ScatterReduced(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                      std::string_view reduce) {
  if (reduce == "add") return ScatterAdd(x, dim, index, source);
  if (reduce != "multiply") {
    ThrowRecordError("scatter", InvalidArgument("reduce must be add or multiply, is ", reduce));
  }
  return AlongDim(x, [&](const Tensor& in) {
    return Record(ScatterReduceOp{NormalizeDim("scatter", dim, in.rank()),
                                  ScatterCombiner::kProduct, /*include_self=*/true},
                  in, WithDim(index), WithDim(OfIndex(source, index)));
  });
}

}  // namespace

Tensor Gather(const Tensor& in, int64_t dim, const Tensor& index) {
  const Tensor x = WithDim(in);
  const int64_t d = NormalizeDim("gather", dim, x.rank());
  if (index.shape().num_elements() == 0 && index.rank() != x.rank() && IsIntegral(index.dtype()))
    return Reshape(Narrow(Reshape(x, {-1}), 0, 0, 0), index.shape().dims());
  if (index.rank() != 0) return Record(GatherOp{d}, x, index);
  return Reshape(Record(GatherOp{d}, x, WithDim(index)), {});
}

Tensor ScatterAdd(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  return AlongDim(x, [&](const Tensor& in) {
    return Record(ScatterAddOp{NormalizeDim("scatter_add", dim, in.rank())}, in, WithDim(index),
                  WithDim(OfIndex(source, index)));
  });
}

Tensor Scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  return AlongDim(x, [&](const Tensor& in) {
    return Record(ScatterOp{NormalizeDim("scatter", dim, in.rank())}, in, WithDim(index),
                  WithDim(OfIndex(source, index)));
  });
}
Tensor Scatter(const Tensor& x, int64_t dim, const Tensor& index, const Number& value) {
  return Scatter(x, dim, index, Spread(value, x, index.shape().dims()));
}
Tensor Scatter(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
               std::string_view reduce) {
  return ScatterReduced(x, dim, index, source, reduce);
}
Tensor Scatter(const Tensor& x, int64_t dim, const Tensor& index, const Number& value,
               std::string_view reduce) {
  return ScatterReduced(x, dim, index, Spread(value, x, index.shape().dims()), reduce);
}

Tensor IndexSelect(const Tensor& x, int64_t dim, const Tensor& index) {
  return AlongDim(x, [&](const Tensor& in) {
    return Record(IndexSelectOp{NormalizeDim("index_select", dim, in.rank())}, in, WithDim(index));
  });
}

Tensor IndexAdd(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  return AlongDim(x, [&](const Tensor& in) {
    return Record(IndexAddOp{NormalizeDim("index_add", dim, in.rank())}, in, WithDim(index),
                  WithDim(source));
  });
}
Tensor IndexAdd(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source,
                const Number& alpha) {
  return IndexAdd(x, dim, index, Mul(source, alpha.As(source.dtype())));
}

Tensor IndexCopy(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  return AlongDim(x, [&](const Tensor& in) {
    return Record(IndexCopyOp{NormalizeDim("index_copy", dim, in.rank())}, in, WithDim(index),
                  WithDim(source));
  });
}

Tensor IndexFill(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& value) {
  if (value.rank() != 0) {
    ThrowRecordError("index_fill",
                     InvalidArgument("value must be a number or of rank 0, is ", value.shape()));
  }
  const FunctionScope function("index_fill");
  const Tensor in = WithDim(x), rows = WithDim(index);
  const int64_t d = NormalizeDim("index_fill", dim, in.rank());
  const Dims dims = Resized(in.shape(), d, rows.dim(0));
  const Tensor from_end = Lt(rows, Constant(0, rows.dtype()));
  const Tensor at =
      IsSigned(rows.dtype()) ? Where(from_end, rows + static_cast<double>(in.dim(d)), rows) : rows;
  return Reshape(IndexCopy(in, d, at, BroadcastTo(To(value, x.dtype()), dims)), x.shape().dims());
}
Tensor IndexFill(const Tensor& x, int64_t dim, const Tensor& index, const Number& value) {
  return IndexFill(x, dim, index, Spread(value, x, {}));
}

Tensor Take(const Tensor& x, const Tensor& index) {
  if (index.dtype() != DType::kS64)
    ThrowRecordError("take", WrongType("takes an index of s64, not ", index.shape()));
  const int64_t n = x.shape().num_elements();
  if (n == 0 && index.shape().num_elements() != 0)
    ThrowRecordError("take", OutOfRange("takes no elements of an empty tensor, ", x.shape()));
  const FunctionScope function("take");
  const Tensor flat = Reshape(index, {-1});
  const Tensor from_end = Lt(flat, Constant(0, DType::kS64));
  const Tensor at = Where(from_end, flat + static_cast<double>(n), flat);
  return Reshape(IndexSelect(Reshape(x, {-1}), 0, at), index.shape().dims());
}

Tensor TakeAlongDim(const Tensor& x, const Tensor& indices, std::optional<int64_t> dim) {
  if (!IsIntegral(indices.dtype()))
    ThrowRecordError("take_along_dim", WrongType("takes indices of s64, not ", indices.shape()));
  const FunctionScope function("take_along_dim");
  if (!dim) return Gather(Reshape(x, {-1}), 0, Reshape(indices, {-1}));
  if (x.rank() != indices.rank()) {
    ThrowRecordError("take_along_dim", InvalidArgument("indices ", indices.shape(),
                                                       " must have the rank of ", x.shape()));
  }
  const int64_t d = NormalizeDim("take_along_dim", *dim, x.rank());
  const auto one = [&](const Tensor& t) { return Shape(t.dtype(), Resized(t.shape(), d, 1)); };
  absl::StatusOr<Dims> dims = BroadcastDims(one(x), one(indices));
  if (!dims.ok()) ThrowRecordError("take_along_dim", dims.status());
  const auto stretched = [&](const Tensor& t) {
    (*dims)[static_cast<std::size_t>(d)] = t.dim(d);
    return BroadcastTo(t, *dims);
  };
  const Tensor at = stretched(To(indices, DType::kS64));
  const Value none = Constant(0, DType::kS64);
  return Gather(stretched(x), d, Where(Lt(at, none), at + static_cast<double>(x.dim(d)), at));
}

Tensor MaskPositions(const Tensor& mask, int64_t count) {
  return Record(MaskPositionsOp{count}, mask);
}

Tensors UnravelIndex(const Tensor& indices, absl::Span<const int64_t> shape) {
  constexpr char kOp[] = "unravel_index";
  if (!IsIntegral(indices.dtype()))
    ThrowRecordError(kOp, WrongType("takes integers, not ", indices.shape()));
  if (std::any_of(shape.begin(), shape.end(), [](int64_t n) { return n < 0; })) {
    ThrowRecordError(
        kOp, InvalidArgument("shape cannot have negative values, is (", Join(shape, ", "), ")"));
  }
  Tensors places;
  const Tensor wide = To(indices, DType::kS64);
  int64_t below = 1;
  for (std::size_t d = shape.size(); d-- > 0; below *= shape[d]) {
    const auto number = [&](int64_t v) { return Constant(static_cast<double>(v), DType::kS64); };
    const Tensor above = below <= 1 ? wide : FloorDivide(wide, number(below));
    places.push_back(shape[d] == 0 ? above : Remainder(above, number(shape[d])));
  }
  std::reverse(places.begin(), places.end());
  return places;
}

}  // namespace lazuli::lazy
