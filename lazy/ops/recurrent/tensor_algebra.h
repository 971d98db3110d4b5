// The formulas of a cell (cell.h) as recorded ops.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/recurrent/cell.h"

namespace lazuli::lazy {

struct TensorAlgebra {
  Tensor Plus(const Tensor& x, const Tensor& y) const { return x + y; }
  Tensor Minus(const Tensor& x, const Tensor& y) const { return x - y; }
  Tensor Times(const Tensor& x, const Tensor& y) const { return x * y; }
  Tensor Sigmoid(const Tensor& x) const { return lazy::Sigmoid(x); }
  Tensor Tanh(const Tensor& x) const { return lazy::Tanh(x); }
  Tensor Relu(const Tensor& x) const { return lazy::Relu(x); }
  Tensor OneMinus(const Tensor& x) const { return 1.0 - x; }
  Tensor WherePositive(const Tensor& x, const Tensor& y) const {
    return Where(Gt(x, Constant(0, x.dtype())), y, Constant(0, y.dtype()));
  }
};

// The step of a cell from the sums [B, gates H] of its gates, whose parts are along the last dim.
inline CellStep<Tensor> StepOfSums(Cell cell, const Tensor& from_input, const Tensor& from_hidden,
                                   absl::Span<const Tensor> states) {
  const int64_t dim = from_input.rank() - 1, size = from_input.dim(dim) / Gates(cell);
  CellValues<Tensor> x, h;
  for (int64_t i = 0; i < Gates(cell); ++i) {
    x.push_back(Narrow(from_input, dim, i * size, size));
    h.push_back(Narrow(from_hidden, dim, i * size, size));
  }
  return StepOf<TensorAlgebra, Tensor>({}, cell, x, h, states);
}

}  // namespace lazuli::lazy
