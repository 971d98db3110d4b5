#include "lazuli/device.h"

#include "backend/client/registry.h"
#include "cpp_api/src/facade.h"

namespace lazuli {
namespace {

backend::Device DefaultDevice() {
  Initialize();
  // Looked up once: the flag is read when first asked for, and devices are never destroyed.
  static const backend::Device device =
      Call(SourceLocation(), [] { return lazy::ValueOrThrow(backend::DefaultDevice()); });
  return device;
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

std::string Device::name() const { return DeviceAccess::Unwrap(*this).ToString(); }

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
