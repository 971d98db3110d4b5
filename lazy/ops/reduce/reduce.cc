#include "lazy/ops/reduce/reduce.h"

#include <limits>
#include <optional>
#include <string_view>

#include "ir/hlo/monoid.h"
#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/gradient_ops.h"
#include "lazy/ops/core/wide.h"
#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli::lazy {
namespace {

using lowering::Opcode;

Dims KeptDims(const Shape& x, absl::Span<const int64_t> dims) {
  Dims kept(x.dims().begin(), x.dims().end());
  for (int64_t d : dims) kept[static_cast<std::size_t>(d)] = 1;
  return kept;
}

lowering::Op ReduceWith(lowering::Builder& b, Opcode monoid, lowering::Op x, const Dims& dims,
                        bool keepdim) {
  const Dims kept = KeptDims(x.shape(), dims);
  const lowering::Op y = b.Reduce(monoid, x, dims);
  return keepdim ? b.Reshape(y, kept) : y;
}

lowering::Op WidenIntegers(lowering::Builder& b, lowering::Op x) {
  return IsFloat(x.dtype()) || IsComplex(x.dtype()) ? x : b.Convert(x, DType::kS64);
}

Tensors ExtremumVjp(const Saved& s, const Tensor& dy, const Dims& dims) {
  const Tensor x = s.x(), wide = Wide(dy);
  const Tensor chosen = To(Eq(x, Spread(s.y(), x.shape(), dims)), wide.dtype());
  const Tensor count = Sum(chosen, dims, /*keepdim=*/true);
  return {To(chosen * (Spread(wide, x.shape(), dims) / BroadcastTo(count, x.shape().dims())),
             dy.dtype())};
}

// {maxima, first indices} along dim by one reduction of pairs.
std::array<lowering::Op, 2> MaxWithIndex(lowering::Builder& b, lowering::Op x, int64_t dim) {
  const Shape index_shape(DType::kS64, x.shape().dims());
  const Dims dims{dim};
  if (b.shapes_only()) {
    return {b.Reduce(Opcode::kMaximum, x, dims),
            b.Reduce(Opcode::kMaximum, b.Iota(index_shape, dim), dims)};
  }
  const DType dtype = x.dtype();
  const Shape value(dtype), index(DType::kS64);
  hlo::Computation* larger = b.Region(
      "argmax", {value, index, value, index},
      [&](lowering::Builder& r, absl::Span<const lowering::Op> p) {
        using enum hlo::ComparisonDirection;
        // The accumulated pair stays if it is larger, or NaN (which wins over everything), or equal
        // and earlier.
        const lowering::Op not_nan = r.Compare(kEq, p[0], p[0]);
        const lowering::Op is_nan = r.Unary(Opcode::kNot, not_nan);
        const lowering::Op greater = r.Binary(Opcode::kOr, r.Compare(kGt, p[0], p[2]), is_nan);
        const lowering::Op other_nan = r.Compare(kNe, p[2], p[2]);
        const lowering::Op same = r.Binary(Opcode::kOr, r.Compare(kEq, p[0], p[2]),
                                           r.Binary(Opcode::kAnd, is_nan, other_nan));
        const lowering::Op earlier = r.Binary(Opcode::kAnd, same, r.Compare(kLt, p[1], p[3]));
        const lowering::Op strictly = r.Binary(Opcode::kAnd, greater, r.Unary(Opcode::kNot, same));
        const lowering::Op keep = r.Binary(Opcode::kOr, strictly, earlier);
        return r.Tuple({r.Select(keep, p[0], p[2]), r.Select(keep, p[1], p[3])});
      });
  const lowering::Op init = b.Constant(hlo::IdentityOf(Opcode::kMaximum, dtype));
  // An index beyond all: the init pair loses against every element, also against -inf.
  const lowering::Op init_index =
      b.Constant(Literal::Scalar<int64_t>(std::numeric_limits<int64_t>::max()));
  const lowering::Op pair =
      b.Reduce({x, b.Iota(index_shape, dim)}, {init, init_index}, larger, dims);
  return {b.GetTupleElement(pair, 0), b.GetTupleElement(pair, 1)};
}

// The first index along dim of the largest element, or of NaN: the smallest one of those that are the
// largest. Two reductions of numbers are faster than one of pairs.
lowering::Op FirstOfLargest(lowering::Builder& b, lowering::Op x, int64_t dim) {
  using enum hlo::ComparisonDirection;
  const Shape shape = x.shape();  // NOLINT: a copy, for the original moves
  const int64_t size = shape.dim(dim);
  const DType counter = size <= std::numeric_limits<int32_t>::max() ? DType::kS32 : DType::kS64;
  Dims others;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (d != dim) others.push_back(d);
  }
  const lowering::Op largest =
      b.Broadcast(b.Reduce(Opcode::kMaximum, x, {dim}), shape.dims(), others);
  lowering::Op chosen = b.Compare(kEq, x, largest);
  if (IsFloat(shape.dtype())) chosen = b.Binary(Opcode::kOr, chosen, b.Compare(kNe, x, x));
  const Shape places(counter, shape.dims());
  const lowering::Op place =
      b.Select(chosen, b.Iota(places, dim), b.Full(places, static_cast<double>(size)));
  return b.Convert(b.Reduce(Opcode::kMinimum, place, {dim}), DType::kS64);
}

}  // namespace

