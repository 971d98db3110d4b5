// Data sets and the loader that makes batches of them.
//
//   lazuli::data::DataLoader loader(lazuli::data::Mnist("data/mnist", /*train=*/true),
//                                   {.batch_size = 64, .shuffle = true});
//   for (auto& [x, y] : loader) ...   // one epoch
//
// A data set lives in host memory and knows nothing of devices. What is wrong with a file, a data
// set or an option is thrown as Error with the line of the caller.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "lazuli/device.h"
#include "lazuli/ops.h"
#include "lazuli/tensor.h"

namespace lazuli::data {

// An array in host memory, row-major: `bytes` holds the elements of `dims`.
struct HostArray {
  DType dtype = kFloat32;
  Dims dims = {};
  std::vector<std::byte> bytes = {};

  // Zeros.
  LAZULI_API static HostArray zeros(const Dims& dims, DType dtype);
  // T must be the C++ type of the dtype; this is not checked.
  template <class T>
  T* data() {
    return reinterpret_cast<T*>(bytes.data());
  }
  template <class T>
  const T* data() const {
    return reinterpret_cast<const T*>(bytes.data());
  }
};

// Inputs and targets: row i of both is sample i.
struct HostBatch {
  HostArray x, y;
};
struct Batch {
  Tensor x, y;
};

class LAZULI_API Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  // The samples at these indices, each in [0, size()), in this order. Called by a loader's own
  // thread, and by several at once if several epochs are under way. What it throws, the loop over
  // the loader throws.
  virtual HostBatch get(std::span<const std::int64_t> indices) const = 0;
};

// Handwritten digits: x f32 [n, 1, 28, 28], pixels scaled to [0, 1] and normalised by mean 0.1307
// and deviation 0.3081; y s64 [n] in [0, 10).
class LAZULI_API Mnist final : public Dataset {
 public:
  // Reads {train,t10k}-{images-idx3,labels-idx1}-ubyte in `folder`. Throws Error(kNotFound) for a
  // file that cannot be opened and Error(kInvalidArgument) for one that is damaged.
  explicit Mnist(const std::string& folder, bool train = true, LAZULI_LOC);
  std::int64_t size() const override;
  HostBatch get(std::span<const std::int64_t> indices) const override;

 private:
  struct Files;
  std::shared_ptr<const Files> files_;  // pixels stay bytes until they are asked for
};

// Small photographs of ten kinds of things: x f32 [n, 3, 32, 32], each channel normalised by the
// mean and deviation of the training images; y s64 [n] in [0, 10).
class LAZULI_API Cifar10 final : public Dataset {
 public:
  // Reads data_batch_{1..5}.bin or test_batch.bin, the binary version, in `folder`. Throws
  // Error(kNotFound) for a file that cannot be opened and Error(kInvalidArgument) for one that is
  // damaged.
  explicit Cifar10(const std::string& folder, bool train = true, LAZULI_LOC);
  std::int64_t size() const override;
  HostBatch get(std::span<const std::int64_t> indices) const override;
  static const std::array<const char*, 10>& classes();  // their names

 private:
  struct Records;
  std::shared_ptr<const Records> records_;
};

// Rows of two tensors with the same first dim. Copies them to the host, which syncs.
class LAZULI_API TensorDataset final : public Dataset {
 public:
  TensorDataset(const Tensor& x, const Tensor& y, LAZULI_LOC);
  std::int64_t size() const override;
  HostBatch get(std::span<const std::int64_t> indices) const override;

 private:
  std::shared_ptr<const HostBatch> rows_;
};

// Some samples of another data set.
class LAZULI_API Subset final : public Dataset {
 public:
  template <std::derived_from<Dataset> D>
  Subset(D dataset, std::vector<std::int64_t> indices, LAZULI_LOC)
      : Subset(std::shared_ptr<const Dataset>(std::make_shared<D>(std::move(dataset))),
               std::move(indices), loc) {}
  Subset(std::shared_ptr<const Dataset> dataset, std::vector<std::int64_t> indices, LAZULI_LOC);
  std::int64_t size() const override;
  HostBatch get(std::span<const std::int64_t> indices) const override;

