// Process-wide counters and timers, one row each. Adding to one is a relaxed atomic add: no lock, no
// string.
//
//   LAZULI_COUNTER(kCachedCompile, "CachedCompile", "Graphs that reused a cached executable.")
//   Add(Counter::kCachedCompile);
//   ScopedTimer timer(Timer::kCompileTime);
//
// A row is: C++ name, name in text, documentation. The name in text is torch_xla's where users know
// one, else area.event. Rows lie in the metrics.def of the folder that owns them; the build joins
// those (cmake/Tables.cmake).
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/namespaces.h"

namespace lazuli::ir {

enum class Counter : uint8_t {
#define LAZULI_COUNTER(name, text, doc) name,
#define LAZULI_TIMER(name, text, doc)
#include "tables/metrics.def"
#undef LAZULI_COUNTER
#undef LAZULI_TIMER
  kCount,
};

enum class Timer : uint8_t {
#define LAZULI_COUNTER(name, text, doc)
#define LAZULI_TIMER(name, text, doc) name,
#include "tables/metrics.def"
#undef LAZULI_COUNTER
#undef LAZULI_TIMER
  kCount,
};

struct MetricRow {
  std::string_view name;
  std::string_view doc;
};
std::span<const MetricRow> CounterRows();  // indexed by Counter
std::span<const MetricRow> TimerRows();    // indexed by Timer

namespace internal {
inline std::array<std::atomic<int64_t>, static_cast<std::size_t>(Counter::kCount)> counters{};
}

inline void Add(Counter counter, int64_t amount = 1) {
  internal::counters[static_cast<std::size_t>(counter)].fetch_add(amount,
                                                                  std::memory_order_relaxed);
}
int64_t Get(Counter counter);  // shards included

// Counters of one owner, who adds to them from one thread at a time (under a lock of its own): a
// load and a store, where an atomic addition costs several times as much on a hot path.
class CounterShard {
 public:
  CounterShard();
  ~CounterShard();  // what it counted stays counted
  CounterShard(const CounterShard&) = delete;
  CounterShard& operator=(const CounterShard&) = delete;
  void Add(Counter counter, int64_t amount = 1) {
    std::atomic<int64_t>& value = values_[static_cast<std::size_t>(counter)];
    value.store(value.load(std::memory_order_relaxed) + amount, std::memory_order_relaxed);
  }

 private:
  friend int64_t Get(Counter counter);
  friend void ResetMetrics();
  std::array<std::atomic<int64_t>, static_cast<std::size_t>(Counter::kCount)> values_{};
};
// The counter of this text name, or -1 if there is none.
int64_t CounterValue(std::string_view name);

struct TimerStats {
  int64_t samples = 0;
  int64_t total_ns = 0;
  std::vector<int64_t> recent_ns;  // the newest samples (a ring of 1024), unordered
};
void AddSample(Timer timer, int64_t ns);
TimerStats GetStats(Timer timer);

class ScopedTimer {
 public:
  explicit ScopedTimer(Timer timer) : timer_(timer), start_(std::chrono::steady_clock::now()) {}
  ~ScopedTimer() {
    AddSample(timer_, std::chrono::duration_cast<std::chrono::nanoseconds>(
                          std::chrono::steady_clock::now() - start_)
                          .count());
  }
  ScopedTimer(const ScopedTimer&) = delete;
  ScopedTimer& operator=(const ScopedTimer&) = delete;

 private:
  Timer timer_;
  std::chrono::steady_clock::time_point start_;
};

// Named counters for what cannot be a row: pass and rule names, `xla::<op>`. Takes a lock; not for
// hot paths.
void AddNamed(std::string_view name, int64_t amount = 1);
std::vector<std::pair<std::string, int64_t>> NamedCounters();  // sorted by name

void ResetMetrics();

// The report, in the format of torch_xla's: timers, then counters, each sorted by name. Rows without
// samples are left out.
std::string MetricsReport();

}  // namespace lazuli::ir
