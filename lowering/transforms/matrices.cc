#include "lowering/transforms/matrices.h"

#include <utility>

#include "lowering/transforms/formula.h"

namespace lazuli::lowering {
namespace {

// m where row and column numbers compare so, else 0.
Op WhereRow(Builder& b, Op m, hlo::ComparisonDirection direction) {
  const Shape numbers(DType::kS32, m.shape().dims());
  const Op row = b.Iota(numbers, m.rank() - 2), column = b.Iota(numbers, m.rank() - 1);
  return b.Select(b.Compare(direction, row, column), m, b.ZerosLike(m));
}

}  // namespace

Op MatrixTranspose(Builder& b, Op m) {
  ir::Dims order;
  for (int64_t d = 0; d < m.rank(); ++d) order.push_back(d);
  std::swap(order[order.size() - 1], order[order.size() - 2]);
  return b.Transpose(m, order);
}

Op Adjoint(Builder& b, Op m) { return Conj(MatrixTranspose(b, m)).op; }

Op MatrixProduct(Builder& b, Op x, Op y) {
  hlo::DotAttrs attrs;
  for (int64_t d = 0; d + 2 < x.rank(); ++d) {
    attrs.lhs_batch_dims.push_back(d);
    attrs.rhs_batch_dims.push_back(d);
  }
  attrs.lhs_contracting_dims = {x.rank() - 1};
  attrs.rhs_contracting_dims = {y.rank() - 2};
  attrs.operand_precision = "highest,highest";
  return b.Dot(x, y, std::move(attrs));
}

Op Triangle(Builder& b, Op m, bool lower, bool strict) {
  using Direction = hlo::ComparisonDirection;
  if (lower) return WhereRow(b, m, strict ? Direction::kGt : Direction::kGe);
  return WhereRow(b, m, strict ? Direction::kLt : Direction::kLe);
}

Op Diagonal(Builder& b, Op m) { return WhereRow(b, m, hlo::ComparisonDirection::kEq); }

}  // namespace lazuli::lowering
