#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cpp_api/data/order.h"
#include "lazuli/torch/data.h"

namespace lazuli::torch_names::data {
namespace {

using lazuli::data::HostArray;
using lazuli::data::HostBatch;

// Undoes what Mnist does to pixels. They are bytes over 255, so the result is exact.
Tensor Pixels(HostArray normalised, const Dims& dims, SourceLocation loc) {
  auto* const x = normalised.data<float>();
  const std::size_t n = normalised.bytes.size() / sizeof(float);
  std::transform(x, x + n, x,
                 [](float v) { return std::round((v * 0.3081f + 0.1307f) * 255.0f) / 255.0f; });
  return from_data(x, kFloat32, dims, {}, loc);
}

HostBatch All(const lazuli::data::Mnist& files) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(files.size()));
  std::iota(indices.begin(), indices.end(), 0);
  return files.get(indices);
}

// The next indices of [index, size) as they are, or as `order` has them.
template <class At>
std::optional<std::vector<std::size_t>> Take(std::size_t& index, std::size_t size,
                                             std::size_t batch_size, const At& at) {
  if (index >= size) return std::nullopt;
  std::vector<std::size_t> taken(std::min(batch_size, size - index));
  for (std::size_t& i : taken) i = at(index++);
  return taken;
}

}  // namespace

namespace datasets {

MNIST::MNIST(const std::string& root, Mode mode, SourceLocation loc)
    : mode_(mode), files_(root, mode == Mode::kTrain, loc) {}

Example<> MNIST::get(std::size_t index) {
  const std::int64_t i = static_cast<std::int64_t>(index);
  HostBatch one = files_.get({&i, 1});
  const SourceLocation loc = SourceLocation::current();
  return {Pixels(std::move(one.x), {1, 28, 28}, loc),
          from_data(one.y.bytes.data(), kInt64, Dims{}, {}, loc)};
}

std::optional<std::size_t> MNIST::size() const { return static_cast<std::size_t>(files_.size()); }

Tensor MNIST::images(SourceLocation loc) const {
  HostBatch all = All(files_);
  const Dims dims = all.x.dims;
  return Pixels(std::move(all.x), dims, loc);
}

Tensor MNIST::targets(SourceLocation loc) const {
  const HostBatch all = All(files_);
  return from_data(all.y.bytes.data(), kInt64, all.y.dims, {}, loc);
}

}  // namespace datasets

namespace samplers {

void SequentialSampler::reset(std::optional<std::size_t> new_size) {
  size_ = new_size.value_or(size_);
  index_ = 0;
}

std::optional<std::vector<std::size_t>> SequentialSampler::next(std::size_t batch_size) {
  return Take(index_, size_, batch_size, [](std::size_t i) { return i; });
}

void RandomSampler::reset(std::optional<std::size_t> new_size) {
  const std::vector<std::int64_t> order = lazuli::data::Permutation(
      static_cast<std::int64_t>(new_size.value_or(order_.size())), random_seed());
  order_.assign(order.begin(), order.end());
  index_ = 0;
}

std::optional<std::vector<std::size_t>> RandomSampler::next(std::size_t batch_size) {
  return Take(index_, order_.size(), batch_size, [this](std::size_t i) { return order_[i]; });
}

void StreamSampler::reset(std::optional<std::size_t> new_size) {
  epoch_size_ = new_size.value_or(epoch_size_);
  taken_ = 0;
}

std::optional<BatchSize> StreamSampler::next(std::size_t batch_size) {
  if (taken_ >= epoch_size_) return std::nullopt;
  const std::size_t size = std::min(batch_size, epoch_size_ - taken_);
  taken_ += size;
  return BatchSize(size);
}

}  // namespace samplers
}  // namespace lazuli::torch_names::data
