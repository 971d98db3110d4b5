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

// The line ends the origin, in parentheses; names of ops have none behind a space.
Origin Origin::Of(std::string_view origin) {
  const std::size_t open = origin.find(" (");
  if (open == std::string_view::npos || !origin.ends_with(')')) return {origin, {}};
  const std::string_view line = origin.substr(open + 2, origin.size() - open - 3);
  if (line.find(':') == std::string_view::npos) return {origin, {}};
  return {origin.substr(0, open), line};
}

int64_t LongestBusy(const OpProfile& op) {
  return *std::max_element(op.busy.begin(), op.busy.end());
}

OpProfile& NpuProfile::Launch::OpOf(uint32_t pc) {
  const bool known = pc < program_.debug.size();
  return ops_[known ? program_.debug[pc].origin : 0];
}

void NpuProfile::Launch::OnSlice(const Slice& slice) {
  const auto track = static_cast<std::size_t>(slice.track);
  // What is behind a busy port is not free to wait for anything else.
  const auto last = last_.find({slice.core, slice.track});
  const int64_t free = last == last_.end() ? slice.ready : spans_[last->second.first].end;
  const int64_t waited = slice.start - std::clamp(free, slice.ready, slice.start);
  OpProfile& op = OpOf(slice.pc);
  op.busy[track] += slice.end - slice.start;
  units_.busy[track] += slice.end - slice.start;
  units_.stalled[track][static_cast<std::size_t>(slice.stall)] += waited;
  if (slice.track != kSequencerTrack) op.stalled[static_cast<std::size_t>(slice.stall)] += waited;
  last_[{slice.core, slice.track}] = {spans_.size(), slice.pc};
  spans_.push_back({slice.start, slice.end, UnitOf(slice.track)});
}

void NpuProfile::Launch::OnDelay(int /*device*/, int core, int track, int64_t end,
                                 int64_t /*done*/) {
  const auto last = last_.find({core, track});
  if (last == last_.end()) return;
  const auto [span, pc] = last->second;
  const int64_t longer = end - spans_[span].end;
  spans_[span].end = end;
  OpOf(pc).busy[static_cast<std::size_t>(track)] += longer;
  units_.busy[static_cast<std::size_t>(track)] += longer;
}

void NpuProfile::Launch::OnWork(int, int, uint32_t pc, const Counters& work) {
  OpOf(pc).work += work;
}

// Walks over the moments at which units begin or end.
void NpuProfile::Launch::CountTogether() {
  struct Change {
    int64_t time;
    int by;
    UnitKind kind;
  };
  std::vector<Change> changes;
  changes.reserve(2 * spans_.size());
  for (const Span& span : spans_) {
    if (span.start >= span.end) continue;
    changes.push_back({span.start, 1, span.kind});
    changes.push_back({span.end, -1, span.kind});
  }
  std::sort(changes.begin(), changes.end(),
            [](const Change& a, const Change& b) { return a.time < b.time; });
  std::array<int, kUnitKinds> active{};
  std::size_t busy = 0;  // kinds, as bits
  int64_t since = 0;
  for (const Change& change : changes) {
    units_.together[busy] += change.time - since;
    since = change.time;
    const auto kind = static_cast<std::size_t>(change.kind);
    active[kind] += change.by;
    busy = active[kind] > 0 ? busy | std::size_t{1} << kind : busy & ~(std::size_t{1} << kind);
  }
}

NpuProfile::Launch::~Launch() {
  CountTogether();
  profile_.Add(program_, ops_, units_);
}

UnitsProfile& UnitsProfile::operator+=(const UnitsProfile& other) {
  for (std::size_t i = 0; i < together.size(); ++i) together[i] += other.together[i];
  for (std::size_t t = 0; t < busy.size(); ++t) {
    busy[t] += other.busy[t];
    for (std::size_t s = 0; s < kStalls; ++s) stalled[t][s] += other.stalled[t][s];
  }
  return *this;
}

void NpuProfile::Add(const Program& program, const std::vector<OpProfile>& ops,
                     const UnitsProfile& units) {
  const std::lock_guard lock(mutex_);
  units_ += units;
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

UnitsProfile NpuProfile::Units() const {
  const std::lock_guard lock(mutex_);
  return units_;
}

std::vector<OpProfile> NpuProfile::Ops() const {
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
