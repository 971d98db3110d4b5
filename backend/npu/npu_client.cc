#include "backend/npu/npu_client.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <utility>

#include "backend/client/registry.h"
#include "backend/npu/npu_buffer.h"
#include "backend/npu/npu_executable.h"
#include "backend/npu/own_npu.h"
#include "backend/npu/plan.h"
#include "backend/npu/sim/assembler.h"
#include "backend/npu/summary.h"
#include "backend/npu/views.h"
#include "ir/hlo/dump/module_dump.h"
#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "ir/support/span.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

class NpuClient final : public ComputationClient {
 public:
  // Of the environment's machine, summarised when the process ends.
  static absl::StatusOr<std::unique_ptr<ComputationClient>> Create();
  static absl::StatusOr<std::unique_ptr<NpuClient>> Create(Config config);

  const std::shared_ptr<NpuDevices>& shared() const { return shared_; }

  std::string_view platform() const override { return "npu"; }
  absl::Span<const Device> devices() const override { return shared_->devices; }
  absl::StatusOr<BufferPtr> FromHost(HostView view, Deleter deleter, Device device) override;
  absl::StatusOr<Literal> ToHost(const Buffer& buffer) override;
  absl::StatusOr<ExecutablePtr> Compile(std::unique_ptr<hlo::Module> module,
                                        const backend::CompileOptions& options) override;
  absl::Status CheckPlacement(std::unique_ptr<hlo::Module> module,
                              const backend::CompileOptions& options) const override {
    return npu::CheckPlacement(std::move(module), config_, options);
  }
  absl::StatusOr<MemoryStats> memory_stats(Device device) const override;
  std::vector<std::string> engines() const override;

 private:
  explicit NpuClient(Config config) : config_(std::move(config)) {}
  absl::StatusOr<std::shared_ptr<Card>> CardOf(Device device) const;

  const Config config_;
  const std::shared_ptr<NpuDevices> shared_ = std::make_shared<NpuDevices>();
};

// The device's programs, as files for its tools and as text.
void WritePrograms(const Plan& plan, hlo::ModuleDump& dump) {
  for (std::size_t s = 0; s < plan.steps.size(); ++s) {
    const auto* const step = std::get_if<DeviceProgram>(&plan.steps[s].program);
    if (step == nullptr) continue;
    dump.File(Str("step_", s, ".npux"), ToFile(step->program->program));
    dump.File(Str("step_", s, ".npu.s"), Disassemble(step->program->program));
  }
}

// The process's, for the summary at its end.
std::shared_ptr<NpuDevices>& Summarised() {
  static auto* const devices = new std::shared_ptr<NpuDevices>;
  return *devices;
}

void PrintSummary() {
  if (Summarised()->views != nullptr) Summarised()->views->Write(*Summarised());
  if (!ir::flags().npu_summary()) return;
  const std::string text = SummaryText(*Summarised());
  std::fputs(text.c_str(), stderr);
}

absl::StatusOr<std::unique_ptr<NpuClient>> NpuClient::Create(Config config) {
  // The strict checks are for programs that somebody wrote; these are the compiler's.
  config.strict = config.strict && ir::flags().npu_strict();
  std::unique_ptr<NpuClient> client(
      new NpuClient(std::move(config)));  // NOLINT: the constructor is private
  NpuDevices& shared = *client->shared_;
  for (int i = 0; i < client->config_.devices; ++i) {
    shared.devices.push_back({client.get(), i});
    LAZULI_ASSIGN_OR_RETURN(std::shared_ptr<Card> card,
                            Card::Create(client->config_, Str("npu:", i)));
    shared.cards.push_back(std::move(card));
  }
  shared.fabric = std::make_unique<Fabric>(shared.cards);
  return client;
}

absl::StatusOr<std::unique_ptr<ComputationClient>> NpuClient::Create() {
  LAZULI_ASSIGN_OR_RETURN(Config config, ConfigFromEnvironment());
  LAZULI_ASSIGN_OR_RETURN(const Injection injection, Injection::Parse(ir::flags().npu_inject()));
  LAZULI_ASSIGN_OR_RETURN(std::unique_ptr<NpuClient> client, Create(std::move(config)));
  client->shared_->cards[0]->Inject(injection);
  client->shared_->views = Views::FromFlags();
  const bool first = Summarised() == nullptr;
  Summarised() = client->shared_;
  if (first) std::atexit(PrintSummary);
  return client;
}

absl::StatusOr<std::shared_ptr<Card>> NpuClient::CardOf(Device device) const {
  if (device.client != this || device.ordinal < 0 ||
      device.ordinal >= static_cast<int>(shared_->cards.size()))
    return InvalidArgument(device, " is not an NPU");
  return shared_->cards[static_cast<std::size_t>(device.ordinal)];
}