double CountOver(const Shape& x, const Dims& dims) {
  int64_t count = 1;
  for (int64_t d : dims) count *= x.dim(d);
  return static_cast<double>(count);
}

Tensor Spread(const Tensor& y, const Shape& x, const Dims& dims) {
  return BroadcastTo(Reshape(y, KeptDims(x, dims)), x.dims());
}

lowering::Op SumOp::Lower(lowering::Builder& b, lowering::Op x) const {
  return ReduceWith(b, Opcode::kAdd, WidenIntegers(b, x), dims, keepdim);
}
Tensors SumOp::Vjp(const Saved& s, const Tensor& dy) const { return {Spread(dy, s.shape(), dims)}; }

lowering::Op ProdOp::Lower(lowering::Builder& b, lowering::Op x) const {
  return ReduceWith(b, Opcode::kMultiply, WidenIntegers(b, x), dims, keepdim);
}
// The product of the others, which is right once more when it is differentiated: what is not 0
// among them, times the 0 if there is one. Two zeros make 0 of all.
Tensors ProdOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor x = Wide(Conj(s.x()));
  const Shape& shape = x.shape();
  if (dy.shape().num_elements() == shape.num_elements())
    return {Spread(dy, shape, dims)};  // there are no others
  const Value zero = Constant(0, x.dtype()), one = Constant(1, x.dtype());
  const Tensor is_zero = Eq(x, zero);
  const Tensor nonzero = Where(is_zero, one, x), zeros = Where(is_zero, x, zero);
  const Tensor product = Spread(Prod(nonzero, dims, /*keepdim=*/false), shape, dims);
  const Tensor others = Where(is_zero, product, product / nonzero);
  const Tensor count = Sum(is_zero, dims, /*keepdim=*/false);
  const Tensor left = Sub(Spread(count, shape, dims), To(is_zero, count.dtype()));
  const Tensor other_zero = Spread(Sum(zeros, dims), shape, dims) - zeros;
  const Tensor factor = Where(Eq(left, Constant(0, left.dtype())), one,
                              Where(Eq(left, Constant(1, left.dtype())), other_zero, zero));
  return {To(Wide(Spread(dy, shape, dims)) * (others * factor), dy.dtype())};
}

lowering::Op AmaxOp::Lower(lowering::Builder& b, lowering::Op x) const {
  return ReduceWith(b, Opcode::kMaximum, x, dims, keepdim);
}
Tensors AmaxOp::Vjp(const Saved& s, const Tensor& dy) const { return ExtremumVjp(s, dy, dims); }

lowering::Op AminOp::Lower(lowering::Builder& b, lowering::Op x) const {
  return ReduceWith(b, Opcode::kMinimum, x, dims, keepdim);
}
Tensors AminOp::Vjp(const Saved& s, const Tensor& dy) const { return ExtremumVjp(s, dy, dims); }

std::array<lowering::Op, 2> MaxAlongOp::Lower(lowering::Builder& b, lowering::Op x) const {
  const Dims kept = KeptDims(x.shape(), {dim});
  auto [value, index] = MaxWithIndex(b, x, dim);
  if (keepdim) return {b.Reshape(value, kept), b.Reshape(index, kept)};
  return {value, index};
}

Tensors MaxAlongOp::Vjp(const Saved& s, absl::Span<const Tensor> dys) const {
  if (!dys[0].defined()) return {Tensor()};
  const Shape& x = s.shape();
  const Tensor position = Positions(x.dims(), dim, dys[0].device());
  const Tensor chosen = Eq(position, BroadcastTo(Reshape(s.y(1), KeptDims(x, {dim})), x.dims()));
  return {Where(chosen, Spread(dys[0], x, {dim}), Constant(0, dys[0].dtype()))};
}

lowering::Op ArgMaxOp::Lower(lowering::Builder& b, lowering::Op x) const {
  const Dims kept = KeptDims(x.shape(), {dim});
  const lowering::Op index = FirstOfLargest(b, x, dim);
  return keepdim ? b.Reshape(index, kept) : index;
}

