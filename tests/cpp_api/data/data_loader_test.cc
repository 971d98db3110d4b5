#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <numeric>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

using testing::ElementsAre;
using Indices = std::vector<std::int64_t>;

// Sample i is x = i, y = 10 i.
class Numbers : public data::Dataset {
 public:
  explicit Numbers(std::int64_t size, std::int64_t throws_at = -1)
      : size_(size), throws_at_(throws_at) {}
  std::int64_t size() const override { return size_; }
  data::HostBatch get(std::span<const std::int64_t> indices) const override {
    ++*calls_;
    const Dims dims{static_cast<std::int64_t>(indices.size())};
    data::HostBatch batch{data::HostArray::zeros(dims, kInt64),
                          data::HostArray::zeros(dims, kInt64)};
    for (std::size_t i = 0; i < indices.size(); ++i) {
      if (indices[i] == throws_at_) throw std::runtime_error("sample 7 is bad");
      batch.x.data<std::int64_t>()[i] = indices[i];
      batch.y.data<std::int64_t>()[i] = indices[i] * 10;
    }
    return batch;
  }
  std::shared_ptr<std::atomic<int>> calls() const { return calls_; }

 private:
  std::int64_t size_, throws_at_;
  std::shared_ptr<std::atomic<int>> calls_ = std::make_shared<std::atomic<int>>(0);
};

// The samples of one epoch, batch by batch.
std::vector<Indices> Epoch(data::DataLoader& loader) {
  std::vector<Indices> batches;
  for (auto& [x, y] : loader) {
    batches.push_back(x.to_vector<std::int64_t>());
    Indices ten_times = batches.back();
    for (std::int64_t& i : ten_times) i *= 10;
    EXPECT_EQ(y.to_vector<std::int64_t>(), ten_times);
  }
  return batches;
}
Indices Flat(const std::vector<Indices>& batches) {
  Indices all;
  for (const Indices& batch : batches) all.insert(all.end(), batch.begin(), batch.end());
  return all;
}

TEST(DataLoaderTest, GoesThroughTheSamplesInOrder) {
  data::DataLoader loader(Numbers(7), {.batch_size = 3});
  EXPECT_EQ(loader.size(), 3);
  EXPECT_THAT(Epoch(loader),
              ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5), ElementsAre(6)));
  EXPECT_EQ(Epoch(loader).size(), 3u) << "and again";
}

TEST(DataLoaderTest, DropLastLeavesOutTheShortBatch) {
  data::DataLoader loader(Numbers(7), {.batch_size = 3, .drop_last = true});
  EXPECT_EQ(loader.size(), 2);
  EXPECT_THAT(Epoch(loader), ElementsAre(ElementsAre(0, 1, 2), ElementsAre(3, 4, 5)));
  data::DataLoader whole(Numbers(6), {.batch_size = 3});
  EXPECT_EQ(whole.size(), 2);
  EXPECT_EQ(Epoch(whole).size(), 2u);
}

TEST(DataLoaderTest, ShufflingVisitsEachSampleOnceInANewOrderEveryEpoch) {
  manual_seed(1);
  data::DataLoader loader(Numbers(100), {.batch_size = 8, .shuffle = true});
  const Indices first = Flat(Epoch(loader)), second = Flat(Epoch(loader));
  Indices all(100);
  std::iota(all.begin(), all.end(), 0);
  EXPECT_NE(first, all);
  EXPECT_NE(first, second);
  EXPECT_TRUE(std::is_permutation(first.begin(), first.end(), all.begin()));
  EXPECT_TRUE(std::is_permutation(second.begin(), second.end(), all.begin()));
}

TEST(DataLoaderTest, OrdersFollowManualSeed) {
  const auto order = [](std::uint64_t seed) {
    manual_seed(seed);
    data::DataLoader loader(Numbers(50), {.batch_size = 8, .shuffle = true});
    return std::vector{Flat(Epoch(loader)), Flat(Epoch(loader))};
  };
  EXPECT_EQ(order(1), order(1));
  EXPECT_NE(order(1)[0], order(2)[0]);
}

TEST(DataLoaderTest, AnOwnSeedDoesNotDependOnManualSeed) {
  const auto order = [](std::uint64_t global, std::uint64_t own) {
    manual_seed(global);
    data::DataLoader loader(Numbers(50), {.batch_size = 8, .shuffle = true, .seed = own});
    return std::vector{Flat(Epoch(loader)), Flat(Epoch(loader))};
  };
  EXPECT_EQ(order(1, 5), order(2, 5));
  EXPECT_NE(order(1, 5), order(1, 6));
  EXPECT_NE(order(1, 5)[0], order(1, 5)[1]);
}

