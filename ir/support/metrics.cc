#include "ir/support/metrics.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <map>
#include <mutex>

#include "ir/support/flags.h"
#include "ir/support/fork.h"
#include "ir/support/name_list.h"
#include "ir/support/str.h"

namespace lazuli::ir {
namespace {

constexpr MetricRow kCounterRows[] = {
#define LAZULI_COUNTER(name, text, doc) {text, doc},
#define LAZULI_TIMER(name, text, doc)
#include "tables/metrics.def"
#undef LAZULI_COUNTER
#undef LAZULI_TIMER
};

constexpr MetricRow kTimerRows[] = {
#define LAZULI_COUNTER(name, text, doc)
#define LAZULI_TIMER(name, text, doc) {text, doc},
#include "tables/metrics.def"
#undef LAZULI_COUNTER
#undef LAZULI_TIMER
};

std::size_t Retained() {
  static const auto retained =
      static_cast<std::size_t>(std::clamp<int64_t>(flags().metrics_samples(), 1, 1 << 20));
  return retained;
}

struct Sample {
  int64_t when_ns;
  int64_t value_ns;
};

// The samples of one timer: totals over all, and a ring of the newest.
struct TimerData {
  TimerData() { ring.reserve(Retained()); }  // adding a sample asks for no memory
  ForkMutex mutex;
  int64_t samples = 0;
  int64_t total_ns = 0;
  std::vector<Sample> ring;
};

// Leaked: threads may still add samples while the process exits.
std::array<TimerData, std::size(kTimerRows)>& Timers() {
  static auto* timers = new std::array<TimerData, std::size(kTimerRows)>;
  return *timers;
}

// All shards alive. Leaked, as the timers.
struct Shards {
  ForkMutex mutex;
  std::vector<CounterShard*> alive;
};
Shards& AllShards() {
  static auto* shards = new Shards;
  return *shards;
}

struct NamedData {
  ForkMutex mutex;
  std::map<std::string, int64_t, std::less<>> values;
};
NamedData& Named() {
  static auto* named = new NamedData;
  return *named;
}

int64_t NowNs() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

// 369401746001 ns is "06m09s401ms746.001us". Every unit is floored: a unit shows what the smaller
// ones do not, so the text of a longer time never reads shorter.
std::string TimeText(double ns) {
  struct Unit {
    const char* suffix;
    int64_t ns;
    int width;
  };
  constexpr Unit kUnits[] = {{"d", 86400000000000, 2},
                             {"h", 3600000000000, 2},
                             {"m", 60000000000, 2},
                             {"s", 1000000000, 2},
                             {"ms", 1000000, 3}};
  int64_t rest = std::max<int64_t>(0, std::llround(ns));
  std::string out;
  char buffer[32];
  for (const Unit& unit : kUnits) {
    const int64_t count = rest / unit.ns;
    if (count == 0 && out.empty()) continue;
    rest -= count * unit.ns;
    std::snprintf(buffer, sizeof buffer, "%0*lld%s", unit.width, static_cast<long long>(count),
                  unit.suffix);
    out += buffer;
  }
  std::snprintf(buffer, sizeof buffer, "%03d.%03dus", static_cast<int>(rest / 1000),
                static_cast<int>(rest % 1000));
  return out + buffer;
}

// "0.01:0.5:0.99"; empty if it is no such list.
std::vector<double> ParsePercentiles(std::string_view text) {
  std::vector<double> parts;
  for (const std::string_view word : SplitNames(text, ":")) {
    double part = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), part);
    if (error != std::errc() || end != word.data() + word.size() || !(part >= 0 && part <= 1))
      return {};
    parts.push_back(part);
  }
  return parts;
}

// XLA_METRICS_PERCENTILES, or the usual ones, and a sentence, if it is no such list.
std::vector<double> PercentilesOfFlags() {
  std::vector<double> parts = ParsePercentiles(flags().metrics_percentiles());
  if (!parts.empty()) return parts;
  std::fprintf(stderr,
               "lazuli: XLA_METRICS_PERCENTILES='%s' is not a list of numbers from 0 to 1 such as "
               "0.05:0.5:0.95; the usual ones are shown\n",
               flags().metrics_percentiles().c_str());
  return {0.01, 0.05, 0.1, 0.2, 0.5, 0.8, 0.9, 0.95, 0.99};
}

const std::vector<double>& Percentiles() {
  static const auto* const percentiles = new std::vector<double>(PercentilesOfFlags());
  return *percentiles;
}

