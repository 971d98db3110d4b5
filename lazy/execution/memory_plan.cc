#include "lazy/execution/memory_plan.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "ir/support/bytes_text.h"
#include "ir/support/flags.h"
#include "ir/support/status.h"
#include "lazy/tensor/leaves.h"

namespace lazuli::lazy {
namespace {

const DataNode& Leaf(const Node* node) { return static_cast<const DataNode&>(*node); }

std::string NameOf(std::string_view label, SiteId site) {
  return label.empty() ? GetSite(site).ToString() : std::string(label);
}

// Whether nobody holds the leaf's data, so that a run may take it over, but the graph and, `by_storage`,
// the storage that is written over it until the run is queued.
bool HasOneOwner(const DataHandle& data, bool by_storage) {
  return data.use_count() == (by_storage ? 2 : 1) && data.ready() && data.buffer().use_count() == 1;
}

}  // namespace

std::string_view DonationText(Donation donation) {
  switch (donation) {
    case Donation::kNoRun:
      return "no run has asked for it yet";
    case Donation::kTaken:
      return "taken over";
    case Donation::kHeld:
      return "a tensor or another graph holds its elements, too";
    case Donation::kRead:
      return "a reader or an export holds its elements";
    case Donation::kFailed:
      return "it has no elements: an earlier run failed";
  }
  return "";
}

int64_t MemoryPlan::bytes(Role role) const {
  int64_t sum = 0;
  for (const Array& array : arrays) sum += array.role == role ? array.shape.byte_size() : 0;
  return sum;
}

int64_t MemoryPlan::count(Role role) const {
  return std::count_if(arrays.begin(), arrays.end(),
                       [role](const Array& array) { return array.role == role; });
}

MemoryPlan PlanMemory(const Trace& trace, absl::Span<const int32_t> updated_by,
                      absl::Span<const hlo::Alias> aliases, const backend::ExecutableStats& stats) {
  MemoryPlan plan;
  for (std::size_t i = 0; i < trace.data.size(); ++i) {
    const DataNode& leaf = Leaf(trace.data[i]);
    plan.arrays.push_back(
        {updated_by[i] >= 0 ? MemoryPlan::Role::kUpdated : MemoryPlan::Role::kInput, leaf.shape(),
         NameOf(leaf.label(), leaf.site())});
  }
  std::vector<uint8_t> updates(trace.roots.size());
  for (const hlo::Alias& alias : aliases)
    updates[static_cast<std::size_t>(alias.output_index.at(0))] = 1;
  for (std::size_t i = 0; i < trace.roots.size(); ++i) {
    if (updates[i] != 0) continue;
    const Value& root = trace.roots[i];
    plan.arrays.push_back({MemoryPlan::Role::kResult, root.shape(), NameOf("", root.node->site())});
  }
  plan.output_bytes = stats.output_bytes;
  plan.temp_bytes = stats.temp_bytes;
  plan.live_temp_bytes = stats.live_temp_bytes;
  return plan;
}

int64_t BytesToObtain(const MemoryPlan& plan, const Trace& trace,
                      absl::Span<const int32_t> updated_by,
                      absl::Span<const DataHandle* const> replaced) {
  int64_t bytes = plan.output_bytes + plan.temp_bytes;
  for (std::size_t i = 0; i < trace.data.size(); ++i) {
    if (updated_by[i] < 0) continue;
    const DataHandle& leaf = *Leaf(trace.data[i]).data();
    const bool by_storage = replaced[static_cast<std::size_t>(updated_by[i])] == &leaf;
    if (!HasOneOwner(leaf, by_storage)) bytes += plan.arrays[i].shape.byte_size();
  }
  return bytes;
}

absl::Status CheckMemoryLimit(const MemoryPlan& plan, int64_t bytes, int64_t in_flight,
                              backend::Device device) {
  const int64_t limit = flags().memory_limit();
  LAZULI_ASSIGN_OR_RETURN(const backend::MemoryStats stats, device.client->memory_stats(device));
  const int64_t in_use = stats.bytes_in_use + in_flight;
  if (in_use + bytes <= limit) return absl::OkStatus();
  return ResourceExhausted("needs ", BytesText(bytes), " (", BytesText(plan.temp_bytes),
                           " of scratch, ", BytesText(bytes - plan.temp_bytes),
                           " of results), but ", BytesText(in_use), " of ", BytesText(limit),
                           " (LAZULI_MEMORY_LIMIT) are in use on ", device, "; nothing was run");
}

}  // namespace lazuli::lazy
