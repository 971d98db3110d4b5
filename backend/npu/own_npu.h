// A client of one's own: any machine, as often as one likes, for tools and tests.
//
//   LAZULI_ASSIGN_OR_RETURN(const OwnNpu npu, MakeNpu(config));
//   ... npu.client->Compile(std::move(module), options) ...
//   npu.devices->cards[0]->totals()
#pragma once

#include <memory>

#include "absl/status/statusor.h"

#include "backend/npu/npu_executable.h"
#include "backend/npu/sim/config.h"

namespace lazuli::npu {

// No registry knows it, and neither the summary nor the views at the process's end.
struct OwnNpu {
  std::unique_ptr<backend::ComputationClient> client;
  std::shared_ptr<NpuDevices> devices;  // its cards, which count what it does
};
absl::StatusOr<OwnNpu> MakeNpu(Config config);

}  // namespace lazuli::npu
