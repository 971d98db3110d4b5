#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>

#include "cpp_api/data/idx.h"
#include "lazuli/data.h"
#include "lazuli/internal/fail.h"

namespace lazuli::data {
namespace {

using lazuli::internal::Fail;

constexpr std::uint32_t kDigitSide = 28;
constexpr int kDigits = 10;
constexpr float kMean = 0.1307f, kDeviation = 0.3081f;

// Of each byte its normalised value.
std::array<float, 256> PixelTable() {
  std::array<float, 256> table;
  for (int i = 0; i < 256; ++i) {
    table[i] = (static_cast<float>(i) / 255.0f - kMean) / kDeviation;
  }
  return table;
}

}  // namespace

struct Mnist::Files {
  std::vector<std::uint8_t> pixels, labels;
};

Mnist::Mnist(const std::string& folder, bool train, SourceLocation loc) {
  const std::string prefix = folder + (train ? "/train-" : "/t10k-");
  const std::string image_path = prefix + "images-idx3-ubyte";
  const std::string label_path = prefix + "labels-idx1-ubyte";
  IdxFile images = ReadIdx(image_path, 3, loc), labels = ReadIdx(label_path, 1, loc);
  if (images.dims[1] != kDigitSide || images.dims[2] != kDigitSide) {
    Fail(ErrorCode::kInvalidArgument,
         image_path + " is not MNIST's: its images are " + std::to_string(images.dims[1]) + " x " +
             std::to_string(images.dims[2]) + " instead of 28 x 28",
         loc);
  }
  if (images.dims[0] != labels.dims[0]) {
    Fail(ErrorCode::kInvalidArgument,
         image_path + " has " + std::to_string(images.dims[0]) + " images, but " + label_path +
             " has " + std::to_string(labels.dims[0]) + " labels; they do not belong together",
         loc);
  }
  for (std::size_t i = 0; i < labels.bytes.size(); ++i) {
    if (labels.bytes[i] < kDigits) continue;
    Fail(ErrorCode::kInvalidArgument,
         label_path + " is damaged: label " + std::to_string(i) + " is " +
             std::to_string(labels.bytes[i]) + ", digits go to 9",
         loc);
  }
  files_ = std::make_shared<Files>(
      Files{.pixels = std::move(images.bytes), .labels = std::move(labels.bytes)});
}

std::int64_t Mnist::size() const { return static_cast<std::int64_t>(files_->labels.size()); }

HostBatch Mnist::get(std::span<const std::int64_t> indices) const {
  static const std::array<float, 256> table = PixelTable();
  const auto n = static_cast<std::int64_t>(indices.size());
  HostBatch batch{HostArray::zeros({n, 1, kDigitSide, kDigitSide}, kFloat32),
                  HostArray::zeros({n}, kInt64)};
  auto* x = batch.x.data<float>();
  auto* y = batch.y.data<std::int64_t>();
  for (const std::int64_t index : indices) {
    const std::uint8_t* pixels = files_->pixels.data() + index * kDigitSide * kDigitSide;
    x = std::transform(pixels, pixels + kDigitSide * kDigitSide, x,
                       [](std::uint8_t pixel) { return table[pixel]; });
    *y++ = files_->labels[static_cast<std::size_t>(index)];
  }
  return batch;
}

}  // namespace lazuli::data
