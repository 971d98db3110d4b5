#include "lazuli/memory.h"

#include "cpp_api/src/facade.h"
#include "ir/support/flags.h"
#include "lazy/debug/memory_report.h"
#include "lazy/execution/sync.h"

namespace lazuli {

MemoryStats memory_stats(const Device& device) {
  return Call(SourceLocation(), [&] {
    const backend::Device unwrapped = DeviceAccess::Unwrap(device);
    const backend::MemoryStats stats =
        lazy::ValueOrThrow(unwrapped.client->memory_stats(unwrapped));
    return MemoryStats{stats.bytes_in_use, stats.peak_bytes, stats.cached_bytes,
                       ir::flags().memory_limit()};
  });
}

void set_memory_limit(std::int64_t bytes) {
  Call(SourceLocation(),
       [&] { lazy::ThrowIfError(ir::SetFlag("LAZULI_MEMORY_LIMIT", ir::Str(bytes))); });
}

std::string memory_report(const Device& device) {
  return lazy::MemoryReport(DeviceAccess::Unwrap(device), lazy::LastProgram().get());
}

namespace debug {

MemoryPlan last_memory_plan() {
  using Role = lazy::MemoryPlan::Role;
  const lazy::ProgramPtr program = lazy::LastProgram();
  if (program == nullptr)
    throw Error(ErrorCode::kFailedPrecondition, "debug: this thread has run no program yet");
  const lazy::MemoryPlan& plan = program->memory;
  return {.peak = plan.peak_bytes(),
          .updated = plan.bytes(Role::kUpdated),
          .inputs = plan.bytes(Role::kInput),
          .outputs = plan.output_bytes,
          .temp = plan.temp_bytes,
          .live_temp = plan.live_temp_bytes};
}

}  // namespace debug
}  // namespace lazuli
