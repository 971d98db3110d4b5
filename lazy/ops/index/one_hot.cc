#include "lazy/ops/index/one_hot.h"

#include "lazy/ops/reduce/reduce.h"

namespace lazuli::lazy {
namespace {

using hlo::ComparisonDirection;
using lowering::Opcode;

}  // namespace

lowering::Op OneHotAlong(lowering::Builder& b, lowering::Op index, const Shape& shape,
                         int64_t dim) {
  const lowering::Op position = b.Iota(Shape(index.dtype(), shape.dims()), dim);
  return b.Compare(ComparisonDirection::kEq, position, SpreadAlong(b, index, shape, dim));
}

void CheckClasses(lowering::LoweringContext& c, lowering::Op index, int64_t classes,
                  std::string_view op, std::string_view what, lowering::Op counts) {
  lowering::Builder& b = c.builder;
  if (b.shapes_only()) return;
  lowering::Op bad =
      b.Binary(Opcode::kOr, b.Compare(ComparisonDirection::kLt, index, b.ZerosLike(index)),
               b.Compare(ComparisonDirection::kGe, index,
                         b.Full(index.shape(), static_cast<double>(classes))));
  if (counts.valid()) bad = b.Binary(Opcode::kAnd, bad, counts);
  c.CheckNone(bad, index,
              {std::string(op), Str(what, " "), Str(" is out of range [0, ", classes, ")")});
}

lowering::Op OneHotOp::Lower(lowering::LoweringContext& c, lowering::Op index) const {
  lowering::Builder& b = c.builder;
  if (!IsIntegral(index.dtype()))
    return b.Error(InvalidArgument("takes integers, not ", index.shape()));
  Dims dims(index.shape().dims().begin(), index.shape().dims().end());
  dims.insert(dims.begin() + dim, classes);
  index = WideIndex(index);
  if (checked) CheckClasses(c, index, classes, kName, "index");
  return b.Convert(OneHotAlong(b, index, Shape(dtype, dims), dim), dtype);
}

Tensor OneHot(const Tensor& index, int64_t classes, DType dtype) {
  if (classes < 1)
    ThrowRecordError("one_hot", InvalidArgument("classes must be at least 1, is ", classes));
  return Record(OneHotOp{index.rank(), classes, dtype, /*checked=*/true}, index);
}

}  // namespace lazuli::lazy