absl::StatusOr<BufferPtr> NpuClient::FromHost(HostView view, Deleter deleter, Device device) {
  ScopedTimer timer(Timer::kTransferToDevice);
  const ir::TraceSpan span(ir::SpanKind::kTransfer, "to device", view.shape->byte_size());
  const Shape shape = view.shape->WithDefaultLayout();
  absl::StatusOr<BufferPtr> buffer = [&]() -> absl::StatusOr<BufferPtr> {
    if (!shape.IsArray()) return InvalidArgument("a device holds arrays, not ", shape);
    LAZULI_ASSIGN_OR_RETURN(const std::shared_ptr<Card> card, CardOf(device));
    const auto bytes = static_cast<std::size_t>(shape.byte_size());
    LAZULI_ASSIGN_OR_RETURN(DramBlock block,
                            AllocateOn(card, shape.byte_size(), "an array of the host"));
    card->Write(block.place(), {static_cast<const std::byte*>(view.data), bytes});
    return std::make_shared<NpuBuffer>(shape, device, std::move(block));
  }();
  if (deleter) deleter();
  return buffer;
}

absl::StatusOr<Literal> NpuClient::ToHost(const Buffer& buffer) {
  ScopedTimer timer(Timer::kTransferFromDevice);
  const ir::TraceSpan span(ir::SpanKind::kTransfer, "from device", buffer.shape().byte_size());
  LAZULI_ASSIGN_OR_RETURN(const std::shared_ptr<Card> card, CardOf(buffer.device()));
  const DramBlock& block = static_cast<const NpuBuffer&>(buffer).block();
  if (block.card() == nullptr) return FailedPrecondition("the buffer has been donated to a run");
  Literal result = Literal::Uninitialized(buffer.shape());
  card->Read(block.place(), {result.mutable_raw(), static_cast<std::size_t>(result.byte_size())});
  return result;
}

// Programs have the numbers of devices in their code.
absl::Status CheckAssignment(const hlo::Module& module, absl::Span<const int64_t> assignment) {
  if (!hlo::PeerProgram::Of(module, assignment)) return absl::OkStatus();
  for (std::size_t device = 0; device < assignment.size(); ++device) {
    if (assignment[device] != static_cast<int64_t>(device))
      return Unimplemented("the NPU runs device ", device, " of a program on npu:", device,
                           ", not on npu:", assignment[device]);
  }
  return absl::OkStatus();
}

absl::StatusOr<ExecutablePtr> NpuClient::Compile(std::unique_ptr<hlo::Module> module,
                                                 const backend::CompileOptions& options) {
  const ir::TraceSpan span(ir::SpanKind::kCompile, "npu.compile");
  LAZULI_ASSIGN_OR_RETURN(const Device first, FirstDevice(options));
  if (!options.device_assignment.empty())
    LAZULI_RETURN_IF_ERROR(CheckAssignment(*module, options.device_assignment));
  hlo::ModuleDump dump(*module, platform());
  LAZULI_ASSIGN_OR_RETURN(Plan plan, MakePlan(std::move(module), config_, options));
  dump.After(*plan.module);
  if (dump.is_on()) WritePrograms(plan, dump);
  ExecutablePtr executable = MakeNpuExecutable(std::move(plan), shared_, first);
  if (dump.wants_buffers()) dump.AfterText("-plan.txt", executable->ToString());
  return executable;
}

absl::StatusOr<MemoryStats> NpuClient::memory_stats(Device device) const {
  LAZULI_ASSIGN_OR_RETURN(const std::shared_ptr<Card> card, CardOf(device));
  return MemoryStats{.bytes_in_use = static_cast<int64_t>(card->bytes_in_use()),
                     .peak_bytes = static_cast<int64_t>(card->peak_bytes())};
}

std::vector<std::string> NpuClient::engines() const {
  return {Str("simulated ", config_.name, ": ", config_.cores, " cores, an array of ",
              config_.mxu.rows, " x ", config_.mxu.cols, ", ", config_.dram.mb, " MiB of DRAM")};
}

}  // namespace

absl::StatusOr<OwnNpu> MakeNpu(Config config) {
  LAZULI_ASSIGN_OR_RETURN(std::unique_ptr<NpuClient> client, NpuClient::Create(std::move(config)));
  std::shared_ptr<NpuDevices> devices = client->shared();
  return OwnNpu{std::move(client), std::move(devices)};
}

void RegisterNpu() {
  backend::RegisterPlatform("npu", [] { return NpuClient::Create(); }, /*priority=*/500);
}

}  // namespace lazuli::npu