 private:
  std::shared_ptr<const Dataset> dataset_;
  std::vector<std::int64_t> indices_;
};

// Another data set several times over: an epoch that is that much longer.
class LAZULI_API Repeat final : public Dataset {
 public:
  template <std::derived_from<Dataset> D>
  Repeat(D dataset, std::int64_t times, LAZULI_LOC)
      : Repeat(std::shared_ptr<const Dataset>(std::make_shared<D>(std::move(dataset))), times,
               loc) {}
  Repeat(std::shared_ptr<const Dataset> dataset, std::int64_t times, LAZULI_LOC);
  std::int64_t size() const override { return dataset_->size() * times_; }
  HostBatch get(std::span<const std::int64_t> indices) const override;

 private:
  std::shared_ptr<const Dataset> dataset_;
  std::int64_t times_;
};

// Parts of a data set with these numbers of samples, which no two parts share, drawn at random: for
// training and validation. Without a seed, the draw follows manual_seed().
LAZULI_API std::vector<Subset> random_split(const std::shared_ptr<const Dataset>& dataset,
                                            const std::vector<std::int64_t>& sizes,
                                            std::optional<std::uint64_t> seed = std::nullopt,
                                            LAZULI_LOC);
template <std::derived_from<Dataset> D>
std::vector<Subset> random_split(D dataset, const std::vector<std::int64_t>& sizes,
                                 std::optional<std::uint64_t> seed = std::nullopt, LAZULI_LOC) {
  return random_split(std::shared_ptr<const Dataset>(std::make_shared<D>(std::move(dataset))),
                      sizes, seed, loc);
}

struct DataLoaderOptions {
  std::int64_t batch_size = 1;  // samples in a batch; the last one may have fewer
  bool shuffle = false;         // a new order every epoch
  bool drop_last = false;       // leaves out a last batch that has fewer
  std::optional<std::uint64_t> seed =
      std::nullopt;           // of the orders; without, they follow manual_seed()
  std::int64_t prefetch = 2;  // batches that a thread prepares in advance; 0: no thread
  std::optional<Device> device = std::nullopt;  // of the tensors; without, the default device
};

// Loops over a data set in batches. Each begin() is a new epoch. Leaving a loop early is fine.
class LAZULI_API DataLoader {
 public:
  template <std::derived_from<Dataset> D>
  explicit DataLoader(D dataset, const DataLoaderOptions& options = {}, LAZULI_LOC)
      : DataLoader(std::shared_ptr<const Dataset>(std::make_shared<D>(std::move(dataset))), options,
                   loc) {}
  // Throws Error(kInvalidArgument) for an empty data set, for options out of range, and if there
  // would be no batch.
  explicit DataLoader(std::shared_ptr<const Dataset> dataset, const DataLoaderOptions& options = {},
                      LAZULI_LOC);

  class Epoch;
  class LAZULI_API Iterator {
   public:
    using iterator_category = std::input_iterator_tag;
    using value_type = Batch;
    using difference_type = std::ptrdiff_t;
    using pointer = Batch*;
    using reference = Batch&;
    Iterator() = default;
    // The batch may be changed and moved from.
    Batch& operator*() const;
    Batch* operator->() const { return &**this; }
    Iterator& operator++();
    void operator++(int) { ++*this; }
    friend bool operator==(const Iterator& it, std::default_sentinel_t) { return it.done(); }

   private:
    friend class DataLoader;
    explicit Iterator(std::shared_ptr<Epoch> epoch) : epoch_(std::move(epoch)) {}
    bool done() const;
    std::shared_ptr<Epoch> epoch_;
  };
  Iterator begin(LAZULI_LOC);
  std::default_sentinel_t end() const { return {}; }

  std::int64_t size() const;  // batches in an epoch
  const Dataset& dataset() const { return *dataset_; }

 private:
  std::shared_ptr<const Dataset> dataset_;
  DataLoaderOptions options_;
  std::uint64_t epochs_ = 0;  // begun
};

}  // namespace lazuli::data