Tensor Wide(const Tensor& x) { return To(x, hlo::AccumulationType(x.dtype())); }

lowering::Op Wide(lowering::Op x) {
  return x.builder()->Convert(x, hlo::AccumulationType(x.dtype()));
}

Tensor Sum(const Tensor& in, absl::Span<const int64_t> dims, bool keepdim,
           std::optional<DType> dtype) {
  const Tensor x = dtype ? To(in, *dtype) : in;
  const Tensor sum = Record(SumOp{NormalizeDims("sum", dims, x.rank()), keepdim}, x);
  return dtype ? To(sum, *dtype) : sum;
}

Tensor Mean(const Tensor& in, absl::Span<const int64_t> dims, bool keepdim,
            std::optional<DType> dtype) {
  const Tensor x = dtype ? To(in, *dtype) : in;
  const Dims all = NormalizeDims("mean", dims, x.rank());
  int64_t count = 1;
  for (int64_t d : all) count *= x.dim(d);
  if (!IsFloat(x.dtype()) && !IsComplex(x.dtype())) {
    ThrowRecordError("mean", WrongType("takes floats, not ", x.shape(), "; convert with to()"));
  }
  return InWide(
      x, [&](const Tensor& wide) { return Sum(wide, all, keepdim) / static_cast<double>(count); });
}

Tensor Prod(const Tensor& in, absl::Span<const int64_t> dims, bool keepdim,
            std::optional<DType> dtype) {
  const Tensor x = dtype ? To(in, *dtype) : in;
  const Tensor product = Record(ProdOp{NormalizeDims("prod", dims, x.rank()), keepdim}, x);
  return dtype ? To(product, *dtype) : product;
}

namespace {

Dims ExtremumDims(std::string_view op, const Tensor& x, absl::Span<const int64_t> dims) {
  Dims all = NormalizeDims(op, dims, x.rank());
  for (int64_t d : all) {
    if (x.dim(d) == 0)
      ThrowRecordError(op,
                       OutOfRange("dim ", d, " of ", x.shape(), " is empty and has no extremum"));
  }
  return all;
}

}  // namespace

Tensor Amax(const Tensor& x, absl::Span<const int64_t> dims, bool keepdim) {
  return Record(AmaxOp{ExtremumDims("amax", x, dims), keepdim}, x);
}
Tensor Amin(const Tensor& x, absl::Span<const int64_t> dims, bool keepdim) {
  return Record(AminOp{ExtremumDims("amin", x, dims), keepdim}, x);
}

std::pair<Tensor, Tensor> Max(const Tensor& x, int64_t dim, bool keepdim) {
  if (x.rank() == 0) {
    (void)NormalizeDim("max", dim, 1);
    return {Clone(x), FullConstant(Shape(DType::kS64), 0, x.device())};
  }
  const int64_t d = ExtremumDims("max", x, {dim})[0];
  const Operand in(x);
  Tensors results = RecordAll(MaxAlongOp{d, keepdim}, absl::MakeConstSpan(&in, 1));
  return {results[0], results[1]};
}

Tensor Max(const Tensor& x) {
  return WithSharedGradient(x, [](const Tensor& t) { return Amax(t); });
}
Tensor Max(const Tensor& x, const Tensor& y) { return Maximum(x, y); }
Tensor Min(const Tensor& x) {
  return WithSharedGradient(x, [](const Tensor& t) { return Amin(t); });
}
Tensor Min(const Tensor& x, const Tensor& y) { return Minimum(x, y); }

Tensor Argmax(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  if (!dim) {
    const Tensor position = Argmax(Reshape(x, {-1}), 0, false);
    return keepdim ? Reshape(position, Dims(static_cast<std::size_t>(x.rank()), 1)) : position;
  }
  if (x.rank() == 0) return Max(x, *dim, keepdim).second;
  return Record(ArgMaxOp{ExtremumDims("argmax", x, {*dim})[0], keepdim}, x);
}

namespace {

// The opposite order: what is smallest becomes largest, exactly.
Tensor Reversed(const Tensor& x) { return IsFloat(x.dtype()) ? Neg(x) : BitwiseNot(x); }

}  // namespace

std::pair<Tensor, Tensor> Min(const Tensor& x, int64_t dim, bool keepdim) {
  auto [values, indices] = Max(Reversed(x), dim, keepdim);
  return {Reversed(values), std::move(indices)};
}

Tensor Argmin(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  return Argmax(Reversed(x), dim, keepdim);
}

namespace {

// What all() and any() answer of bytes, which stood for bools once: bytes, as torch.
Tensor AsAnswer(const Tensor& truth, const Tensor& x) {
  return x.dtype() == DType::kU8 ? To(truth, DType::kU8) : truth;
}

}  // namespace

