// Devices: where tensors live and programs run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lazuli/export.h"

namespace lazuli {

class LAZULI_API Device {
 public:
  // "cpu", "cpu:1", "interpreter:0"; throws Error(kNotFound) that lists what exists.
  explicit Device(std::string_view name);
  // The default device: PJRT_DEVICE, else cpu:0.
  Device();
  std::string name() const;
  bool operator==(const Device&) const = default;

 private:
  friend struct DeviceAccess;
  Device(void* client, std::int32_t ordinal) : client_(client), ordinal_(ordinal) {}
  void* client_ = nullptr;
  std::int32_t ordinal_ = 0;
};

// Every device of every platform.
LAZULI_API std::vector<Device> devices();

}  // namespace lazuli
