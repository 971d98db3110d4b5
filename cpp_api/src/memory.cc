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
  return lazy::MemoryReport(DeviceAccess::Unwrap(device));
}

namespace debug {
namespace {

MemoryPlan PlanOf(const lazy::CachedProgram& program) {
  using Role = lazy::MemoryPlan::Role;
  const lazy::MemoryPlan& plan = program.memory;
  return {.peak = plan.peak_bytes(),
          .updated = plan.bytes(Role::kUpdated),
          .inputs = plan.bytes(Role::kInput),
          .outputs = plan.output_bytes,
          .temp = plan.temp_bytes,
          .live_temp = plan.live_temp_bytes};
}

lazy::CachedProgramPtr ProgramNamed(std::string_view name, const Device& device) {
  const std::vector<lazy::CachedProgramPtr> programs =
      lazy::ProgramsByMemory(DeviceAccess::Unwrap(device));
  for (const lazy::CachedProgramPtr& program : programs) {
    if (name.empty() || program->name() == name) return program;
  }
  if (name.empty())
    throw Error(ErrorCode::kFailedPrecondition,
                ir::Str("debug: no program has run on ", device.name(), " yet"));
  throw Error(ErrorCode::kNotFound,
              ir::Str("debug: ", device.name(), " has no program '", name, "'"));
}

}  // namespace

MemoryPlan last_memory_plan() {
  const lazy::CachedProgramPtr program = lazy::LastProgram();
  if (program == nullptr)
    throw Error(ErrorCode::kFailedPrecondition, "debug: this thread has run no program yet");
  return PlanOf(*program);
}

std::vector<ProgramMemory> memory_plans(const Device& device) {
  std::vector<ProgramMemory> plans;
  for (const lazy::CachedProgramPtr& program : lazy::ProgramsByMemory(DeviceAccess::Unwrap(device)))
    plans.push_back({program->name(), ir::GetSite(program->site).ToString(),
                     program->runs.load(std::memory_order_relaxed), PlanOf(*program)});
  return plans;
}

std::vector<PlannedArray> memory_arrays(std::string_view program, const Device& device) {
  std::vector<PlannedArray> arrays;
  for (lazy::PlannedArray& a : lazy::PlannedArrays(*ProgramNamed(program, device)))
    arrays.push_back({std::move(a.role), std::move(a.name), std::move(a.shape), a.bytes, a.first,
                      a.last, std::move(a.op), std::move(a.donation)});
  return arrays;
}

std::vector<std::int64_t> memory_timeline(std::string_view program, const Device& device) {
  return lazy::TimelineOf(*ProgramNamed(program, device)).bytes;
}

std::int64_t memory_mark() { return static_cast<std::int64_t>(lazy::MarkTensors()); }

std::vector<LiveTensors> live_tensors(std::int64_t since) {
  std::vector<LiveTensors> tensors;
  for (const lazy::LiveTensors& group : lazy::TensorsSince(static_cast<std::uint64_t>(since)))
    tensors.push_back({ir::GetSite(group.site).ToString(), ir::Str(group.shape),
                       group.device.ToString(), group.count, group.bytes});
  return tensors;
}

std::string live_tensors_text(std::int64_t since) {
  return lazy::LiveTensorsText(lazy::TensorsSince(static_cast<std::uint64_t>(since)));
}

}  // namespace debug
}  // namespace lazuli
