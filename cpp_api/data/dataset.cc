#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <type_traits>

#include "cpp_api/data/host_array.h"
#include "cpp_api/data/order.h"
#include "lazuli/data.h"
#include "lazuli/internal/fail.h"

namespace lazuli::data {
namespace {

using lazuli::internal::Fail;

HostArray ToHost(const Tensor& tensor, SourceLocation loc) {
  HostArray array;
  WithType(tensor.dtype(), [&]<class T>(T) {
    if constexpr (std::is_same_v<T, std::nullptr_t>) {
      Fail(ErrorCode::kUnimplemented,
           "TensorDataset: no " + std::string(to_string(tensor.dtype())) +
               " tensors; convert it by to()",
           loc);
    } else {
      array = HostArray::zeros(tensor.sizes(), tensor.dtype());
      const std::vector<T> values = tensor.to_vector<T>(loc);
      std::copy(values.begin(), values.end(), array.data<T>());
    }
  });
  return array;
}

HostArray Gather(const HostArray& rows, std::span<const std::int64_t> indices) {
  HostArray out{.dtype = rows.dtype, .dims = rows.dims};
  out.dims[0] = static_cast<std::int64_t>(indices.size());
  const std::size_t row = rows.bytes.size() / static_cast<std::size_t>(rows.dims[0]);
  out.bytes.resize(row * indices.size());
  for (std::size_t i = 0; i < indices.size(); ++i) {
    std::memcpy(out.bytes.data() + i * row,
                rows.bytes.data() + static_cast<std::size_t>(indices[i]) * row, row);
  }
  return out;
}

std::string DimsText(const Tensor& tensor) {
  std::string text(to_string(tensor.dtype()));
  char separator = '[';
  for (const std::int64_t d : tensor.sizes()) {
    text += separator;
    text += std::to_string(d);
    separator = ',';
  }
  return text + (separator == '[' ? "[]" : "]");
}

}  // namespace

TensorDataset::TensorDataset(const Tensor& x, const Tensor& y, SourceLocation loc) {
  if (x.dim() == 0 || y.dim() == 0 || x.size(0) != y.size(0)) {
    Fail(ErrorCode::kInvalidArgument,
         "TensorDataset: x and y must have the same first dim, the number of samples, but are " +
             DimsText(x) + " and " + DimsText(y),
         loc);
  }
  rows_ = std::make_shared<HostBatch>(HostBatch{ToHost(x, loc), ToHost(y, loc)});
}

std::int64_t TensorDataset::size() const { return rows_->x.dims[0]; }

HostBatch TensorDataset::get(std::span<const std::int64_t> indices) const {
  return {Gather(rows_->x, indices), Gather(rows_->y, indices)};
}

Subset::Subset(std::shared_ptr<const Dataset> dataset, std::vector<std::int64_t> indices,
               SourceLocation loc)
    : dataset_(std::move(dataset)), indices_(std::move(indices)) {
  for (const std::int64_t i : indices_) {
    if (i >= 0 && i < dataset_->size()) continue;
    Fail(ErrorCode::kOutOfRange,
         "Subset: index " + std::to_string(i) + " is out of range for a data set of " +
             std::to_string(dataset_->size()) + " samples",
         loc);
  }
}

std::int64_t Subset::size() const { return static_cast<std::int64_t>(indices_.size()); }

HostBatch Subset::get(std::span<const std::int64_t> indices) const {
  std::vector<std::int64_t> inner;
  inner.reserve(indices.size());
  for (const std::int64_t i : indices) inner.push_back(indices_[static_cast<std::size_t>(i)]);
  return dataset_->get(inner);
}

Repeat::Repeat(std::shared_ptr<const Dataset> dataset, std::int64_t times, SourceLocation loc)
    : dataset_(std::move(dataset)), times_(times) {
  if (times_ >= 1) return;
  Fail(ErrorCode::kInvalidArgument,
       "Repeat: times is " + std::to_string(times_) + ", it must be at least 1", loc);
}

HostBatch Repeat::get(std::span<const std::int64_t> indices) const {
  std::vector<std::int64_t> inner;
  inner.reserve(indices.size());
  for (const std::int64_t i : indices) inner.push_back(i % dataset_->size());
  return dataset_->get(inner);
}

std::vector<Subset> random_split(const std::shared_ptr<const Dataset>& dataset,
                                 const std::vector<std::int64_t>& sizes,
                                 std::optional<std::uint64_t> seed, SourceLocation loc) {
  std::int64_t all = 0;
  for (const std::int64_t size : sizes) {
    if (size < 0) {
      Fail(ErrorCode::kInvalidArgument,
           "random_split: a part of " + std::to_string(size) + " samples", loc);
    }
    all += size;
  }
  if (all != dataset->size()) {
    Fail(ErrorCode::kInvalidArgument,
         "random_split: the parts have " + std::to_string(all) + " samples, the data set " +
             std::to_string(dataset->size()),
         loc);
  }
  const std::vector<std::int64_t> order =
      Permutation(dataset->size(), seed ? *seed : random_seed());
  std::vector<Subset> parts;
  auto next = order.begin();
  for (const std::int64_t size : sizes) {
    parts.emplace_back(dataset, std::vector<std::int64_t>(next, next + size), loc);
    next += size;
  }
  return parts;
}

}  // namespace lazuli::data
