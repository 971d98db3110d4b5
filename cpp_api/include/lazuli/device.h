// Devices: where tensors live and programs run.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lazuli/export.h"

namespace lazuli {

// A platform by name.
struct DeviceType {
  std::string_view name;
  bool operator==(const DeviceType&) const = default;
};
inline constexpr DeviceType kCPU{"cpu"}, kNPU{"npu"};

class LAZULI_API Device {
 public:
  // "cpu", "cpu:1", "interpreter:0"; throws Error(kNotFound) that lists what exists.
  explicit Device(std::string_view name);
  // The default device: what set_device_type said, else PJRT_DEVICE, else the first of the enabled
  // platform with the highest priority (LAZULI_ENABLED_DEVICES), which is cpu:0 unless that is set.
  Device();
  Device(DeviceType type, int index = 0);  // NOLINT(google-explicit-constructor)
  std::string name() const;
  DeviceType type() const;
  int index() const { return ordinal_; }
  bool is_cpu() const { return type() == kCPU; }
  bool is_cuda() const { return false; }
  bool has_index() const { return true; }
  std::string str() const { return name(); }
  bool operator==(const Device&) const = default;

 private:
  friend struct DeviceAccess;
  Device(void* client, std::int32_t ordinal) : client_(client), ordinal_(ordinal) {}
  void* client_ = nullptr;
  std::int32_t ordinal_ = 0;
};

// The platform of the default device: "cpu", "npu". Setting it decides where tensors that say no
// device are made from then on, in all threads; those that are there stay where they are.
LAZULI_API std::string device_type();
LAZULI_API void set_device_type(std::string_view type);

// Every device of every platform.
LAZULI_API std::vector<Device> devices();

}  // namespace lazuli
