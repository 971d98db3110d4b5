#include "cpp_api/data/prefetcher.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

namespace lazuli::data {

Prefetcher::Prefetcher(std::shared_ptr<const Dataset> dataset, std::vector<std::int64_t> order,
                       const Options& options)
    : dataset_(std::move(dataset)),
      order_(std::move(order)),
      batch_size_(static_cast<std::size_t>(options.batch_size)),
      ahead_(static_cast<std::size_t>(options.ahead)),
      device_(options.device),
      loc_(options.loc) {
  if (ahead_ > 0) thread_ = std::thread(&Prefetcher::Run, this);
}

Prefetcher::~Prefetcher() {
  {
    const std::lock_guard lock(mu_);
    stop_ = true;
  }
  changed_.notify_all();
  if (thread_.joinable()) thread_.join();
}

Batch Prefetcher::Prepare() {
  const std::size_t count = std::min(batch_size_, order_.size() - position_);
  const std::span indices(order_.data() + position_, count);
  position_ += count;
  const HostBatch batch = dataset_->get(indices);
  for (const HostArray* array : {&batch.x, &batch.y}) {
    if (!array->dims.empty() && array->dims[0] == static_cast<std::int64_t>(count)) continue;
    throw Error(ErrorCode::kInvalidArgument,
                "DataLoader: the data set was asked for " + std::to_string(count) +
                    " samples and gave " +
                    (array->dims.empty() ? "an array of rank 0"
                                         : std::to_string(array->dims[0]) + " rows") +
                    (array == &batch.x ? " of x" : " of y"));
  }
  const auto upload = [this](const HostArray& array) {
    return from_data(array.bytes.data(), array.dtype, array.dims, device_, loc_);
  };
  return {upload(batch.x), upload(batch.y)};
}

void Prefetcher::Run() {
  bool more = !AtEnd();
  while (more) {
    Item item;
    try {
      item.batch = Prepare();
      more = !AtEnd();
    } catch (...) {
      item.error = std::current_exception();
      more = false;
    }
    std::unique_lock lock(mu_);
    changed_.wait(lock, [this] { return stop_ || ready_.size() < ahead_; });
    if (stop_) return;
    ready_.push_back(std::move(item));
    changed_.notify_all();
  }
  const std::lock_guard lock(mu_);
  finished_ = true;
  changed_.notify_all();
}

std::optional<Batch> Prefetcher::Next() {
  if (ahead_ == 0) {
    if (AtEnd()) return std::nullopt;
    return Prepare();
  }
  std::unique_lock lock(mu_);
  changed_.wait(lock, [this] { return finished_ || !ready_.empty(); });
  if (ready_.empty()) return std::nullopt;
  Item item = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  lock.unlock();
  if (item.error) std::rethrow_exception(item.error);
  return std::move(item.batch);
}

}  // namespace lazuli::data