TEST(DataLoaderTest, EverySampleIsFirstAboutEquallyOften) {
  std::vector<int> first(4);
  for (std::uint64_t seed = 0; seed < 2000; ++seed) {
    data::DataLoader loader(Numbers(4), {.shuffle = true, .seed = seed, .prefetch = 0});
    ++first[static_cast<std::size_t>((*loader.begin()).x.item<std::int64_t>())];
  }
  for (const int n : first) EXPECT_NEAR(n, 500, 80);  // 4 standard deviations
}

TEST(DataLoaderTest, PrefetchingChangesNothing) {
  std::vector<std::vector<Indices>> epochs;
  for (const std::int64_t prefetch : {0, 1, 2, 100}) {
    data::DataLoader loader(Numbers(50),
                            {.batch_size = 4, .shuffle = true, .seed = 1, .prefetch = prefetch});
    epochs.push_back(Epoch(loader));
    EXPECT_EQ(epochs.back(), epochs.front()) << prefetch;
  }
}

TEST(DataLoaderTest, PreparesNoMoreThanItIsAskedTo) {
  const Numbers numbers(1000);
  const auto calls = numbers.calls();
  data::DataLoader loader(numbers, {.prefetch = 3});
  {
    const auto epoch = loader.begin();
    while (*calls < 5) std::this_thread::yield();  // the one taken, three that wait, one in hand
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    EXPECT_EQ(*calls, 5);
  }
  const int after = *calls;
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  EXPECT_EQ(*calls, after) << "the thread has ended";
}

// The thread that reads a batch uploads it too: the loop finds it there.
TEST(DataLoaderTest, BatchesThatWaitLieOnTheDevice) {
  const Device device("interpreter");
  const std::int64_t before = memory_stats(device).bytes_in_use;
  data::DataLoader loader(Numbers(1000), {.batch_size = 8, .prefetch = 3, .device = device});
  {
    const auto epoch = loader.begin();
    constexpr std::int64_t kFive = 5 * 2 * 8 * 8;  // the one taken, three that wait, one in hand
    while (memory_stats(device).bytes_in_use < before + kFive) std::this_thread::yield();
    EXPECT_EQ(memory_stats(device).bytes_in_use, before + kFive);
  }
  EXPECT_EQ(memory_stats(device).bytes_in_use, before);
}

// Tensors that the loader's thread made: after it ended they are as good as any.
TEST(DataLoaderTest, BatchesOutliveTheirEpochAndCompileOnce) {
  std::vector<Tensor> kept;
  const std::int64_t before = metrics::counter("UncachedCompile");
  {
    data::DataLoader loader(Numbers(12), {.batch_size = 3});
    for (auto& [x, y] : loader) {
      kept.push_back(x);
      x.add_(y);
      mark_step();
    }
  }
  EXPECT_EQ(metrics::counter("UncachedCompile") - before, 1);
  EXPECT_THAT(kept[3].to_vector<std::int64_t>(), ElementsAre(99, 110, 121));
}

TEST(DataLoaderTest, LeavingEarlyIsFine) {
  data::DataLoader loader(Numbers(1000), {.batch_size = 10});
  for (int i = 0; i < 20; ++i) {
    for (auto& [x, y] : loader) {
      if (x.to_vector<std::int64_t>()[0] >= 10 * (i % 3)) break;
    }
  }
  EXPECT_EQ(Flat(Epoch(loader)).size(), 1000u);
}

TEST(DataLoaderTest, EpochsCanBeUnderWayTogether) {
  data::DataLoader loader(Numbers(3), {.batch_size = 2});
  int pairs = 0;
  for (auto& [x, y] : loader) {
    for (auto& [u, v] : loader) pairs += x.defined() && u.defined();
  }
  EXPECT_EQ(pairs, 4);
}

TEST(DataLoaderTest, WhatTheDataSetThrowsTheLoopThrowsAtItsBatch) {
  for (const std::int64_t prefetch : {0, 2}) {
    data::DataLoader loader(Numbers(20, /*throws_at=*/7), {.batch_size = 3, .prefetch = prefetch});
    int batches = 0;
    try {
      for (auto& [x, y] : loader) batches += x.defined();
      ADD_FAILURE() << "nothing was thrown";
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(std::string(error.what()), "sample 7 is bad");
    }
    EXPECT_EQ(batches, 2) << "those before it";
  }
}

TEST(DataLoaderTest, AnErrorThatTheLoopDoesNotReachIsDropped) {
  data::DataLoader loader(Numbers(20, /*throws_at=*/1), {});
  const auto epoch = loader.begin();
  EXPECT_EQ(epoch->x.item<std::int64_t>(), 0);
}

