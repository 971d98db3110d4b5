// Devices by name. Backends are registered explicitly (no static initialisers), and a client is
// made when first asked for.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/client/client.h"

namespace lazuli::backend {

using ClientFactory = std::function<absl::StatusOr<std::unique_ptr<ComputationClient>>()>;

// Registering a platform twice keeps the first. Of the platforms that LAZULI_ENABLED_DEVICES names,
// the one of the highest priority has the default device: npu 500, cpu 50, others 0.
void RegisterPlatform(std::string_view platform, ClientFactory factory, int priority = 0);
std::vector<std::string> RegisteredPlatforms();

// "cpu", "cpu:1", "interpreter:0"; upper case is accepted. The error lists what exists.
absl::StatusOr<Device> FindDevice(std::string_view name);
// The device that the flag PJRT_DEVICE names; if it names none, the first of the enabled platform
// of the highest priority.
absl::StatusOr<Device> DefaultDevice();
absl::StatusOr<ComputationClient*> FindClient(std::string_view platform);

}  // namespace lazuli::backend
