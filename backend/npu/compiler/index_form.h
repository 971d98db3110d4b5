// Gather and scatter have the same form: starts of windows in an operand, one for each row.
#pragma once

#include <optional>

#include "backend/npu/compiler/expression.h"
#include "ir/hlo/module.h"

namespace lazuli::npu {

struct IndexForm {
  Dims index_map;    // the operand's dimension of each component of an index
  Dims absent_dims;  // of the operand, that windows have not
  Dims batching_dims, index_batching_dims;
  Dims window_dims;  // of the array of windows
  int64_t vector_dim;
};
IndexForm FormOf(const hlo::GatherAttrs& attrs);
IndexForm FormOf(const hlo::ScatterAttrs& attrs);
// A window's size along each dimension of the operand.
Dims WindowOf(const IndexForm& form, const Shape& operand, const Shape& windows);

// How dma.sct joins; none for a combiner that it does not have.
struct ScatterJoin {
  uint32_t joining;  // copy, add, max
  Type type;
};
std::optional<ScatterJoin> JoinOf(const hlo::Instruction& scatter);

// An index of this type between 0 and `last`, and whether two are equal.
ValueNodes ClampIndex(DType dtype, ValueNodes index, int64_t last, Expression& expression);
int EqualIndex(DType dtype, ValueNodes a, ValueNodes b, Expression& expression);

}  // namespace lazuli::npu
