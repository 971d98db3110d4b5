#include "lazuli/device.h"

#include <atomic>

#include "backend/client/registry.h"
#include "cpp_api/src/facade.h"
#include "ir/support/runtime.h"

namespace lazuli {
namespace {

// The runtime's: what set_device_type said, else the flags; found when first asked for. Devices are
// never destroyed.
std::atomic<const backend::Device*>& TheDefault() {
  struct Default {
    std::atomic<const backend::Device*> device{nullptr};
  };
  return ir::Runtime::Get().Of<Default>().device;
}

const backend::Device* Lasting(const backend::Device& device) {
  return &device.client->devices()[static_cast<std::size_t>(device.ordinal)];
}

backend::Device DefaultDevice() {
  const backend::Device* device = TheDefault().load(std::memory_order_acquire);
  if (device != nullptr) return *device;
  Initialize();
  const backend::Device found =
      Call(SourceLocation(), [] { return lazy::ValueOrThrow(backend::DefaultDevice()); });
  TheDefault().compare_exchange_strong(device, Lasting(found));
  return *TheDefault().load(std::memory_order_acquire);
}

}  // namespace

Device::Device() {
  const backend::Device device = DefaultDevice();
  client_ = device.client;
  ordinal_ = device.ordinal;
}

Device::Device(std::string_view name) {
  Initialize();
  const backend::Device device =
      Call(SourceLocation(), [&] { return lazy::ValueOrThrow(backend::FindDevice(name)); });
  client_ = device.client;
  ordinal_ = device.ordinal;
}

Device::Device(DeviceType type, int index)
    : Device(std::string(type.name) + ":" + std::to_string(index)) {}

std::string Device::name() const { return DeviceAccess::Unwrap(*this).ToString(); }

DeviceType Device::type() const { return {DeviceAccess::Unwrap(*this).client->platform()}; }

std::string device_type() { return std::string(DefaultDevice().client->platform()); }

void set_device_type(std::string_view type) {
  const backend::Device device = DeviceAccess::Unwrap(Device(type));
  TheDefault().store(Lasting(device), std::memory_order_release);
}

std::vector<Device> devices() {
  Initialize();
  std::vector<Device> result;
  for (const std::string& platform : backend::RegisteredPlatforms()) {
    auto client = backend::FindClient(platform);
    if (!client.ok()) continue;
    for (const backend::Device& device : (*client)->devices())
      result.push_back(DeviceAccess::Wrap(device));
  }
  return result;
}

std::string_view to_string(DType dtype) { return ir::DTypeText(Unwrap(dtype)); }

}  // namespace lazuli
