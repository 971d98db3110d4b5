// Tensors that are joined: hstack, vstack, dstack, column_stack, block_diag. cat and stack are in
// shape_ops.cc.
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"

namespace lazuli::lazy {
namespace {

// x with dims of size 1 until it has this rank: in front, but the third one behind [n] and [n, m],
// as PyTorch's atleast_3d has it.
Tensor AtLeast(const Tensor& x, int64_t rank) {
  if (x.rank() >= rank) return x;
  Dims dims = DimsOf(x.shape());
  if (rank == 3 && x.rank() > 0) dims.push_back(1);
  dims.insert(dims.begin(), static_cast<std::size_t>(rank) - dims.size(), 1);
  return Reshape(x, dims);
}
Tensors AtLeast(absl::Span<const Tensor> xs, int64_t rank) {
  Tensors all;
  for (const Tensor& x : xs) all.push_back(AtLeast(x, rank));
  return all;
}

}  // namespace

Tensor Hstack(absl::Span<const Tensor> xs) {
  const Tensors all = AtLeast(xs, 1);
  return Cat(all, !all.empty() && all[0].rank() == 1 ? 0 : 1);
}
Tensor Vstack(absl::Span<const Tensor> xs) { return Cat(AtLeast(xs, 2), 0); }
Tensor Dstack(absl::Span<const Tensor> xs) { return Cat(AtLeast(xs, 3), 2); }
Tensor ColumnStack(absl::Span<const Tensor> xs) {
  Tensors all;
  for (const Tensor& x : xs) all.push_back(x.rank() <= 1 ? Reshape(x, {-1, 1}) : x);
  return Cat(all, 1);
}
Tensor BlockDiag(absl::Span<const Tensor> xs) {
  Tensors rows;
  int64_t columns = 0, before = 0;
  for (const Tensor& x : xs) {
    if (x.rank() > 2)
      ThrowRecordError("block_diag", InvalidArgument("takes ranks up to 2, not ", x.shape()));
    columns += x.rank() == 0 ? 1 : x.dim(x.rank() - 1);
  }
  for (const Tensor& x : AtLeast(xs, 2)) {
    const int64_t low[] = {0, before}, high[] = {0, columns - before - x.dim(1)}, none[] = {0, 0};
    rows.push_back(PadZeros(x, low, high, none));
    before += x.dim(1);
  }
  return Cat(rows, 0);
}

}  // namespace lazuli::lazy
