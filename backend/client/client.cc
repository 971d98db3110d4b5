#include "backend/client/client.h"

#include "ir/support/flags.h"
#include "ir/support/parallel_for.h"
#include "ir/support/status.h"

namespace lazuli::backend {

std::string Device::ToString() const {
  return client == nullptr ? "no device" : Str(client->platform(), ":", ordinal);
}

absl::StatusOr<CompileOptions> CompileOptions::FromFlags() {
  CompileOptions options{.num_threads = flags().xla_multi_thread_eigen() ? NumThreads() : 1,
                         .flush_subnormals = flags().ftz() || flags().xla_cpu_ftz(),
                         // A limit is there because memory is short.
                         .keeps_copies = flags().memory_limit() == 0,
                         .disabled_passes = ir::DisabledPasses(),
                         .disabled_rules = flags().disable_rules(),
                         .program_passes = {},
                         .denied_ops = flags().deny_ops(),
                         .allowed_ops = flags().allow_ops(),
                         .op_filter = flags().op_filter(),
                         .soft_placement = flags().soft_placement()};
  const std::string& fallback = flags().fallback();
  if (fallback == "error")
    options.fallback = Fallback::kError;
  else if (fallback == "allow")
    options.fallback = Fallback::kAllow;
  else if (fallback != "warn")
    return InvalidArgument("LAZULI_FALLBACK is error, warn or allow, not ", fallback);
  return options;
}

absl::Status ComputationClient::CheckPlacement(std::unique_ptr<hlo::Module>,
                                               const CompileOptions&) const {
  return absl::OkStatus();
}

absl::StatusOr<Device> ComputationClient::DeviceOf(const CompileOptions& options) const {
  for (const Device& device : devices()) {
    if (device.ordinal == options.device) return device;
  }
  return NotFound(platform(), " has no device ", options.device);
}

hlo::HostTransfers& ComputationClient::transfers(Device device) {
  const std::lock_guard lock(transfers_mutex_);
  return transfers_[device.ordinal];
}

}  // namespace lazuli::backend
