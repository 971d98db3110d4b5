#include "lazy/ops/core/dims.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace lazuli::lazy {

int64_t NormalizeDim(std::string_view op, int64_t dim, int64_t rank) {
  const int64_t d = dim < 0 ? dim + rank : dim;
  if (d < 0 || d >= rank)
    ThrowRecordError(op, OutOfRange("dim ", dim, " is out of range for rank ", rank));
  return d;
}

Dims NormalizeDims(std::string_view op, absl::Span<const int64_t> dims, int64_t rank) {
  Dims result;
  if (dims.empty()) {
    for (int64_t i = 0; i < rank; ++i) result.push_back(i);
    return result;
  }
  for (int64_t d : dims) result.push_back(NormalizeDim(op, d, std::max<int64_t>(rank, 1)));
  std::sort(result.begin(), result.end());
  if (rank == 0) return {};  // whose only dim, to users, is none
  if (std::adjacent_find(result.begin(), result.end()) != result.end()) {
    ThrowRecordError(op, InvalidArgument("a dim is named twice in (", Join(dims, ", "), ")"));
  }
  return result;
}

void CheckShape(std::string_view op, absl::Span<const int64_t> dims, DType dtype) {
  absl::StatusOr<Shape> shape = Shape::Make(dtype, dims);
  if (!shape.ok()) ThrowRecordError(op, shape.status());
}

Tensor WithDim(const Tensor& x) { return x.rank() == 0 ? Reshape(x, {1}) : x; }

std::pair<Tensor, Tensor> LikeDims(const Tensor& x, const std::pair<Tensor, Tensor>& results) {
  if (x.rank() != 0) return results;
  return {Reshape(results.first, {}), Reshape(results.second, {})};
}

std::string PairText(const Pair& p) { return Str(p[0], "x", p[1]); }

}  // namespace lazuli::lazy
