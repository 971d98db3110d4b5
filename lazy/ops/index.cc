#include "lazy/ops/index.h"

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

namespace lazuli::lazy {
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

// [index's dims..., rank]: the whole position in x of each element of index. Positions outside fail
// the run.
lowering::Op Positioned(lowering::Context& c, std::string_view op, const Shape& x,
                        lowering::Op index, int64_t dim) {
  lowering::Builder& b = c.builder;
  index = WideIndex(index);
  const int64_t n = x.dim(dim);
  const lowering::Op bad = b.Binary(
      Opcode::kOr, b.Compare(ComparisonDirection::kLt, index, b.ZerosLike(index)),
      b.Compare(ComparisonDirection::kGe, index, b.Full(index.shape(), static_cast<double>(n))));
  c.CheckNone(bad, index, Str(op, ": index "), Str(" is out of range [0, ", n, ")"));
  Dims column(index.shape().dims().begin(), index.shape().dims().end());
  column.push_back(1);
  const Shape iota(index.dtype(), index.shape().dims());
  std::vector<lowering::Op> columns;
  for (int64_t d = 0; d < x.rank(); ++d)
    columns.push_back(b.Reshape(d == dim ? index : b.Iota(iota, d), column));
  return b.Concatenate(columns, x.rank());
}

Dims AllDims(int64_t rank) {
  Dims dims;
  for (int64_t d = 0; d < rank; ++d) dims.push_back(d);
  return dims;
}

Tensor ZerosOf(const Shape& shape, const Tensor& beside) {
  return FullConstant(Shape(beside.dtype(), shape.dims()), 0, beside.device());
}

}  // namespace

lowering::Op GatherOp::Lower(lowering::Context& c, lowering::Op x, lowering::Op index) const {
  if (absl::Status s = CheckIndex(x.shape(), index.shape(), dim); !s.ok())
    return c.builder.Error(std::move(s));
  hlo::GatherAttrs attrs;
  attrs.collapsed_slice_dims = attrs.start_index_map = AllDims(x.rank());
  attrs.slice_sizes.assign(static_cast<std::size_t>(x.rank()), 1);
  attrs.index_vector_dim = x.rank();
  return c.builder.Gather(x, Positioned(c, kName, x.shape(), index, dim), std::move(attrs));
}

Tensors GatherOp::Vjp(const Saved& s, const Tensor& dy) const {
  return {ScatterAdd(ZerosOf(s.shape(0), dy), dim, s.x(1), dy), Tensor()};
}

lowering::Op ScatterAddOp::Lower(lowering::Context& c, lowering::Op x, lowering::Op index,
                                 lowering::Op source) const {
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
  return c.builder.Scatter(x, Positioned(c, kName, x.shape(), index, dim), source, std::move(attrs),
                           Opcode::kAdd);
}

Tensors ScatterAddOp::Vjp(const Saved& s, const Tensor& dy) const {
  return {dy, Tensor(), s.needs(2) ? Gather(dy, dim, s.x(1)) : Tensor()};
}

lowering::Op CumSumOp::Lower(lowering::Builder& b, lowering::Op x) const {
  const DType dtype = x.dtype();
  const bool floating = IsFloat(dtype) || IsComplex(dtype);
  const lowering::Op wide = b.Convert(x, !floating              ? DType::kS64
                                         : ByteWidth(dtype) < 4 ? DType::kF32
                                                                : dtype);
  const int64_t n = x.shape().dim(dim);
  if (n == 0) return wide;
  hlo::Window window(static_cast<std::size_t>(x.rank()));
  window[static_cast<std::size_t>(dim)] = {.size = n, .pad_low = n - 1};
  return b.Convert(b.ReduceWindow(Opcode::kAdd, wide, std::move(window)),
                   floating ? dtype : DType::kS64);
}

Tensors CumSumOp::Vjp(const Saved&, const Tensor& dy) const {
  return {Flip(CumSum(Flip(dy, {dim}), dim), {dim})};
}

