// Prepares the batches of one epoch - reads them and moves them to the device - on a thread of its
// own if asked to.
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
#include "lazuli/execution.h"

namespace lazuli::data {

class Prefetcher {
 public:
  struct Options {
    std::int64_t batch_size = 1;
    std::int64_t ahead = 0;  // batches that wait to be taken; with 0, Next() prepares them itself
    Device device;
    Site site;  // of the loop
  };
  // Batches of consecutive indices of `order`.
  Prefetcher(std::shared_ptr<const Dataset> dataset, std::vector<std::int64_t> order,
             const Options& options);
  // Waits for the batch being prepared, and leaves the rest.
  ~Prefetcher();
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // The next batch, nullopt after the last. Throws what the data set threw for it, and ends then.
  std::optional<Batch> Next();

 private:
  struct Item {
    Batch batch;
    std::exception_ptr error;
  };
  bool AtEnd() const { return position_ >= order_.size(); }
  Batch Prepare();
  // Throws unless the array has so many rows, and the bytes of its dims.
  Tensor Upload(const HostArray& array, const char* which, std::size_t rows) const;
  void Run();

  const std::shared_ptr<const Dataset> dataset_;
  const std::vector<std::int64_t> order_;
  const std::size_t batch_size_, ahead_;
  const Device device_;
  const Site site_;
  std::size_t position_ = 0;  // of the batch to prepare; belongs to whoever prepares

  std::mutex mu_;
  std::condition_variable changed_;
  std::deque<Item> ready_;
  bool finished_ = false;  // nothing more will be ready
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace lazuli::data
