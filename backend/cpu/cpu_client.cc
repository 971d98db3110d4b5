#include "backend/cpu/cpu_client.h"

#include <cstring>
#include <memory>
#include <shared_mutex>
#include <utility>
#include <vector>

#include "backend/client/registry.h"
#include "backend/cpu/codegen/compile_mutex.h"
#include "backend/cpu/codegen/kernel.h"
#include "backend/cpu/codegen/symbolizer.h"
#include "backend/cpu/compiler.h"
#include "backend/cpu/program_kinds.h"
#include "backend/cpu/program_store.h"
#include "backend/cpu/runtime/library.h"
#include "backend/runtime/buffer_report.h"
#include "backend/runtime/executable.h"
#include "backend/runtime/host_buffer.h"
#include "backend/runtime/program_file.h"
#include "ir/hlo/dump/module_dump.h"
#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "ir/support/span.h"
#include "ir/support/status.h"

namespace lazuli::cpu {
namespace {

class CpuClient final : public ComputationClient {
 public:
  explicit CpuClient(int num_devices) : allocator_(std::make_shared<Allocator>()) {
    for (int i = 0; i < num_devices; ++i) devices_.push_back({this, i});
  }

  std::string_view platform() const override { return "cpu"; }
  absl::Span<const Device> devices() const override { return devices_; }
  absl::StatusOr<BufferPtr> FromHost(HostView view, Deleter deleter, Device device) override;
  absl::StatusOr<Literal> ToHost(const Buffer& buffer) override;
  absl::StatusOr<ExecutablePtr> Compile(std::unique_ptr<hlo::Module> module,
                                        const CompileOptions& options) override;
  absl::StatusOr<ExecutablePtr> Deserialize(std::string_view bytes) override;
  absl::StatusOr<MemoryStats> memory_stats(Device) const override { return allocator_->stats(); }
  std::vector<std::string> engines() const override { return {KernelEngine(), LibraryEngine()}; }

 private:
  ExecutablePtr MakeExecutable(ThunkProgram program, Device first) const;

  std::vector<Device> devices_;
  std::shared_ptr<Allocator> allocator_;
};

absl::StatusOr<BufferPtr> CpuClient::FromHost(HostView view, Deleter deleter, Device device) {
  ScopedTimer timer(Timer::kTransferToDevice);
  const ir::TraceSpan span(ir::SpanKind::kTransfer, "to device", view.shape->byte_size());
  const auto address = reinterpret_cast<std::uintptr_t>(view.data);
  const Shape shape = view.shape->WithDefaultLayout();
  if (!shape.IsArray()) return InvalidArgument("a device holds arrays, not ", shape);
  if (deleter && address % static_cast<std::uintptr_t>(ByteWidth(shape.dtype())) == 0) {
    return std::make_shared<HostBuffer>(shape, device, view, std::move(deleter));
  }
  const auto bytes = static_cast<std::size_t>(shape.byte_size());
  LAZULI_ASSIGN_OR_RETURN(Block block, allocator_->Allocate(bytes));
  if (bytes > 0) std::memcpy(block.data, view.data, bytes);
  if (deleter) deleter();
  return std::make_shared<HostBuffer>(shape, device, allocator_, block);
}

absl::StatusOr<Literal> CpuClient::ToHost(const Buffer& buffer) {
  ScopedTimer timer(Timer::kTransferFromDevice);
  const ir::TraceSpan span(ir::SpanKind::kTransfer, "from device", buffer.shape().byte_size());
  if (buffer.host_data() == nullptr)
    return FailedPrecondition("the buffer has been donated to a run");
  Literal result = Literal::Uninitialized(buffer.shape());
  if (result.byte_size() > 0) {
    std::memcpy(result.mutable_raw(), buffer.host_data(),
                static_cast<std::size_t>(result.byte_size()));
  }
  return result;
}

absl::StatusOr<ExecutablePtr> CpuClient::Compile(std::unique_ptr<hlo::Module> module,
                                                 const CompileOptions& options) {
  const ir::TraceSpan span(ir::SpanKind::kCompile, "cpu.compile");
  const std::shared_lock compiling(CompileMutex());
  LAZULI_ASSIGN_OR_RETURN(const Device first, FirstDevice(options));
  hlo::ModuleDump dump(*module, platform());
  const ProgramStore store(*module, options);
  if (std::optional<ThunkProgram> kept = store.Find())
    return MakeExecutable(*std::move(kept), first);
  LAZULI_ASSIGN_OR_RETURN(ThunkProgram program, CompileModule(std::move(module), options));
  store.Keep(program);
  dump.After(*program.module);
  if (dump.wants_buffers()) {
    dump.AfterText("-buffer-assignment.txt", BufferAssignmentText(program));
    dump.AfterText("-memory-usage-report.txt", MemoryUsageText(program));
    dump.AfterText("-thunks.txt", ThunksText(program));
  }
  return MakeExecutable(std::move(program), first);
}

absl::StatusOr<ExecutablePtr> CpuClient::Deserialize(std::string_view bytes) {
  const std::shared_lock compiling(CompileMutex());
  LAZULI_ASSIGN_OR_RETURN(ThunkProgram program, ReadProgram(bytes, CpuProgramKinds()));
  LAZULI_ASSIGN_OR_RETURN(const Device first, FirstDevice(program.options));
  return MakeExecutable(std::move(program), first);
}

ExecutablePtr CpuClient::MakeExecutable(ThunkProgram program, Device first) const {
  return MakeThunkExecutable(
      std::move(program), allocator_, first, CpuProgramKinds(),
      [](const ThunkProgram& running, absl::FunctionRef<absl::Status()> thunks) {
        const ScopedLibraryThreads threads(running.options.num_threads);
        return thunks();
      });
}

absl::StatusOr<std::unique_ptr<ComputationClient>> MakeClient() {
  const bool by_xla = flags().cpu_num_devices() == 1 && flags().xla_host_devices() != 1;
  const int64_t count = by_xla ? flags().xla_host_devices() : flags().cpu_num_devices();
  if (count < 1 || count > 1024)
    return InvalidArgument(by_xla ? "--xla_force_host_platform_device_count" : "CPU_NUM_DEVICES",
                           " must be between 1 and 1024, not ", count);
  return std::make_unique<CpuClient>(static_cast<int>(count));
}

}  // namespace

void RegisterCpu() {
  RegisterPlatform("cpu", MakeClient, /*priority=*/50);
  RegisterCpuPasses();
  InstallSymbolizer();
}

}  // namespace lazuli::cpu
