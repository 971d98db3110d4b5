// The frame around a run of a program whose devices may exchange values.
#pragma once

#include <optional>

#include "absl/functional/function_ref.h"

#include "backend/client/client.h"

namespace lazuli::backend {

// execute(peers), where peers are null unless the program meets others. If it fails, so do those that
// wait for it.
inline absl::StatusOr<Buffers> ExecuteWithPeers(
    const std::optional<hlo::PeerProgram>& program, Device device, const ExecuteArgs& args,
    absl::FunctionRef<absl::StatusOr<Buffers>(hlo::PeerRun*)> execute) {
  if (!program) return execute(nullptr);
  hlo::PeerRun run(device.client->peers(), *program, device.ordinal, args.asked);
  absl::StatusOr<Buffers> outputs = execute(&run);
  if (!outputs.ok()) run.Fail(outputs.status());
  return outputs;
}

}  // namespace lazuli::backend
