#include "backend/client/registry.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <mutex>

#include "ir/support/flags.h"
#include "ir/support/fork.h"
#include "ir/support/name_list.h"
#include "ir/support/runtime.h"
#include "ir/support/status.h"

namespace lazuli::backend {
namespace {

struct Platform {
  ClientFactory factory;
  int priority = 0;
  ir::ForkMutex mutex;  // held while the client is made
  std::unique_ptr<ComputationClient> client;
};

// Clients live as long as the process: buffers and devices point to them.
struct PlatformRegistry {
  ir::ForkMutex mutex;
  std::map<std::string, std::unique_ptr<Platform>, std::less<>> platforms;
};
PlatformRegistry& TheRegistry() { return ir::Runtime::Get().Of<PlatformRegistry>(); }

std::string LowerCase(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string Known() {
  const std::vector<std::string> platforms = RegisteredPlatforms();
  return platforms.empty() ? "no platform is registered"
                           : Str("the platforms are ", Join(platforms, ", "));
}

absl::Status NoSuchDevice(std::string_view name, absl::Span<const Device> devices) {
  return NotFound("no device \"", name, "\": the devices are ", Join(devices, ", "));
}

}  // namespace

void RegisterPlatform(std::string_view platform, ClientFactory factory, int priority) {
  PlatformRegistry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  auto [it, inserted] = registry.platforms.try_emplace(std::string(platform));
  if (!inserted) return;
  it->second = std::make_unique<Platform>();
  it->second->factory = std::move(factory);
  it->second->priority = priority;
}

std::vector<std::string> RegisteredPlatforms() {
  PlatformRegistry& registry = TheRegistry();
  std::lock_guard lock(registry.mutex);
  std::vector<std::string> names;
  for (const auto& [name, platform] : registry.platforms) names.push_back(name);
  return names;
}

absl::StatusOr<ComputationClient*> FindClient(std::string_view name) {
  Platform* platform = nullptr;
  {
    PlatformRegistry& registry = TheRegistry();
    std::lock_guard lock(registry.mutex);
    auto it = registry.platforms.find(LowerCase(name));
    if (it != registry.platforms.end()) platform = it->second.get();
  }
  if (platform == nullptr) return NotFound("no platform \"", name, "\": ", Known());
  std::lock_guard lock(platform->mutex);
  if (platform->client == nullptr) {
    LAZULI_ASSIGN_OR_RETURN(platform->client, platform->factory());
  }
  return platform->client.get();
}

absl::StatusOr<Device> FindDevice(std::string_view name) {
  const std::size_t colon = name.find(':');
  const std::string_view digits =
      colon == std::string_view::npos ? std::string_view("0") : name.substr(colon + 1);
  int32_t ordinal = -1;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), ordinal);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size() || ordinal < 0) {
    return InvalidArgument("\"", name, "\" is not a device name: one reads like cpu or cpu:0");
  }
  absl::StatusOr<ComputationClient*> client = FindClient(name.substr(0, colon));
  if (!client.ok() && client.status().code() == absl::StatusCode::kNotFound)
    return NotFound("no device \"", name, "\": ", Known());
  if (!client.ok()) return client.status();
  for (const Device& device : (*client)->devices()) {
    if (device.ordinal == ordinal) return device;
  }
  return NoSuchDevice(name, (*client)->devices());
}

namespace {

// The enabled platform of the highest priority; of two, the one that is named first.
absl::StatusOr<std::string> PreferredPlatform() {
  PlatformRegistry& registry = TheRegistry();
  std::string preferred;
  int priority = 0;
  const std::string enabled = flags().enabled_devices();
  for (const std::string_view given : SplitNames(enabled)) {
    const std::string name = LowerCase(given);
    const Platform* platform = nullptr;
    {
      const std::lock_guard lock(registry.mutex);
      const auto it = registry.platforms.find(name);
      if (it != registry.platforms.end()) platform = it->second.get();
    }
    if (platform == nullptr)
      return NotFound("LAZULI_ENABLED_DEVICES: no platform \"", name, "\": ", Known());
    if (!preferred.empty() && platform->priority <= priority) continue;
    preferred = name;
    priority = platform->priority;
  }
  if (preferred.empty()) return InvalidArgument("LAZULI_ENABLED_DEVICES enables no platform");
  return preferred;
}

}  // namespace

absl::StatusOr<Device> DefaultDevice() {
  if (flags().device().empty()) {
    LAZULI_ASSIGN_OR_RETURN(const std::string platform, PreferredPlatform());
    return FindDevice(platform);
  }
  absl::StatusOr<Device> device = FindDevice(flags().device());
  if (!device.ok()) return Prefixed(device.status(), "PJRT_DEVICE: ");
  return device;
}

}  // namespace lazuli::backend