Tensor All(const Tensor& x, absl::Span<const int64_t> dims, bool keepdim) {
  const Tensor zeros = Sum(Eq(x, Constant(0, x.dtype())), dims, keepdim);
  return AsAnswer(Eq(zeros, Constant(0, zeros.dtype())), x);
}

Tensor Any(const Tensor& x, absl::Span<const int64_t> dims, bool keepdim) {
  const Tensor others = Sum(Ne(x, Constant(0, x.dtype())), dims, keepdim);
  return AsAnswer(Ne(others, Constant(0, others.dtype())), x);
}

Tensor Logsumexp(const Tensor& in, absl::Span<const int64_t> dims, bool keepdim) {
  return InWide(Floating(in), [&](const Tensor& x) {
    // Of nothing there is no largest element, and nothing that could overflow.
    if (x.shape().num_elements() == 0) return Log(Sum(x, dims, keepdim));
    const Tensor largest = Detach(Amax(Real(x), dims, /*keepdim=*/true));
    const Value infinity = Constant(std::numeric_limits<double>::infinity(), largest.dtype());
    const Tensor shift = Where(Eq(Abs(largest), infinity), Constant(0, largest.dtype()), largest);
    const Tensor sum = Sum(Exp(x - shift), dims, keepdim);
    return Log(sum) + Reshape(shift, sum.shape().dims());
  });
}

Tensor SumToShape(const Tensor& g, const Shape& shape) {
  Tensor r = g;
  const int64_t extra = g.rank() - shape.rank();
  Dims dims;
  for (int64_t i = 0; i < g.rank(); ++i) {
    if (i < extra || (shape.dim(i - extra) == 1 && g.dim(i) != 1)) dims.push_back(i);
  }
  if (!dims.empty()) r = Reshape(Sum(g, dims, /*keepdim=*/false), shape.dims());
  return To(r, shape.dtype());
}

Tensor SumToSize(const Tensor& x, absl::Span<const int64_t> size) {
  const Shape wanted(x.dtype(), size);
  const absl::StatusOr<Dims> dims = BroadcastDims(wanted, x.shape());
  if (!dims.ok() || static_cast<int64_t>(size.size()) > x.rank() || *dims != DimsOf(x.shape())) {
    ThrowRecordError("sum_to_size", InvalidArgument("size {", Join(size, ", "),
                                                    "} is not expandable to size ", x.shape()));
  }
  const bool same = x.rank() > 0 && x.shape().dims() == wanted.dims();
  if (same || IsFloat(x.dtype()) || IsComplex(x.dtype())) return SumToShape(x, wanted);
  return SumToShape(x, Shape(DType::kS64, size));  // as sums of integers are
}

namespace {

Tensor WithoutNan(const Tensor& x) {
  return IsFloat(x.dtype()) || IsComplex(x.dtype()) ? Where(Ne(x, x), Constant(0, x.dtype()), x)
                                                    : x;
}

}  // namespace

Tensor Nansum(const Tensor& x, absl::Span<const int64_t> dims, bool keepdim,
              std::optional<DType> dtype) {
  return Sum(WithoutNan(x), dims, keepdim, dtype);
}

Tensor Nanmean(const Tensor& x, absl::Span<const int64_t> dims, bool keepdim,
               std::optional<DType> dtype) {
  const Tensor in = dtype ? To(x, *dtype) : x;
  if (!IsFloat(in.dtype()) && !IsComplex(in.dtype()))
    ThrowRecordError("nanmean", WrongType("takes floats, not ", in.shape()));
  const Tensor count = Sum(Eq(Detach(in), Detach(in)), dims, keepdim);
  return InWide(in, [&](const Tensor& wide) {
    const Tensor sum = Sum(WithoutNan(wide), dims, keepdim);
    return sum / To(count, sum.dtype());
  });
}

Tensor CountNonzero(const Tensor& x, absl::Span<const int64_t> dims) {
  return Sum(Ne(x, Constant(0, x.dtype())), dims, /*keepdim=*/false);
}

std::pair<Tensor, Tensor> Aminmax(const Tensor& x, std::optional<int64_t> dim, bool keepdim) {
  Dims dims;
  if (dim) dims.push_back(*dim);
  return {Amin(x, dims, keepdim), Amax(x, dims, keepdim)};
}

lowering::Op SpreadAlong(lowering::Builder& b, lowering::Op y, const Shape& x, int64_t dim) {
  Dims dimensions;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (d != dim) dimensions.push_back(d);
  }
  return b.Broadcast(y, x.dims(), dimensions);
}

}  // namespace lazuli::lazy
