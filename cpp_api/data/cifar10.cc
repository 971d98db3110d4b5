#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cpp_api/data/read_file.h"
#include "lazuli/data.h"
#include "lazuli/internal/fail.h"

namespace lazuli::data {
namespace {

using lazuli::internal::Fail;

constexpr std::int64_t kImageSide = 32, kChannels = 3, kPlane = kImageSide * kImageSide;
constexpr std::size_t kRecord = 1 + kChannels * kPlane;  // a label and the planes of an image
constexpr int kImageClasses = 10;
// Of the training images.
constexpr std::array<float, 3> kMeans{0.4914f, 0.4822f, 0.4465f};
constexpr std::array<float, 3> kDeviations{0.2470f, 0.2435f, 0.2616f};

// Of each channel and byte its normalised value.
using ChannelTable = std::array<std::array<float, 256>, 3>;
ChannelTable MakeChannelTable() {
  ChannelTable table;
  for (std::size_t c = 0; c < table.size(); ++c) {
    for (std::size_t i = 0; i < 256; ++i)
      table[c][i] = (static_cast<float>(i) / 255.0f - kMeans[c]) / kDeviations[c];
  }
  return table;
}

}  // namespace

struct Cifar10::Records {
  std::vector<std::uint8_t> bytes;
};

Cifar10::Cifar10(const std::string& folder, bool train, SourceLocation loc) {
  std::vector<std::string> names;
  for (int i = 1; train && i <= 5; ++i) names.push_back("data_batch_" + std::to_string(i) + ".bin");
  if (!train) names.push_back("test_batch.bin");
  auto records = std::make_shared<Records>();
  for (const std::string& name : names) {
    std::string path = folder;
    path += "/" + name;
    const std::vector<std::uint8_t> bytes =
        ReadFile(path, "tools/fetch_cifar10.sh gets CIFAR-10 and prints the folder it is in", loc);
    const auto damaged = [&](const std::string& what) {
      std::string message = path;
      message += " is damaged or no CIFAR-10: " + what;
      message += "; get it again by tools/fetch_cifar10.sh";
      Fail(ErrorCode::kInvalidArgument, message, loc);
    };
    if (bytes.empty() || bytes.size() % kRecord != 0) {
      damaged("it has " + std::to_string(bytes.size()) + " bytes, which are not images of " +
              std::to_string(kRecord));
    }
    for (std::size_t i = 0; i < bytes.size(); i += kRecord) {
      if (bytes[i] < kImageClasses) continue;
      damaged("label " + std::to_string(i / kRecord) + " is " + std::to_string(bytes[i]) +
              ", classes go to 9");
    }
    records->bytes.insert(records->bytes.end(), bytes.begin(), bytes.end());
  }
  records_ = std::move(records);
}

std::int64_t Cifar10::size() const {
  return static_cast<std::int64_t>(records_->bytes.size() / kRecord);
}

HostBatch Cifar10::get(std::span<const std::int64_t> indices) const {
  static const ChannelTable table = MakeChannelTable();
  const auto n = static_cast<std::int64_t>(indices.size());
  HostBatch batch{HostArray::zeros({n, kChannels, kImageSide, kImageSide}, kFloat32),
                  HostArray::zeros({n}, kInt64)};
  auto* x = batch.x.data<float>();
  auto* y = batch.y.data<std::int64_t>();
  for (const std::int64_t index : indices) {
    const std::uint8_t* byte = records_->bytes.data() + static_cast<std::size_t>(index) * kRecord;
    *y++ = *byte++;
    for (const auto& channel : table) {
      for (std::int64_t i = 0; i < kPlane; ++i) *x++ = channel[*byte++];
    }
  }
  return batch;
}

const std::array<const char*, 10>& Cifar10::classes() {
  static const std::array<const char*, 10> names{
      "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"};
  return names;
}

}  // namespace lazuli::data
