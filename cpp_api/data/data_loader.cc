#include <cstdint>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cpp_api/data/order.h"
#include "cpp_api/data/prefetcher.h"
#include "lazuli/data.h"
#include "lazuli/internal/fail.h"

namespace lazuli::data {
namespace {

using lazuli::internal::Fail;

void Check(const Dataset& dataset, const DataLoaderOptions& options, SourceLocation loc) {
  const auto fail = [&](const std::string& what) {
    Fail(ErrorCode::kInvalidArgument, "DataLoader: " + what, loc);
  };
  if (dataset.size() == 0) fail("the data set is empty, so there is nothing to loop over");
  if (options.batch_size < 1) {
    fail("batch_size is " + std::to_string(options.batch_size) + ", it must be at least 1");
  }
  if (options.prefetch < 0) {
    fail("prefetch is " + std::to_string(options.prefetch) +
         ", it must be the number of batches to prepare in advance, or 0");
  }
  if (options.drop_last && dataset.size() < options.batch_size) {
    fail("drop_last leaves no batch, because the data set has " + std::to_string(dataset.size()) +
         " samples and batch_size is " + std::to_string(options.batch_size));
  }
}

}  // namespace

// One loop over the data set: the batch it is at, and the prefetcher of the next.
class DataLoader::Epoch {
 public:
  Epoch(std::shared_ptr<const Dataset> dataset, std::vector<std::int64_t> order,
        const DataLoaderOptions& options, SourceLocation loc)
      : prefetcher_(std::move(dataset), std::move(order),
                    {.batch_size = options.batch_size,
                     .ahead = options.prefetch,
                     .device = options.device.value_or(Device()),
                     .site = Site(loc)}) {
    Advance();
  }

  void Advance() {
    current_.reset();  // its memory goes before the next batch is waited for
    current_ = prefetcher_.Next();
  }
  bool done() const { return !current_; }
  Batch& current() { return *current_; }

 private:
  Prefetcher prefetcher_;
  std::optional<Batch> current_;
};

DataLoader::DataLoader(std::shared_ptr<const Dataset> dataset, const DataLoaderOptions& options,
                       SourceLocation loc)
    : dataset_(std::move(dataset)), options_(options) {
  Check(*dataset_, options_, loc);
}

std::int64_t DataLoader::size() const {
  const std::int64_t whole = dataset_->size() / options_.batch_size;
  return whole + (options_.drop_last || dataset_->size() % options_.batch_size == 0 ? 0 : 1);
}

DataLoader::Iterator DataLoader::begin(SourceLocation loc) {
  std::vector<std::int64_t> order;
  if (options_.shuffle) {
    const std::uint64_t seed = options_.seed ? MixSeed(*options_.seed, epochs_) : random_seed();
    order = Permutation(dataset_->size(), seed);
  } else {
    order.resize(static_cast<std::size_t>(dataset_->size()));
    std::iota(order.begin(), order.end(), 0);
  }
  if (options_.drop_last) {
    order.resize(static_cast<std::size_t>(size() * options_.batch_size));
  }
  ++epochs_;
  return Iterator(std::make_shared<Epoch>(dataset_, std::move(order), options_, loc));
}

Batch& DataLoader::Iterator::operator*() const { return epoch_->current(); }

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  epoch_->Advance();
  return *this;
}

bool DataLoader::Iterator::done() const { return !epoch_ || epoch_->done(); }

}  // namespace lazuli::data