TEST(DataLoaderTest, ADataSetThatGivesTooFewRowsIsAnError) {
  class TooFew : public Numbers {
   public:
    using Numbers::Numbers;
    data::HostBatch get(std::span<const std::int64_t> indices) const override {
      return Numbers::get(indices.first(1));
    }
  };
  data::DataLoader loader(TooFew(4), {.batch_size = 2});
  EXPECT_ERROR(kInvalidArgument,
               "DataLoader: the data set was asked for 2 samples and gave 1 rows of x",
               loader.begin());
}

TEST(DataLoaderTest, ADataSetThatGivesTooFewBytesIsAnError) {
  class TooFew : public Numbers {
   public:
    using Numbers::Numbers;
    data::HostBatch get(std::span<const std::int64_t> indices) const override {
      data::HostBatch batch = Numbers::get(indices);
      batch.y.bytes.pop_back();
      return batch;
    }
  };
  data::DataLoader loader(TooFew(4), {.batch_size = 2});
  EXPECT_ERROR(
      kInvalidArgument,
      "DataLoader: the data set was asked for 2 samples and gave 15 bytes instead of 16 of y",
      loader.begin());
  try {
    data::HostArray::zeros({2}, kBFloat16);
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "HostArray: no bf16 arrays");
  }
}

TEST(DataLoaderTest, BatchesLieOnTheDeviceAskedFor) {
  const Device interpreter("interpreter");
  data::DataLoader loader(Numbers(2), {.device = interpreter});
  for (auto& [x, y] : loader) {
    EXPECT_EQ(x.device(), interpreter);
    EXPECT_EQ(y.device(), interpreter);
  }
}

TEST(DataLoaderTest, WrongOptionsAreErrors) {
  EXPECT_ERROR(kInvalidArgument,
               "DataLoader: the data set is empty, so there is nothing to loop over",
               data::DataLoader(Numbers(0)));
  EXPECT_ERROR(kInvalidArgument, "DataLoader: batch_size is 0, it must be at least 1",
               data::DataLoader(Numbers(3), {.batch_size = 0}));
  EXPECT_ERROR(
      kInvalidArgument,
      "DataLoader: prefetch is -1, it must be the number of batches to prepare in advance, or 0",
      data::DataLoader(Numbers(3), {.prefetch = -1}));
  EXPECT_ERROR(kInvalidArgument,
               "DataLoader: drop_last leaves no batch, because the data set has 3 samples and "
               "batch_size is 4",
               data::DataLoader(Numbers(3), {.batch_size = 4, .drop_last = true}));
}

TEST(DatasetTest, TensorDatasetGivesRows) {
  const Tensor x = arange(6, kFloat32).reshape({3, 2});
  data::DataLoader loader(data::TensorDataset(x, tensor<std::int64_t>({5, 6, 7})),
                          {.batch_size = 2});
  auto it = loader.begin();
  EXPECT_EQ(it->x.sizes(), (Dims{2, 2}));
  ++it;
  EXPECT_THAT(it->x.to_vector<float>(), ElementsAre(4, 5));
  EXPECT_THAT(it->y.to_vector<std::int64_t>(), ElementsAre(7));
  ++it;
  EXPECT_TRUE(it == loader.end());
}

TEST(DatasetTest, TensorDatasetTakesOtherTypes) {
  const data::TensorDataset pairs(tensor<bool>({true, false}), tensor<double>({0.5, 1.5}));
  const data::HostBatch batch = pairs.get(Indices{1, 0, 1});
  EXPECT_EQ(batch.x.dtype, kBool);
  EXPECT_EQ(batch.y.dims, (Dims{3}));
  EXPECT_EQ(batch.y.data<double>()[1], 0.5);
}

TEST(DatasetTest, SubsetPicksAndOrders) {
  data::DataLoader loader(data::Subset(Numbers(10), {7, 2, 2}), {.batch_size = 3});
  EXPECT_THAT(Flat(Epoch(loader)), ElementsAre(7, 2, 2));
}

TEST(DatasetTest, WrongArgumentsAreErrors) {
  EXPECT_ERROR(kInvalidArgument,
               "TensorDataset: x and y must have the same first dim, the number of samples, but "
               "are f32[3,2] and f32[2]",
               data::TensorDataset(ones({3, 2}), ones({2})));
  EXPECT_ERROR(kUnimplemented, "TensorDataset: no bf16 tensors; convert it by to()",
               data::TensorDataset(ones({3}, kBFloat16), ones({3})));
  EXPECT_ERROR(kOutOfRange, "Subset: index 10 is out of range for a data set of 10 samples",
               data::Subset(Numbers(10), {1, 10}));
}

}  // namespace
}  // namespace lazuli
