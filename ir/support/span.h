// Trace spans: scoped intervals with static names, kept per thread in a ring when tracing is on;
// one relaxed load when off.
//
//   TraceSpan span("compile");
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/namespaces.h"

namespace lazuli::ir {

struct SpanRecord {
  std::string name;
  uint32_t thread;
  int64_t start_ns;  // since the first span of the process
  int64_t duration_ns;
};

void SetTracing(bool on);
std::vector<SpanRecord> TakeSpans();  // ordered by start; empties the rings
std::string ChromeTrace(
    const std::vector<SpanRecord>& spans);  // JSON for chrome://tracing and Perfetto

namespace internal {
inline std::atomic<bool> tracing{false};
void RecordSpan(std::string_view name, std::chrono::steady_clock::time_point start);
}  // namespace internal

class TraceSpan {
 public:
  // `name` must outlive the span.
  explicit TraceSpan(std::string_view name)
      : name_(name), on_(internal::tracing.load(std::memory_order_relaxed)) {
    if (on_) start_ = std::chrono::steady_clock::now();
  }
  ~TraceSpan() {
    if (on_) internal::RecordSpan(name_, start_);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

 private:
  std::string_view name_;
  std::chrono::steady_clock::time_point start_;
  bool on_;
};

}  // namespace lazuli::ir
