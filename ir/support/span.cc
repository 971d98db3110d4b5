#include "ir/support/span.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "ir/support/fork.h"
#include "ir/support/trace_json.h"

namespace lazuli::ir {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::size_t kRingSize = 1 << 16;

int64_t Nanoseconds(Clock::duration d) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(d).count();
}

// Spans of one thread; kept after the thread has ended, until they are taken.
struct Ring {
  ForkMutex mutex;  // contended only while spans are taken
  uint32_t thread;
  std::size_t next = 0;
  std::vector<SpanRecord> records;
};

struct Rings {
  ForkMutex mutex;
  std::vector<std::shared_ptr<Ring>> all;
  uint32_t threads = 0;
  Clock::time_point start;
  bool started = false;
};
Rings& AllRings() {
  static auto* rings = new Rings;
  return *rings;
}

Ring& ThisThreadsRing() {
  thread_local std::shared_ptr<Ring> ring = [] {
    auto made = std::make_shared<Ring>();
    Rings& rings = AllRings();
    std::lock_guard lock(rings.mutex);
    made->thread = rings.threads++;
    rings.all.push_back(made);
    return made;
  }();
  return *ring;
}

}  // namespace

void SetTracing(bool on) {
  Rings& rings = AllRings();
  {
    std::lock_guard lock(rings.mutex);
    if (on && !rings.started) {
      rings.start = Clock::now();
      rings.started = true;
    }
  }
  internal::tracing.store(on, std::memory_order_relaxed);
}

namespace internal {

void RecordSpan(std::string_view name, Clock::time_point start) {
  const Clock::time_point end = Clock::now();
  Ring& ring = ThisThreadsRing();
  std::lock_guard lock(ring.mutex);
  SpanRecord record{std::string(name), ring.thread, Nanoseconds(start.time_since_epoch()),
                    Nanoseconds(end - start)};
  if (ring.records.size() < kRingSize) {
    ring.records.push_back(std::move(record));
  } else {
    ring.records[ring.next++ % kRingSize] = std::move(record);
  }
}

}  // namespace internal

std::vector<SpanRecord> TakeSpans() {
  Rings& rings = AllRings();
  std::lock_guard lock(rings.mutex);
  const int64_t base = Nanoseconds(rings.start.time_since_epoch());
  std::vector<SpanRecord> spans;
  for (const std::shared_ptr<Ring>& ring : rings.all) {
    std::lock_guard ring_lock(ring->mutex);
    for (SpanRecord& record : ring->records) {
      record.start_ns -= base;
      spans.push_back(std::move(record));
    }
    ring->records.clear();
    ring->next = 0;
  }
  // Only this list still holds the ring of a thread that has ended.
  std::erase_if(rings.all, [](const std::shared_ptr<Ring>& ring) { return ring.use_count() == 1; });
  std::stable_sort(spans.begin(), spans.end(), [](const SpanRecord& a, const SpanRecord& b) {
    return a.start_ns < b.start_ns;
  });
  return spans;
}

std::string ChromeTrace(const std::vector<SpanRecord>& spans) {
  TraceJson trace;
  for (const SpanRecord& span : spans)
    trace.Slice(1, static_cast<int>(span.thread), span.name, span.start_ns, span.duration_ns);
  return std::move(trace).Finish();
}

}  // namespace lazuli::ir
