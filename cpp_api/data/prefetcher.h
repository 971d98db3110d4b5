// Prepares the batches of one epoch, on a thread of its own if asked to.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "lazuli/data.h"

namespace lazuli::data {

class Prefetcher {
 public:
  // Batches of consecutive indices of `order`; at most `ahead` wait to be taken. With 0, Next()
  // prepares them itself.
  Prefetcher(std::shared_ptr<const Dataset> dataset, std::vector<std::int64_t> order,
             std::int64_t batch_size, std::int64_t ahead);
  // Waits for the batch being prepared, and leaves the rest.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // The next batch, nullopt after the last. Throws what the data set threw for it, and ends then.
  std::optional<HostBatch> Next();

 private:
  struct Item {
    HostBatch batch;
    std::exception_ptr error;
  };
  bool AtEnd() const { return position_ >= order_.size(); }
  HostBatch Prepare();
  void Run();

  const std::shared_ptr<const Dataset> dataset_;
  const std::vector<std::int64_t> order_;
  const std::size_t batch_size_, ahead_;
  std::size_t position_ = 0;  // of the batch to prepare; belongs to whoever prepares

  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<Item> ready_;
  bool finished_ = false;  // nothing more will be ready
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace lazuli::data
