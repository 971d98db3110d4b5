#include "backend/client/client.h"

#include "ir/support/status.h"

namespace lazuli::backend {

std::string Device::ToString() const {
  return client == nullptr ? "no device" : Str(client->platform(), ":", ordinal);
}

absl::StatusOr<std::string> Executable::Serialize() const {
  return Unimplemented("executables of this platform cannot be serialised");
}

HostTransfers& ComputationClient::transfers(Device device) {
  const std::lock_guard lock(transfers_mutex_);
  return transfers_[device.ordinal];
}

}  // namespace lazuli::backend
