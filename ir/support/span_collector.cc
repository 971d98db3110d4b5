#include "ir/support/span_collector.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "ir/support/fork.h"

namespace lazuli::ir {
namespace {

// Spans that were taken from the rings while collectors lived, for all of them.
struct Collected {
  ForkMutex mutex;
  int collectors = 0;
  TakenSpans taken;

  static Collected& Get() {
    static auto* const collected = new Collected;
    return *collected;
  }
  void Drain() {
    TakenSpans more = TakeTrace();
    taken.spans.insert(taken.spans.end(), more.spans.begin(), more.spans.end());
    for (SpanTrack& track : more.tracks) {
      const auto known = std::find_if(taken.tracks.begin(), taken.tracks.end(),
                                      [&](const auto& t) { return t.thread == track.thread; });
      if (known == taken.tracks.end()) {
        taken.tracks.push_back(std::move(track));
      } else {
        track.lost += known->lost;
        *known = std::move(track);
      }
    }
    SortSpans(taken.spans);
  }
};

int64_t BeginCollecting() {
  Collected& collected = Collected::Get();
  const std::lock_guard lock(collected.mutex);
  if (collected.collectors++ == 0) {
    TakeTrace();  // what ended after the last collector did
    SetTracing(true);
  }
  return TraceNow();
}

}  // namespace

SpanCollector::SpanCollector() : begin_ns_(BeginCollecting()) {}

SpanCollector::~SpanCollector() {
  Collected& collected = Collected::Get();
  const std::lock_guard lock(collected.mutex);
  if (--collected.collectors > 0) return;
  SetTracing(false);
  collected.taken = {};
}

TakenSpans SpanCollector::Spans() const {
  Collected& collected = Collected::Get();
  const std::lock_guard lock(collected.mutex);
  collected.Drain();
  TakenSpans here{{}, collected.taken.tracks};
  std::copy_if(collected.taken.spans.begin(), collected.taken.spans.end(),
               std::back_inserter(here.spans),
               [this](const SpanRecord& span) { return span.start_ns >= begin_ns_; });
  std::erase_if(here.tracks, [&](const SpanTrack& track) {
    return std::none_of(here.spans.begin(), here.spans.end(),
                        [&](const SpanRecord& span) { return span.thread == track.thread; });
  });
  return here;
}

}  // namespace lazuli::ir
