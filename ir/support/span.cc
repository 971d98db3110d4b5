#include "ir/support/span.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/container/flat_hash_set.h"
#include "absl/container/node_hash_set.h"

#include "ir/support/flags.h"
#include "ir/support/fork.h"
#include "ir/support/json.h"
#include "ir/support/str.h"
#include "ir/support/thread_local.h"
#include "ir/support/trace_json.h"

namespace lazuli::ir {
namespace {

using Clock = std::chrono::steady_clock;

// What a ring keeps of a span.
struct RingEntry {
  const SpanLabel* label;
  int64_t start, duration, value;
};

// Spans of one thread; kept after the thread has ended, until they are taken.
struct SpanRing {
  ForkMutex mutex;  // contended only while spans are taken
  SpanTrack track;
  std::size_t size = 0;  // at most
  std::size_t next = 0;
  std::vector<RingEntry> entries;

  void Add(const RingEntry& entry) {
    const std::lock_guard lock(mutex);
    if (entries.size() < size) {
      entries.push_back(entry);
    } else {
      entries[next++ % size] = entry;
      ++track.lost;
    }
  }
};

struct Rings {
  ForkMutex mutex;
  std::vector<std::shared_ptr<SpanRing>> all;
  uint32_t threads = 0;
  int64_t start = 0;
};
Rings& AllRings() {
  static auto* rings = new Rings;
  return *rings;
}

struct RingOfThread {
  std::shared_ptr<SpanRing> ring = std::make_shared<SpanRing>();
  RingOfThread() {
    ring->size = static_cast<std::size_t>(std::max<int64_t>(1, flags().profile_spans()));
    Rings& rings = AllRings();
    std::lock_guard lock(rings.mutex);
    ring->track.thread = rings.threads++;
    rings.all.push_back(ring);
  }
};
SpanRing& ThisThreadsRing() { return *PerThread<RingOfThread>::Get().ring; }

struct LabelHash {
  std::size_t operator()(const SpanLabel& l) const {
    return absl::HashOf(l.kind, l.name, l.detail, l.op, l.scope, l.source);
  }
};
struct SpanLabels {
  ForkMutex mutex;
  absl::node_hash_set<SpanLabel, LabelHash> all;
};

// From the first op of the thread that no sync has taken.
struct RecordingSpan {
  int64_t start = 0, nodes = 0;
};

constexpr std::array kSpanRows = {
#define LAZULI_SPAN(name, text, place, doc) SpanKindRow{text, SpanPlace::place, doc},
#include "ir/support/spans.def"
#undef LAZULI_SPAN
};

void AppendArgument(std::string& out, std::string_view name, std::string_view text) {
  if (text.empty()) return;
  out += Str(out.empty() ? "\"" : ",\"", name, "\":");
  AppendJsonString(out, text);
}

// The name of a slice's value, and nothing where there is none.
std::string_view ValueName(SpanKind kind) {
  switch (kind) {
    case SpanKind::kRecord:
      return "nodes";
    case SpanKind::kTransfer:
      return "bytes";
    case SpanKind::kStep:
      return "step";
    case SpanKind::kQueue:
    case SpanKind::kRun:
      return "run";
    default:
      return "";
  }
}

std::string Arguments(const SpanRecord& span) {
  const SpanLabel& label = *span.label;
  std::string out;
  AppendArgument(out, "kind", RowOf(label.kind).name);
  AppendArgument(out, "detail", label.detail);
  AppendArgument(out, "op", label.op);
  AppendArgument(out, "scope", label.scope);
  AppendArgument(out, "source", label.source);
  if (const std::string_view name = ValueName(label.kind); !name.empty())
    out += Str(",\"", name, "\":", span.value);
  if (label.flops > 0) out += Str(",\"flops\":", static_cast<int64_t>(label.flops));
  if (label.bytes > 0) out += Str(",\"bytes\":", static_cast<int64_t>(label.bytes));
  const auto ns = static_cast<double>(std::max<int64_t>(1, span.duration_ns));
  if (label.flops > 0) out += Str(",\"Gflop/s\":", label.flops / ns);
  if (label.bytes > 0) out += Str(",\"GB/s\":", label.bytes / ns);
  return out;
}

// Where the tracks of a trace lie: the host is a process, each device another one.
class TrackPlaces {
 public:
  struct TrackPlace {
    int process, track;
  };
  TrackPlaces(const TakenSpans& taken, int process, TraceJson& json) {
    json.NameProcess(process, "host");
    int next = process + 1;
    for (const SpanRecord& span : taken.spans) {
      TimeExtent& extent =
          extents_.try_emplace(span.thread, TimeExtent{span.start_ns, 0}).first->second;
      extent.end_ns = std::max(extent.end_ns, span.start_ns + span.duration_ns);
    }
    for (const SpanTrack& track : taken.tracks) {
      if (JoinsLane(track)) continue;
      const TrackPlace place{track.device ? next++ : process, 2 * static_cast<int>(track.thread)};
      places_[track.thread] = place;
      if (track.device) json.NameProcess(place.process, track.name);
      json.NameTrack(place.process, place.track,
                     track.lost > 0
                         ? Str(track.Title(), ", without its first ", track.lost, " spans")
                         : track.Title());
    }
  }
  // What a thread records lies beside what it does: the two overlap.
  TrackPlace Of(const SpanRecord& span, TraceJson& json) {
    TrackPlace place = places_.at(span.thread);
    if (span.label->kind != SpanKind::kRecord) return place;
    ++place.track;
    if (recorded_.insert(place.track).second)
      json.NameTrack(place.process, place.track, Str("recorded by thread ", span.thread));
    return place;
  }

