#include "backend/npu/profile.h"

#include <algorithm>

namespace lazuli::npu {

std::string_view UnitName(UnitKind kind) {
  constexpr std::array<std::string_view, kUnitKinds> kNames = {"array", "vector unit", "transposer",
                                                               "DMA", "sequencer"};
  return kNames[static_cast<std::size_t>(kind)];
}

UnitKind UnitOf(int track) {
  if (track == kSequencerTrack) return UnitKind::kSequencer;
  if (track == kMxTrack || track == kMxWeightsTrack || track == kMxOutTrack)
    return UnitKind::kArray;
  if (track == TrackOf(Queue::kVx)) return UnitKind::kVector;
  if (track == TrackOf(Queue::kXl)) return UnitKind::kTransposer;
  return UnitKind::kDma;
}

int64_t BusyOf(const std::array<int64_t, kTracks>& busy, UnitKind kind) {
  int64_t longest = 0;
  for (int track = 0; track < kTracks; ++track) {
    if (UnitOf(track) == kind) longest = std::max(longest, busy[static_cast<std::size_t>(track)]);
  }
  return longest;
}

int64_t LongestBusy(const OpProfile& op) {
  return *std::max_element(op.busy.begin(), op.busy.end());
}

OpProfile& Profile::Launch::OpOf(uint32_t pc) {
  const bool known = pc < program_.debug.size();
  return ops_[known ? program_.debug[pc].origin : 0];
}

void Profile::Launch::OnSlice(const Slice& slice) {
  OpProfile& op = OpOf(slice.pc);
  op.busy[static_cast<std::size_t>(slice.track)] += slice.end - slice.start;
  if (slice.track != kSequencerTrack)
    op.stalled[static_cast<std::size_t>(slice.stall)] += slice.start - slice.ready;
}

void Profile::Launch::OnWork(int, int, uint32_t pc, const Counters& work) { OpOf(pc).work += work; }

void Profile::Add(const Program& program, const std::vector<OpProfile>& ops) {
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const OpProfile& op = ops[i];
    if (op.work == Counters() && op.busy == OpProfile().busy) continue;
    OpProfile& sum = ops_[program.origins[i]];
    sum.origin = program.origins[i];
    ++sum.launches;
    sum.work += op.work;
    for (std::size_t t = 0; t < sum.busy.size(); ++t) sum.busy[t] += op.busy[t];
    for (std::size_t s = 0; s < kStalls; ++s) sum.stalled[s] += op.stalled[s];
  }
}

std::vector<OpProfile> Profile::Ops() const {
  std::vector<OpProfile> ops;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [origin, op] : ops_) ops.push_back(op);
  }
  std::stable_sort(ops.begin(), ops.end(), [](const OpProfile& a, const OpProfile& b) {
    return LongestBusy(a) > LongestBusy(b);
  });
  return ops;
}

}  // namespace lazuli::npu
