#include "lazy/ops/index/sort.h"

#include <utility>

#include "ir/support/wrong_type.h"

namespace lazuli::lazy {
namespace {

using hlo::ComparisonDirection;
using lowering::Opcode;

}  // namespace

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
  const Shape shape(dys[0].dtype(), s.shape().dims());
  return {ScatterAdd(FullConstant(shape, 0, dys[0].device()), dim, s.y(1), dys[0])};
}

std::pair<Tensor, Tensor> Sort(const Tensor& x, int64_t dim, bool descending, bool stable) {
  if (IsComplex(x.dtype()))
    ThrowRecordError("sort", WrongType("takes real numbers, not ", x.shape()));
  if (x.rank() == 0) return LikeDims(x, Sort(WithDim(x), dim, descending, stable));
  const int64_t d = NormalizeDim("sort", dim, x.rank());
  const Operand in(x);
  Tensors results = RecordAll(SortOp{d, descending}, absl::MakeConstSpan(&in, 1));
  return {results[0], results[1]};
}

std::pair<Tensor, Tensor> Topk(const Tensor& x, int64_t k, int64_t dim, bool largest, bool sorted) {
  if (x.rank() == 0 && k == 1) return LikeDims(x, Topk(WithDim(x), k, dim, largest, sorted));
  const int64_t d = NormalizeDim("topk", dim, x.rank());
  if (k < 0 || k > x.dim(d)) {
    ThrowRecordError("topk", OutOfRange("k is ", k, ", dim ", d, " of ", x.shape(), " has ",
                                        x.dim(d), " elements"));
  }
  const auto [values, indices] = Sort(x, d, largest);
  return {Narrow(values, d, 0, k), Narrow(indices, d, 0, k)};
}

Tensor Msort(const Tensor& x) { return Sort(x, 0).first; }

Tensor Argsort(const Tensor& x, int64_t dim, bool descending, bool stable) {
  return Sort(x, dim, descending, stable).second;
}

}  // namespace lazuli::lazy