void AppendTimer(std::string& out, std::string_view name, const TimerData& data) {
  out += Str("Metric: ", name, "\n  TotalSamples: ", data.samples,
             "\n  Accumulator: ", TimeText(static_cast<double>(data.total_ns)), "\n");
  std::vector<Sample> samples = data.ring;
  std::sort(samples.begin(), samples.end(),
            [](Sample a, Sample b) { return a.when_ns < b.when_ns; });
  const auto span_ns = static_cast<double>(samples.back().when_ns - samples.front().when_ns);
  if (span_ns > 0) {
    double retained_ns = 0;
    for (const Sample& sample : samples) retained_ns += static_cast<double>(sample.value_ns);
    char rate[32];
    std::snprintf(rate, sizeof rate, "%g", 1e9 * static_cast<double>(samples.size()) / span_ns);
    out += Str("  ValueRate: ", TimeText(1e9 * retained_ns / span_ns), " / second\n  Rate: ", rate,
               " / second\n");
  }
  std::sort(samples.begin(), samples.end(),
            [](Sample a, Sample b) { return a.value_ns < b.value_ns; });
  out += "  Percentiles: ";
  const char* separator = "";
  for (const double part : Percentiles()) {
    constexpr double kRounding = 1e-9;  // 0.29 of 100 samples is the 29th
    const auto at =
        static_cast<std::size_t>(static_cast<double>(samples.size()) * part + kRounding);
    char percent[32];
    std::snprintf(percent, sizeof percent, "%g", 100 * part);
    out += Str(separator, percent, "%=",
               TimeText(static_cast<double>(samples[std::min(at, samples.size() - 1)].value_ns)));
    separator = "; ";
  }
  out += "\n";
}

}  // namespace

std::span<const MetricRow> CounterRows() { return kCounterRows; }
std::span<const MetricRow> TimerRows() { return kTimerRows; }

int64_t Get(Counter counter) {
  const auto i = static_cast<std::size_t>(counter);
  Shards& shards = AllShards();
  std::lock_guard lock(shards.mutex);
  int64_t sum = internal::counters[i].load(std::memory_order_relaxed);
  for (const CounterShard* shard : shards.alive)
    sum += shard->values_[i].load(std::memory_order_relaxed);
  return sum;
}

CounterShard::CounterShard() {
  Shards& shards = AllShards();
  std::lock_guard lock(shards.mutex);
  shards.alive.push_back(this);
}

CounterShard::~CounterShard() {
  Shards& shards = AllShards();
  std::lock_guard lock(shards.mutex);
  std::erase(shards.alive, this);
  for (std::size_t i = 0; i < values_.size(); ++i)
    internal::counters[i].fetch_add(values_[i].load(std::memory_order_relaxed),
                                    std::memory_order_relaxed);
}

int64_t CounterValue(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kCounterRows); ++i) {
    if (kCounterRows[i].name == name) return Get(static_cast<Counter>(i));
  }
  NamedData& named = Named();
  std::lock_guard lock(named.mutex);
  auto it = named.values.find(name);
  return it == named.values.end() ? -1 : it->second;
}

void AddSample(Timer timer, int64_t ns) {
  TimerData& data = Timers()[static_cast<std::size_t>(timer)];
  const Sample sample{NowNs(), ns};
  std::lock_guard lock(data.mutex);
  if (data.ring.size() < Retained()) {
    data.ring.push_back(sample);
  } else {
    data.ring[static_cast<std::size_t>(data.samples) % Retained()] = sample;
  }
  ++data.samples;
  data.total_ns += ns;
}

TimerStats GetStats(Timer timer) {
  TimerData& data = Timers()[static_cast<std::size_t>(timer)];
  std::lock_guard lock(data.mutex);
  TimerStats stats{data.samples, data.total_ns, {}};
  for (const Sample& sample : data.ring) stats.recent_ns.push_back(sample.value_ns);
  return stats;
}

void AddNamed(std::string_view name, int64_t amount) {
  NamedData& named = Named();
  std::lock_guard lock(named.mutex);
  auto it = named.values.find(name);
  if (it == named.values.end()) it = named.values.emplace(name, 0).first;
  it->second += amount;
}

std::vector<std::pair<std::string, int64_t>> NamedCounters() {
  NamedData& named = Named();
  std::lock_guard lock(named.mutex);
  return {named.values.begin(), named.values.end()};
}

void ResetMetrics() {
  {
    Shards& shards = AllShards();
    std::lock_guard lock(shards.mutex);
    for (auto& counter : internal::counters) counter.store(0, std::memory_order_relaxed);
    for (CounterShard* shard : shards.alive)
      for (auto& value : shard->values_) value.store(0, std::memory_order_relaxed);
  }
  for (TimerData& data : Timers()) {
    std::lock_guard lock(data.mutex);
    data.samples = data.total_ns = 0;
    data.ring.clear();
  }
  NamedData& named = Named();
  std::lock_guard lock(named.mutex);
  named.values.clear();
}

std::string MetricsReport() {
  std::map<std::string_view, std::size_t> timers;
  for (std::size_t i = 0; i < std::size(kTimerRows); ++i) timers[kTimerRows[i].name] = i;
  std::string out;
  for (auto [name, i] : timers) {
    TimerData& data = Timers()[i];
    std::lock_guard lock(data.mutex);
    if (data.samples > 0) AppendTimer(out, name, data);
  }

  std::map<std::string, int64_t> counters;
  for (std::size_t i = 0; i < std::size(kCounterRows); ++i) {
    counters[std::string(kCounterRows[i].name)] = Get(static_cast<Counter>(i));
  }
  for (const auto& [name, value] : NamedCounters()) counters[name] += value;
  for (const auto& [name, value] : counters) {
    if (value != 0) out += Str("Counter: ", name, "\n  Value: ", value, "\n");
  }
  return out;
}

}  // namespace lazuli::ir