 private:
  struct TimeExtent {
    int64_t start_ns, end_ns;
  };
  struct Lane {
    uint32_t first;  // the thread whose track it is
    int64_t end_ns;  // of the last thread's spans
  };
  // Threads of one name share the lane of an earlier one that has ended.
  bool JoinsLane(const SpanTrack& track) {
    const auto extent = extents_.find(track.thread);
    if (track.device || track.name.empty() || extent == extents_.end()) return false;
    std::vector<Lane>& lanes = lanes_[track.name];
    for (Lane& lane : lanes) {
      if (lane.end_ns > extent->second.start_ns) continue;
      lane.end_ns = extent->second.end_ns;
      places_[track.thread] = places_.at(lane.first);
      return true;
    }
    lanes.push_back({track.thread, extent->second.end_ns});
    return false;
  }

  std::map<uint32_t, TimeExtent> extents_;  // by thread
  std::map<std::string, std::vector<Lane>> lanes_;
  std::map<uint32_t, TrackPlace> places_;
  absl::flat_hash_set<int> recorded_;  // tracks
};

// Arrows from queue to run, and how many runs are in flight, by the numbers of the runs.
class RunArrows {
 public:
  void Add(const SpanRecord& span, TrackPlaces::TrackPlace place) {
    if (span.label->kind == SpanKind::kQueue) queued_[span.value] = {span, place};
    if (span.label->kind == SpanKind::kRun) ran_.push_back({span, place});
  }
  void AppendTo(TraceJson& json) const {
    std::map<int, std::vector<std::pair<int64_t, int>>> changes;  // by device: when, by how much
    for (const auto& [run, to] : ran_) {
      const auto from = queued_.find(run.value);
      if (from == queued_.end()) continue;
      const auto& [queue, place] = from->second;
      const int64_t begin = queue.start_ns + queue.duration_ns;
      json.Flow(run.value, "run", place.process, place.track, queue.start_ns, to.process, to.track,
                run.start_ns);
      changes[to.process].emplace_back(begin, 1);
      changes[to.process].emplace_back(run.start_ns + run.duration_ns, -1);
    }
    for (auto& [process, of_device] : changes) {
      std::sort(of_device.begin(), of_device.end());
      int in_flight = 0;
      for (const auto& [when, by] : of_device)
        json.Counter(process, "runs in flight", when, in_flight += by);
    }
  }

