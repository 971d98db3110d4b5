#include "backend/client/client.h"

#include "ir/support/status.h"

namespace lazuli::backend {

std::string Device::ToString() const {
  return client == nullptr ? "no device" : Str(client->platform(), ":", ordinal);
}

absl::StatusOr<std::string> Executable::Serialize() const {
  return Unimplemented("executables of this platform cannot be serialised");
}

}  // namespace lazuli::backend
