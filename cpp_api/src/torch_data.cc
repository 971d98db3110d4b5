#include <algorithm>
#include <utility>

#include "ir/support/parallel_for.h"
#include "lazuli/internal/fail.h"
#include "lazuli/torch/tensor.h"

namespace lazuli::torch_names {

using internal::Fail;

int get_num_threads() { return ir::NumThreads(); }

TensorData::TensorData(const std::vector<TensorData>& rows, SourceLocation loc) : kind_(kIsFloat) {
  dims_ = {static_cast<std::int64_t>(rows.size())};
  if (rows.empty()) return;
  kind_ = kIsBool;
  for (const TensorData& row : rows) {
    if (row.dims_ != rows[0].dims_)
      Fail(ErrorCode::kInvalidArgument, "tensor: rows differ in length", loc);
    kind_ = std::max(kind_, row.kind_);
    integers_.insert(integers_.end(), row.integers_.begin(), row.integers_.end());
    floats_.insert(floats_.end(), row.floats_.begin(), row.floats_.end());
  }
  dims_.insert(dims_.end(), rows[0].dims_.begin(), rows[0].dims_.end());
}

Tensor TensorData::Make(const TensorOptions& options, SourceLocation loc) const {
  const DType natural = kind_ == kIsBool ? kBool : kind_ == kIsInteger ? kInt64 : default_dtype();
  const DType dtype = options.dtype().value_or(dtype_.value_or(natural));
  const Device device = options.device().value_or(Device());
  Tensor made;
  if (kind_ != kIsFloat) {
    made = from_data(integers_.data(), kInt64, dims_, device, loc).to(dtype, loc);
  } else if (dtype == kFloat32) {
    const std::vector<float> floats(floats_.begin(), floats_.end());
    made = from_data(floats.data(), kFloat32, dims_, device, loc);
  } else {
    made = from_data(floats_.data(), kFloat64, dims_, device, loc).to(dtype, loc);
  }
  return options.Finish(std::move(made), loc);
}

}  // namespace lazuli::torch_names
