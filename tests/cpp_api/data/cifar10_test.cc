#include <cstdint>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <unistd.h>

#include "tests/support/expect_error.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

namespace fs = std::filesystem;

// A folder with two images in each file, whose pixels are their label times 10.
class Cifar10Test : public testing::Test {
 protected:
  Cifar10Test() {
    fs::create_directories(folder_);
    for (int i = 1; i <= 5; ++i) Write("data_batch_" + std::to_string(i) + ".bin", {i, 9});
    Write("test_batch.bin", {7, 8});
  }
  ~Cifar10Test() override { fs::remove_all(folder_); }
  std::string Path(const std::string& name) const { return folder_ / name; }
  void Write(const std::string& name, const std::vector<int>& labels) const {
    std::ofstream out(Path(name), std::ios::binary);
    for (const int label : labels)
      out << static_cast<char>(label) << std::string(3072, static_cast<char>(label * 10));
  }
  const fs::path folder_ = fs::temp_directory_path() / ("lazuli_cifar." + std::to_string(getpid()));
};

TEST_F(Cifar10Test, ReadsImagesAndLabelsOfAllFiles) {
  const data::Cifar10 train(folder_), test(folder_, /*train=*/false);
  EXPECT_EQ(train.size(), 10);
  EXPECT_EQ(test.size(), 2);
  const data::HostBatch batch = train.get(std::vector<std::int64_t>{4, 1});
  EXPECT_EQ(batch.x.dims, (Dims{2, 3, 32, 32}));
  EXPECT_EQ(batch.y.data<std::int64_t>()[0], 3);
  EXPECT_EQ(batch.y.data<std::int64_t>()[1], 9);
  const float* x = batch.x.data<float>();
  EXPECT_EQ(x[0], (30.0f / 255 - 0.4914f) / 0.2470f);
  EXPECT_EQ(x[1024], (30.0f / 255 - 0.4822f) / 0.2435f);
  EXPECT_EQ(x[3071], (30.0f / 255 - 0.4465f) / 0.2616f);
  EXPECT_EQ(x[3072], (90.0f / 255 - 0.4914f) / 0.2470f);
  EXPECT_STREQ(data::Cifar10::classes()[3], "cat");
}

TEST_F(Cifar10Test, MissingAndDamagedFilesAreErrors) {
  EXPECT_ERROR(kNotFound,
               "cannot read nowhere/test_batch.bin; tools/fetch_cifar10.sh gets CIFAR-10 and "
               "prints the folder it is in",
               data::Cifar10("nowhere", false));
  const std::string again = "; get it again by tools/fetch_cifar10.sh";
  fs::resize_file(Path("data_batch_2.bin"), 5000);
  EXPECT_ERROR(kInvalidArgument,
               Path("data_batch_2.bin") +
                   " is damaged or no CIFAR-10: it has 5000 bytes, which are not images of 3073" +
                   again,
               data::Cifar10(folder_.string()));
  fs::resize_file(Path("data_batch_2.bin"), 0);
  EXPECT_ERROR(kInvalidArgument,
               Path("data_batch_2.bin") +
                   " is damaged or no CIFAR-10: it has 0 bytes, which are not images of 3073" +
                   again,
               data::Cifar10(folder_.string()));
  Write("test_batch.bin", {1, 12});
  EXPECT_ERROR(
      kInvalidArgument,
      Path("test_batch.bin") + " is damaged or no CIFAR-10: label 1 is 12, classes go to 9" + again,
      data::Cifar10(folder_.string(), false));
}

data::TensorDataset CountTo(std::int64_t n) { return {arange(n), arange(n)}; }
std::vector<std::int64_t> All(const data::Dataset& dataset) {
  std::vector<std::int64_t> indices(static_cast<std::size_t>(dataset.size()));
  for (std::size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<std::int64_t>(i);
  const data::HostBatch batch = dataset.get(indices);
  return {batch.x.data<std::int64_t>(), batch.x.data<std::int64_t>() + indices.size()};
}

TEST(RepeatTest, GivesTheSamplesSeveralTimes) {
  EXPECT_EQ(All(data::Repeat(CountTo(3), 2)), (std::vector<std::int64_t>{0, 1, 2, 0, 1, 2}));
  EXPECT_ERROR(kInvalidArgument, "Repeat: times is 0, it must be at least 1",
               data::Repeat(CountTo(3), 0));
}

TEST(RandomSplitTest, PartsShareNoSampleAndFollowTheSeed) {
  const auto parts = data::random_split(CountTo(10), {7, 3}, 5);
  ASSERT_EQ(parts.size(), 2u);
  std::set<std::int64_t> seen;
  for (const data::Subset& part : parts)
    for (const std::int64_t i : All(part)) EXPECT_TRUE(seen.insert(i).second) << i;
  EXPECT_EQ(seen.size(), 10u);
  EXPECT_EQ(All(data::random_split(CountTo(10), {7, 3}, 5)[1]), All(parts[1]));
  EXPECT_NE(All(data::random_split(CountTo(10), {7, 3}, 6)[0]), All(parts[0]));
  manual_seed(1);
  const auto first = All(data::random_split(CountTo(10), {10})[0]);
  manual_seed(1);
  EXPECT_EQ(All(data::random_split(CountTo(10), {10})[0]), first);
}

TEST(RandomSplitTest, PartsThatDoNotFitAreErrors) {
  EXPECT_ERROR(kInvalidArgument, "random_split: the parts have 9 samples, the data set 10",
               data::random_split(CountTo(10), {6, 3}));
  EXPECT_ERROR(kInvalidArgument, "random_split: a part of -1 samples",
               data::random_split(CountTo(10), {11, -1}));
}

}  // namespace
}  // namespace lazuli
