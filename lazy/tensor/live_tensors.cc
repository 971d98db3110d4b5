#include "lazy/tensor/live_tensors.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"

#include "ir/support/fork.h"

namespace lazuli::lazy {
namespace {

struct KnownTensor {
  uint64_t number;  // in order of creation
  SiteId site;
  Shape shape;
  backend::Device device;
  bool is_view;
};
struct KnownTensors {
  ir::ForkMutex mutex;
  uint64_t made = 0;
  absl::flat_hash_map<const Storage*, KnownTensor> alive;

  static KnownTensors& Get() {
    static auto* const known = new KnownTensors;
    return *known;
  }
};

}  // namespace

uint64_t MarkTensors() {
  KnownTensors& known = KnownTensors::Get();
  const std::lock_guard lock(known.mutex);
  internal::knows_tensors.store(true, std::memory_order_relaxed);
  return known.made;
}

std::vector<LiveTensors> TensorsSince(uint64_t mark) {
  KnownTensors& known = KnownTensors::Get();
  std::map<std::tuple<SiteId, std::string, std::string>, LiveTensors> groups;
  {
    const std::lock_guard lock(known.mutex);
    for (const auto& [storage, tensor] : known.alive) {
      if (tensor.number < mark) continue;
      LiveTensors& group = groups[{tensor.site, tensor.shape.ToString(), tensor.device.ToString()}];
      group.site = tensor.site;
      group.shape = tensor.shape;
      group.device = tensor.device;
      ++group.count;
      group.bytes += tensor.is_view ? 0 : tensor.shape.byte_size();
    }
  }
  std::vector<LiveTensors> result;
  for (auto& [key, group] : groups) result.push_back(std::move(group));
  std::stable_sort(result.begin(), result.end(), [](const LiveTensors& a, const LiveTensors& b) {
    return a.bytes != b.bytes ? a.bytes > b.bytes : a.count > b.count;
  });
  return result;
}

namespace internal {

void AddTensor(const Storage& storage) {
  KnownTensors& known = KnownTensors::Get();
  const std::lock_guard lock(known.mutex);
  known.alive.insert_or_assign(
      &storage, KnownTensor{known.made++, CurrentSite(), storage.shape(), storage.device(), false});
}

void AddView(const Storage& storage) {
  KnownTensors& known = KnownTensors::Get();
  const std::lock_guard lock(known.mutex);
  const auto it = known.alive.find(&storage);
  if (it != known.alive.end()) it->second.is_view = true;
}

void RemoveTensor(const Storage& storage) {
  KnownTensors& known = KnownTensors::Get();
  const std::lock_guard lock(known.mutex);
  known.alive.erase(&storage);
}

}  // namespace internal
}  // namespace lazuli::lazy