std::array<lowering::Op, 2> SortOp::Lower(lowering::Builder& b, lowering::Op x) const {
  const lowering::Op positions = b.Iota(Shape(DType::kS64, x.shape().dims()), dim);
  if (b.shapes_only()) return {x, positions};
  const Shape value(x.dtype()), position(DType::kS64);
  // Keys of a float, of which none is NaN: whether it is one, and its value if it is not.
  hlo::Computation* before = b.Region(
      "before", {value, value, position, position},
      [&](lowering::Builder& r, absl::Span<const lowering::Op> p) {
        const auto precedes = [&](lowering::Op x, lowering::Op y) {
          return r.Compare(descending ? ComparisonDirection::kGt : ComparisonDirection::kLt, x, y);
        };
        if (!IsFloat(x.dtype())) return precedes(p[0], p[1]);
        lowering::Op is_nan[2], number[2];
        for (const std::size_t i : {0, 1}) {
          const lowering::Op nan = r.Compare(ComparisonDirection::kNe, p[i], p[i]);
          is_nan[i] = r.Convert(nan, DType::kS32);
          number[i] = r.Select(nan, r.Scalar(x.dtype(), 0), p[i]);
        }
        return r.Binary(
            Opcode::kOr, precedes(is_nan[0], is_nan[1]),
            r.Binary(Opcode::kAnd, r.Compare(ComparisonDirection::kEq, is_nan[0], is_nan[1]),
                     precedes(number[0], number[1])));
      });
  const lowering::Op sorted = b.Sort({x, positions}, dim, /*stable=*/true, before);
  return {b.GetTupleElement(sorted, 0), b.GetTupleElement(sorted, 1)};
}

Tensors SortOp::Vjp(const Saved& s, absl::Span<const Tensor> dys) const {
  if (!dys[0].defined()) return {Tensor()};
  return {ScatterAdd(ZerosOf(s.shape(), dys[0]), dim, s.y(1), dys[0])};
}

// --- functions

Tensor Gather(const Tensor& x, int64_t dim, const Tensor& index) {
  return Record(GatherOp{NormalizeDim("gather", dim, x.rank())}, x, index);
}

Tensor ScatterAdd(const Tensor& x, int64_t dim, const Tensor& index, const Tensor& source) {
  return Record(ScatterAddOp{NormalizeDim("scatter_add", dim, x.rank())}, x, index, source);
}

Tensor CumSum(const Tensor& x, int64_t dim) {
  return Record(CumSumOp{NormalizeDim("cumsum", dim, x.rank())}, x);
}

std::pair<Tensor, Tensor> Sort(const Tensor& x, int64_t dim, bool descending) {
  if (IsComplex(x.dtype()))
    ThrowRecordError("sort", InvalidArgument("takes real numbers, not ", x.shape()));
  const int64_t d = NormalizeDim("sort", dim, x.rank());
  const Operand in(x);
  Tensors results = RecordAll(SortOp{d, descending}, absl::MakeConstSpan(&in, 1));
  return {results[0], results[1]};
}

std::pair<Tensor, Tensor> TopK(const Tensor& x, int64_t k, int64_t dim, bool largest) {
  const int64_t d = NormalizeDim("topk", dim, x.rank());
  if (k < 0 || k > x.dim(d)) {
    ThrowRecordError("topk", OutOfRange("k is ", k, ", dim ", d, " of ", x.shape(), " has ",
                                        x.dim(d), " elements"));
  }
  const auto [values, indices] = Sort(x, d, largest);
  return {Narrow(values, d, 0, k), Narrow(indices, d, 0, k)};
}

Tensor Select(const Tensor& x, int64_t dim, int64_t index) {
  const int64_t d = NormalizeDim("select", dim, x.rank());
  const int64_t at = index < 0 ? index + x.dim(d) : index;
  if (at < 0 || at >= x.dim(d)) {
    ThrowRecordError(
        "select", OutOfRange("index ", index, " is out of range for dim ", d, " of ", x.shape()));
  }
  return Squeeze(Narrow(x, d, at, 1), d);
}

}  // namespace lazuli::lazy
