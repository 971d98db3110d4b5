#include "cpp_api/data/prefetcher.h"

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "cpp_api/data/host_array.h"
#include "lazuli/internal/fail.h"
#include "lazuli/ops.h"
#include "lazuli/profiler.h"

namespace lazuli::data {

Prefetcher::Prefetcher(std::shared_ptr<const Dataset> dataset, std::vector<std::int64_t> order,
                       const Options& options)
    : dataset_(std::move(dataset)),
      order_(std::move(order)),
      batch_size_(static_cast<std::size_t>(options.batch_size)),
      ahead_(static_cast<std::size_t>(options.ahead)),
      device_(options.device),
      site_(options.site) {
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

Tensor Prefetcher::Upload(const HostArray& array, const char* which, std::size_t rows) const {
  const SiteScope site(site_);
  const auto fail = [&](const std::string& what) {
    lazuli::internal::Fail(ErrorCode::kInvalidArgument,
                           "DataLoader: the data set was asked for " + std::to_string(rows) +
                               " samples and gave " + what + " of " + which,
                           SourceLocation::current());
  };
  if (array.dims.empty()) fail("an array of rank 0");
  if (array.dims[0] != static_cast<std::int64_t>(rows))
    fail(std::to_string(array.dims[0]) + " rows");
  const std::size_t needed = ByteSize(array.dims, array.dtype);
  if (array.bytes.size() != needed)
    fail(std::to_string(array.bytes.size()) + " bytes instead of " + std::to_string(needed));
  return from_data(array.bytes.data(), array.dtype, array.dims, device_);
}

Batch Prefetcher::Prepare() {
  const std::size_t count = std::min(batch_size_, order_.size() - position_);
  const std::span indices(order_.data() + position_, count);
  position_ += count;
  const HostBatch batch = dataset_->get(indices);
  return {Upload(batch.x, "x", count), Upload(batch.y, "y", count)};
}

void Prefetcher::Run() {
  profiler::name_thread("data loader");
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
