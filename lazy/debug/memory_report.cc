#include "lazy/debug/memory_report.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/str_format.h"

#include "ir/support/flags.h"

namespace lazuli::lazy {
namespace {

using Role = MemoryPlan::Role;

struct RoleRow {
  Role role;
  const char* title;  // of the sum
  const char* word;   // beside one array
};
constexpr std::array kRoles = {
    RoleRow{Role::kUpdated, "updated in place", "updated"},
    RoleRow{Role::kInput, "inputs", "input"},
    RoleRow{Role::kResult, "results", "result"},
};
constexpr std::size_t kLargest = 8;

std::string SumLine(const char* title, int64_t bytes, const std::string& rest) {
  return absl::StrFormat("  %-16s%12s  %s\n", title, BytesText(bytes), rest);
}

std::string DeviceLine(backend::Device device) {
  const auto stats = device.client->memory_stats(device);
  if (!stats.ok()) return Str(device, ": ", Message(stats.status()), "\n");
  const int64_t limit = flags().memory_limit();
  return Str(device, ": ", BytesText(stats->bytes_in_use), " in use, ",
             BytesText(stats->peak_bytes), " at most, ", BytesText(stats->cached_bytes),
             " cached, ", limit == 0 ? "no limit" : Str("limit ", BytesText(limit)), "\n");
}

std::string LargestArrays(const MemoryPlan& plan) {
  std::vector<const MemoryPlan::Array*> arrays;
  for (const MemoryPlan::Array& array : plan.arrays) arrays.push_back(&array);
  std::stable_sort(arrays.begin(), arrays.end(), [](const auto* a, const auto* b) {
    return a->shape.byte_size() > b->shape.byte_size();
  });
  if (arrays.size() > kLargest) arrays.resize(kLargest);
  std::string text = "  the largest arrays\n";
  for (const MemoryPlan::Array* array : arrays) {
    text += absl::StrFormat("  %12s  %-20s  %-7s  %s\n", BytesText(array->shape.byte_size()),
                            Str(array->shape), kRoles[static_cast<std::size_t>(array->role)].word,
                            array->name);
  }
  return text;
}

}  // namespace

std::string MemoryReport(backend::Device device, const Program* program) {
  std::string text = DeviceLine(device);
  if (program == nullptr) return text;
  const MemoryPlan& plan = program->memory;
  text += Str(program->name, ": planned peak ", BytesText(plan.peak_bytes()), "\n");
  for (const RoleRow& row : kRoles)
    text += SumLine(row.title, plan.bytes(row.role), Str(plan.count(row.role), " arrays"));
  text += SumLine("scratch", plan.temp_bytes,
                  Str(BytesText(plan.live_temp_bytes), " of it hold values at one time"));
  return text + LargestArrays(plan);
}

}  // namespace lazuli::lazy
