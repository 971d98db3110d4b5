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
                         .jitter = flags().jitter(),
                         .jitter_seed = flags().jitter_seed(),
                         .override_kernel_dir = flags().override_kernel_dir(),
                         .generic_from = flags().generic_kernels(),
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

absl::StatusOr<std::string> Executable::Serialize() const {
  return Unimplemented("programs of this device cannot be saved");
}

absl::StatusOr<ExecutablePtr> ComputationClient::Deserialize(std::string_view) {
  return Unimplemented("programs of ", platform(), " cannot be saved");
}

absl::StatusOr<Device> ComputationClient::FirstDevice(const CompileOptions& options) const {
  const absl::Span<const Device> all = devices();
  for (const int64_t ordinal : options.device_assignment) {
    if (ordinal < 0 || ordinal >= static_cast<int64_t>(all.size()))
      return NotFound(platform(), " has no device ", ordinal);
  }
  const Dims& assignment = options.device_assignment;
  return all[assignment.empty() ? 0 : static_cast<std::size_t>(assignment[0])];
}

Device DeviceOf(const ExecuteArgs& args, Device first) {
  if (args.device.client != nullptr) return args.device;
  return args.buffers.empty() ? first : args.buffers[0]->device();
}

hlo::Peers& ComputationClient::peers() {
  const std::lock_guard lock(transfers_mutex_);
  if (!peers_) peers_.emplace(std::string(platform()), static_cast<int64_t>(devices().size()));
  return *peers_;
}

hlo::HostTransfers& ComputationClient::transfers(Device device) {
  const std::lock_guard lock(transfers_mutex_);
  return transfers_[device.ordinal];
}

}  // namespace lazuli::backend
