// One-hot arrays of indices, and the steps of their lowering that losses of classes share.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

// 1 where the position along `dim` of the result equals the index, which lacks that dim. Losses,
// which have looked at their labels, ask for no check.
struct OneHotOp {
  int64_t dim;
  int64_t classes;
  DType dtype;
  bool checked = false;
  LAZULI_OP("one_hot", "aten::one_hot", dim, classes, dtype, checked);
  static constexpr OpDoc kDoc{
      "1 at each index along a new dim of size `classes`, 0 elsewhere. With `checked`, an index "
      "out of range fails the run.",
      {"index"}};
  lowering::Op Lower(lowering::LoweringContext& c, lowering::Op index) const;
};

// True where the position along dim equals the index, which lacks that dim.
lowering::Op OneHotAlong(lowering::Builder& b, lowering::Op index, const Shape& shape, int64_t dim);

// Fails the run where an index is none of a class: "one_hot: index 9 is out of range [0, 9)". Those
// that do not count, if `counts` is given, may be anything.
void CheckClasses(lowering::LoweringContext& c, lowering::Op index, int64_t classes,
                  std::string_view op, std::string_view what, lowering::Op counts = {});

}  // namespace lazuli::lazy
