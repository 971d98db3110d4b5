#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <unistd.h>

#include "tests/support/expect_error.h"
#include "tests/training/digits.h"
#include <lazuli/lazuli.h>

namespace lazuli {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::uint8_t>;

// A folder with ten training images and four test images, which tests damage.
class MnistTest : public testing::Test {
 protected:
  MnistTest() { test::WriteDigits(folder_, 10, 4); }
  ~MnistTest() override { fs::remove_all(folder_); }

  std::string Path(const std::string& name) const { return folder_ / name; }
  void Resize(const std::string& name, std::uintmax_t size) { fs::resize_file(Path(name), size); }
  void Overwrite(const std::string& name, std::streamoff at, const Bytes& bytes) {
    std::fstream file(Path(name), std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(at);
    file.write(reinterpret_cast<const char*>(bytes.data()),
               static_cast<std::streamsize>(bytes.size()));
  }

  const fs::path folder_ = fs::temp_directory_path() / ("lazuli_mnist." + std::to_string(getpid()));
};
constexpr const char* kImages = "train-images-idx3-ubyte";
constexpr const char* kLabels = "train-labels-idx1-ubyte";

TEST_F(MnistTest, ReadsImagesAndLabels) {
  Overwrite(kImages, 16 + 3 * 784, {0, 128, 255});
  Overwrite(kLabels, 8 + 3, {9});
  const data::Mnist mnist(folder_);
  EXPECT_EQ(mnist.size(), 10);
  const data::HostBatch batch = mnist.get(std::vector<std::int64_t>{3, 0});
  EXPECT_EQ(batch.x.dtype, kFloat32);
  EXPECT_EQ(batch.x.dims, (Dims{2, 1, 28, 28}));
  EXPECT_EQ(batch.x.data<float>()[0], (0.0f - 0.1307f) / 0.3081f);
  EXPECT_EQ(batch.x.data<float>()[1], (128.0f / 255 - 0.1307f) / 0.3081f);
  EXPECT_EQ(batch.x.data<float>()[2], (1.0f - 0.1307f) / 0.3081f);
  EXPECT_EQ(batch.y.dtype, kInt64);
  EXPECT_EQ(batch.y.dims, (Dims{2}));
  EXPECT_EQ(batch.y.data<std::int64_t>()[0], 9);
  EXPECT_EQ(data::Mnist(folder_, /*train=*/false).size(), 4);
}

TEST_F(MnistTest, AMissingFileOrFolder) {
  const std::string hint = "; tools/fetch_mnist.sh gets MNIST and prints the folder it is in";
  EXPECT_ERROR(kNotFound, "cannot read nowhere/t10k-images-idx3-ubyte" + hint,
               data::Mnist("nowhere", false));
  fs::remove(Path(kLabels));
  EXPECT_ERROR(kNotFound, "cannot read " + Path(kLabels) + hint, data::Mnist(folder_.string()));
  fs::create_directory(Path(kLabels));
  EXPECT_ERROR(kNotFound, "cannot read " + Path(kLabels) + hint, data::Mnist(folder_.string()));
}

TEST_F(MnistTest, DamagedFiles) {
  const auto expect = [&](const char* name, const std::string& what) {
    SCOPED_TRACE(what);
    EXPECT_ERROR(kInvalidArgument,
                 Path(name) + " " + what + "; get it again by tools/fetch_mnist.sh",
                 data::Mnist(folder_.string()));
  };
  Resize(kImages, 16 + 784 * 10 - 1);
  expect(kImages, "is truncated: it has 7839 bytes of data, its header says 10 x 28 x 28");
  Resize(kImages, 16 + 784 * 10 + 1);
  expect(kImages, "is too long: it has 7841 bytes of data, its header says 10 x 28 x 28");
  Resize(kImages, 7);
  expect(kImages, "is truncated: it has 7 bytes, its header 16");
  Resize(kImages, 0);
  expect(kImages, "is truncated: it has 0 bytes, its header 16");
  Resize(kImages, 100);
  expect(
      kImages,
      "is not an IDX file of bytes with 3 dims: it begins with 0x00000000 instead of 0x00000803");
  Overwrite(kImages, 0, {0x1f, 0x8b, 8, 0});
  expect(kImages, "is still compressed by gzip");
  Overwrite(kImages, 0, {0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255});
  expect(kImages,
         "is truncated: it has 84 bytes of data, its header says "
         "4294967295 x 4294967295 x 4294967295");
}

TEST_F(MnistTest, FilesThatAreNotMnists) {
  const std::string folder = folder_;
  Overwrite(kLabels, 8 + 5, {10});
  EXPECT_ERROR(kInvalidArgument, Path(kLabels) + " is damaged: label 5 is 10, digits go to 9",
               data::Mnist(folder, true));
  fs::copy_file(Path("t10k-labels-idx1-ubyte"), Path(kLabels),
                fs::copy_options::overwrite_existing);
  EXPECT_ERROR(kInvalidArgument,
               Path(kImages) + " has 10 images, but " + Path(kLabels) +
                   " has 4 labels; they do not belong together",
               data::Mnist(folder, true));
  test::WriteIdx(Path(kImages), {4, 2, 3}, Bytes(24));
  EXPECT_ERROR(kInvalidArgument,
               Path(kImages) + " is not MNIST's: its images are 2 x 3 instead of 28 x 28",
               data::Mnist(folder, true));
}

}  // namespace
}  // namespace lazuli
