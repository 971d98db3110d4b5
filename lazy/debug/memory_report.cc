#include "lazy/debug/memory_report.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"

#include "backend/client/scratch_plan.h"
#include "ir/support/bytes_text.h"
#include "ir/support/flags.h"
#include "lazy/execution/sync.h"

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

// What an input would need to give its memory to a result.
constexpr std::string_view kNothingWritten =
    "no result is written over it: x.add_(y) would be, x = x + y is a new tensor";

std::string DonationOf(const CachedProgram& program, std::size_t leaf) {
  const MemoryPlan::Array& array = program.memory.arrays[leaf];
  if (array.role == Role::kUpdated)
    return std::string(DonationText(program.donations[leaf].load(std::memory_order_relaxed)));
  const bool fits = std::any_of(program.memory.arrays.begin(), program.memory.arrays.end(),
                                [&](const MemoryPlan::Array& other) {
                                  return other.role == Role::kResult && other.shape == array.shape;
                                });
  return fits ? std::string(kNothingWritten) : "";
}

backend::ScratchPlan ScratchOf(const CachedProgram& program) {
  const auto* const plan =
      dynamic_cast<const backend::HasScratchPlan*>(program.launcher.executable());
  return plan == nullptr ? backend::ScratchPlan() : plan->scratch_plan();
}

std::string PeakText(const CachedProgram& program) {
  const backend::ScratchPlan scratch = ScratchOf(program);
  const std::size_t peak = TimelineOf(program).peak();
  if (scratch.arrays.empty()) return "";
  std::vector<const backend::ScratchArray*> there;
  for (const backend::ScratchArray& array : scratch.arrays) {
    if (array.first <= static_cast<int64_t>(peak) && static_cast<int64_t>(peak) <= array.last)
      there.push_back(&array);
  }
  std::stable_sort(there.begin(), there.end(),
                   [](const auto* a, const auto* b) { return a->bytes > b->bytes; });
  if (there.size() > kLargest) there.resize(kLargest);
  std::string text = Str("  scratch of step ", peak + 1, " of ", scratch.steps.size(), " (",
                         scratch.steps[peak], "), the most\n");
  for (const backend::ScratchArray* array : there)
    text += absl::StrFormat("  %12s  %s  %s  %s\n", BytesText(array->bytes), array->name, array->op,
                            array->source);
  return text;
}

std::string NotTakenText(const CachedProgram& program) {
  std::string text;
  std::size_t lines = 0;
  for (const PlannedArray& array : PlannedArrays(program)) {
    if (lines == kLargest) break;
    if (array.donation.empty() || array.donation == DonationText(Donation::kTaken) ||
        array.donation == DonationText(Donation::kNoRun))
      continue;
    text += absl::StrFormat("  %12s  %-20s  %s: %s\n", BytesText(array.bytes), array.shape,
                            array.name, array.donation);
    ++lines;
  }
  return text.empty() ? text : Str("  not taken over\n", text);
}

}  // namespace

std::vector<CachedProgramPtr> ProgramsByMemory(backend::Device device) {
  std::vector<CachedProgramPtr> programs = GetProgramCache().Programs();
  std::erase_if(programs, [&](const CachedProgramPtr& p) {
    return p->launcher.device().client != device.client;
  });
  std::stable_sort(programs.begin(), programs.end(),
                   [](const CachedProgramPtr& a, const CachedProgramPtr& b) {
                     return a->memory.peak_bytes() > b->memory.peak_bytes();
                   });
  return programs;
}

std::vector<PlannedArray> PlannedArrays(const CachedProgram& program) {
  const backend::ScratchPlan scratch = ScratchOf(program);
  const auto last = static_cast<int64_t>(std::max<std::size_t>(1, scratch.steps.size())) - 1;
  std::vector<PlannedArray> arrays;
  for (std::size_t i = 0; i < program.memory.arrays.size(); ++i) {
    const MemoryPlan::Array& array = program.memory.arrays[i];
    arrays.push_back({.role = kRoles[static_cast<std::size_t>(array.role)].word,
                      .name = array.name,
                      .shape = Str(array.shape),
                      .bytes = array.shape.byte_size(),
                      .first = 0,
                      .last = last,
                      .op = {},
                      .donation = array.role == Role::kResult ? "" : DonationOf(program, i)});
  }
  for (const backend::ScratchArray& array : scratch.arrays)
    arrays.push_back(
        {.role = "scratch",
         .name = array.source.empty() ? array.name : Str(array.name, " (", array.source, ")"),
         .shape = {},
         .bytes = array.bytes,
         .first = array.first,
         .last = array.last,
         .op = array.op,
         .donation = {}});
  std::stable_sort(arrays.begin(), arrays.end(),
                   [](const PlannedArray& a, const PlannedArray& b) { return a.bytes > b.bytes; });
  return arrays;
}

std::size_t MemoryTimeline::peak() const {
  return static_cast<std::size_t>(std::max_element(bytes.begin(), bytes.end()) - bytes.begin());
}

MemoryTimeline TimelineOf(const CachedProgram& program) {
  const backend::ScratchPlan scratch = ScratchOf(program);
  const int64_t always = program.memory.argument_bytes() + program.memory.output_bytes;
  if (scratch.steps.empty()) return {{""}, {program.memory.peak_bytes()}};
  MemoryTimeline timeline{scratch.steps, std::vector<int64_t>(scratch.steps.size(), always)};
  for (const backend::ScratchArray& array : scratch.arrays) {
    for (int64_t step = array.first; step <= array.last; ++step)
      timeline.bytes[static_cast<std::size_t>(step)] += array.bytes;
  }
  return timeline;
}

std::string ProgramMemoryText(const CachedProgram& program) {
  const MemoryPlan& plan = program.memory;
  std::string text = Str(program.name(), ": planned peak ", BytesText(plan.peak_bytes()), "\n");
  for (const RoleRow& row : kRoles)
    text += SumLine(row.title, plan.bytes(row.role), Str(plan.count(row.role), " arrays"));
  text += SumLine("scratch", plan.temp_bytes,
                  Str(BytesText(plan.live_temp_bytes), " of it hold values at one time"));
  return text + LargestArrays(plan) + PeakText(program) + NotTakenText(program);
}

std::string MemoryReport(backend::Device device) {
  std::string text = DeviceLine(device);
  const std::vector<CachedProgramPtr> programs = ProgramsByMemory(device);
  if (programs.empty()) return text;
  text += "programs by planned peak\n";
  for (std::size_t i = 0; i < programs.size() && i < kLargest; ++i) {
    const CachedProgram& program = *programs[i];
    text += absl::StrFormat("%12s  %8d runs  %s%s\n", BytesText(program.memory.peak_bytes()),
                            program.runs.load(std::memory_order_relaxed), program.name(),
                            ir::InParentheses(program.site));
  }
  if (programs.size() > kLargest) text += Str("  and ", programs.size() - kLargest, " more\n");
  return text + ProgramMemoryText(*programs.front());
}

std::string LiveTensorsText(const std::vector<LiveTensors>& tensors) {
  std::string text;
  for (const LiveTensors& group : tensors)
    text += absl::StrFormat("%12s  %6d of %-20s  %s\n", BytesText(group.bytes), group.count,
                            Str(group.shape), GetSite(group.site).ToString());
  return text;
}

}  // namespace lazuli::lazy