 private:
  struct PlacedSpan {
    SpanRecord span;
    TrackPlaces::TrackPlace place;
  };
  std::map<int64_t, PlacedSpan> queued_;
  std::vector<PlacedSpan> ran_;
};

}  // namespace

std::string SpanTrack::Title() const { return name.empty() ? Str("thread ", thread) : name; }

const SpanKindRow& RowOf(SpanKind kind) { return kSpanRows[static_cast<std::size_t>(kind)]; }

const SpanLabel& KeepLabel(SpanLabel label) {
  static auto* const labels = new SpanLabels;
  const std::lock_guard lock(labels->mutex);
  return *labels->all.insert(std::move(label)).first;
}

void SetTracing(bool on) {
  Rings& rings = AllRings();
  {
    std::lock_guard lock(rings.mutex);
    if (on && rings.start == 0) rings.start = internal::NowNs();
  }
  internal::tracing.store(on, std::memory_order_relaxed);
}

namespace internal {

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch())
      .count();
}

void RecordSpan(const SpanLabel& label, int64_t start, int64_t value) {
  ThisThreadsRing().Add({&label, start, NowNs() - start, value});
}

void RecordSpanOf(const SpanLabel& label, int64_t start, int64_t duration) {
  ThisThreadsRing().Add({&label, start, duration, 0});
}

void RecordInstant(const SpanLabel& label, int64_t value) {
  ThisThreadsRing().Add({&label, NowNs(), 0, value});
}

const SpanLabel& LabelOf(SpanKind kind, std::string_view name) {
  return KeepLabel({.kind = kind, .name = std::string(name)});
}

void NoteRecorded() {
  RecordingSpan& recording = PerThread<RecordingSpan>::Get();
  if (recording.nodes++ == 0) recording.start = NowNs();
}

}  // namespace internal

void EndRecorded() {
  RecordingSpan& recording = PerThread<RecordingSpan>::Get();
  if (recording.nodes == 0) return;
  static const SpanLabel& label = internal::LabelOf(SpanKind::kRecord, "record");
  if (IsTracing()) internal::RecordSpan(label, recording.start, recording.nodes);
  recording = {};
}

void NameTrack(std::string_view name, bool device) {
  SpanRing& ring = ThisThreadsRing();
  const std::lock_guard lock(ring.mutex);
  ring.track.name = name;
  ring.track.device = device;
}

TakenSpans TakeTrace() {
  Rings& rings = AllRings();
  std::lock_guard lock(rings.mutex);
  TakenSpans taken;
  for (const std::shared_ptr<SpanRing>& ring : rings.all) {
    std::lock_guard ring_lock(ring->mutex);
    if (!ring->entries.empty()) taken.tracks.push_back(ring->track);
    for (const RingEntry& e : ring->entries)
      taken.spans.push_back(
          {e.label, ring->track.thread, e.start - rings.start, e.duration, e.value});
    ring->entries.clear();
    ring->next = 0;
    ring->track.lost = 0;
  }
  // Only this list still holds the ring of a thread that has ended; what it added since its spans
  // were taken above is the next one's.
  std::erase_if(rings.all, [](const std::shared_ptr<SpanRing>& ring) {
    if (ring.use_count() > 1) return false;
    std::lock_guard ring_lock(ring->mutex);
    return ring->entries.empty();
  });
  SortSpans(taken.spans);
  return taken;
}

void SortSpans(std::vector<SpanRecord>& spans) {
  std::stable_sort(spans.begin(), spans.end(), [](const SpanRecord& a, const SpanRecord& b) {
    return a.start_ns != b.start_ns ? a.start_ns < b.start_ns : a.duration_ns > b.duration_ns;
  });
}

int64_t TraceNow() {
  Rings& rings = AllRings();
  const std::lock_guard lock(rings.mutex);
  return internal::NowNs() - rings.start;
}

std::vector<SpanRecord> TakeSpans() { return TakeTrace().spans; }

void AppendSpans(const TakenSpans& taken, int process, TraceJson& json) {
  TrackPlaces places(taken, process, json);
  RunArrows arrows;
  for (const SpanRecord& span : taken.spans) {
    const TrackPlaces::TrackPlace place = places.Of(span, json);
    if (span.label->kind == SpanKind::kCounter) {
      json.Counter(place.process, span.label->name, span.start_ns, static_cast<double>(span.value));
      continue;
    }
    json.Slice(place.process, place.track, span.label->name, span.start_ns, span.duration_ns,
               Arguments(span));
    arrows.Add(span, place);
  }
  arrows.AppendTo(json);
}

}  // namespace lazuli::ir
