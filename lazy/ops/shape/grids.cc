// All pairs and tuples of elements: meshgrid, cartesian_prod, combinations; and tensors broadcast together.
#include <string_view>

#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/elementwise/elementwise.h"
#include "lazy/tensor/function_scope.h"

namespace lazuli::lazy {

Tensors BroadcastTensors(absl::Span<const Tensor> xs) {
  Dims dims;
  for (const Tensor& x : xs) {
    absl::StatusOr<Dims> both = BroadcastDims(Shape(x.dtype(), dims), x.shape());
    if (!both.ok()) ThrowRecordError("broadcast_tensors", both.status());
    dims = *std::move(both);
  }
  Tensors stretched;
  for (const Tensor& x : xs) stretched.push_back(BroadcastTo(x, dims));
  return stretched;
}

Tensors Meshgrid(absl::Span<const Tensor> xs, std::string_view indexing) {
  if (indexing != "ij" && indexing != "xy") {
    ThrowRecordError("meshgrid", InvalidArgument("indexing must be ij or xy, is ", indexing));
  }
  if (xs.empty()) ThrowRecordError("meshgrid", InvalidArgument("needs at least one tensor"));
  Dims dims;
  for (const Tensor& x : xs) {
    if (x.rank() > 1)
      ThrowRecordError("meshgrid", InvalidArgument("takes ranks 0 and 1, not ", x.shape()));
    dims.push_back(x.shape().num_elements());
  }
  const bool swap = indexing == "xy" && xs.size() > 1;
  Tensors grids;
  for (std::size_t i = 0; i < xs.size(); ++i) {
    Dims own(dims.size(), 1);
    own[i] = dims[i];
    const Tensor grid = BroadcastTo(Reshape(xs[i], own), dims);
    grids.push_back(swap ? Transpose(grid, 0, 1) : grid);
  }
  return grids;
}

Tensor CartesianProd(absl::Span<const Tensor> xs) {
  constexpr char kOp[] = "cartesian_prod";
  if (xs.empty()) ThrowRecordError(kOp, InvalidArgument("needs at least one tensor"));
  for (const Tensor& x : xs) {
    if (x.rank() != 1) ThrowRecordError(kOp, InvalidArgument("takes rows [n], not ", x.shape()));
  }
  if (xs.size() == 1) return xs[0];
  Tensors columns;
  for (const Tensor& grid : Meshgrid(xs, "ij")) columns.push_back(Reshape(grid, {-1}));
  return Stack(columns, 1);
}

Tensor Combinations(const Tensor& x, int64_t r, bool with_replacement) {
  static constexpr char kOp[] = "combinations";
  if (x.rank() != 1) ThrowRecordError(kOp, InvalidArgument("takes a row [n], not ", x.shape()));
  if (r < 0) ThrowRecordError(kOp, InvalidArgument("r must not be negative, is ", r));
  constexpr int64_t kMost = 32;  // dims of the grid that they are chosen from
  if (r > kMost) ThrowRecordError(kOp, InvalidArgument("r must be at most ", kMost, ", is ", r));
  const int64_t n = x.dim(0);
  const Shape none(x.dtype(), {0});
  const int64_t from = with_replacement ? n + r - 1 : n;  // r of so many
  if (r == 0) return FullConstant(none, 0, x.device());
  if (from < r) return Reshape(BroadcastTo(Unsqueeze(Narrow(x, 0, 0, 0), 1), {0, r}), {0, r});
  double size = 1;
  int64_t count = 1;
  for (int64_t i = 0; i < r; ++i) {
    size *= static_cast<double>(n);
    if (size > 0x1p40)
      ThrowRecordError(kOp, InvalidArgument(x.shape(), " has too many combinations of ", r));
    count = count * (from - i) / (i + 1);
  }
  const FunctionScope function(kOp);
  const Dims dims(At(r), n);
  Tensor mask = FullConstant(Shape(DType::kPred, dims), 1, x.device());
  for (int64_t d = 0; d + 1 < r; ++d) {
    const Tensor one = Positions(dims, d, x.device()), next = Positions(dims, d + 1, x.device());
    mask = LogicalAnd(mask, with_replacement ? Le(one, next) : Lt(one, next));
  }
  const Tensor rows = NonzeroStatic(mask, count, 0);
  return Reshape(IndexSelect(x, 0, Reshape(rows, {-1})), {count, r});
}

}  // namespace lazuli::lazy
