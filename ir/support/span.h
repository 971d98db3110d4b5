// Trace spans: scoped intervals with labels, kept per thread in a ring while tracing is on; one
// relaxed load when off.
//
//   const ir::SpanLabel& label = ir::KeepLabel({.kind = SpanKind::kThunk, .name = "fusion.12"});
//   TraceSpan span(label);                              // a label that is known
//   TraceSpan span(SpanKind::kPass, pass.name());       // one that is looked up while tracing
#pragma once

#include <atomic>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/namespaces.h"

namespace lazuli::ir {

class TraceJson;

// What a span is of. The rows of spans.def say more.
enum class SpanKind : uint8_t {
#define LAZULI_SPAN(name, text, place, doc) name,
#include "ir/support/spans.def"
#undef LAZULI_SPAN
};

// Where the time of a kind is counted.
enum class SpanPlace : uint8_t { kHost, kCompile, kDevice, kWait, kBeside };

struct SpanKindRow {
  std::string_view name;
  SpanPlace place;
  std::string_view doc;
};
const SpanKindRow& RowOf(SpanKind kind);

// What spans of one place in a program have in common. Kept for the life of the process.
struct SpanLabel {
  SpanKind kind = SpanKind::kUser;
  std::string name;      // "fusion.12", "compile"
  std::string detail{};  // of a thunk its kind: "matmul"
  std::string op{};      // as the user knows it: "aten::mm"
  std::string scope{};   // "net/conv1/aten__convolution"
  std::string source{};  // "train.cc:41"
  double flops = 0;      // of one span, estimated
  double bytes = 0;
  bool operator==(const SpanLabel&) const = default;
};
// The one label that is equal to this. Takes a lock.
const SpanLabel& KeepLabel(SpanLabel label);

struct SpanRecord {
  const SpanLabel* label = nullptr;
  uint32_t thread = 0;
  int64_t start_ns = 0;  // since tracing was first turned on
  int64_t duration_ns = 0;
  int64_t value = 0;  // what it means is the kind's: bytes, nodes, the number of a run
};

// The spans of one thread lie on a track of its own.
struct SpanTrack {
  uint32_t thread = 0;
  std::string name;           // "cpu:0", or empty
  bool device = false;        // it runs the programs of a device
  int64_t lost = 0;           // older spans that newer ones have replaced (LAZULI_PROFILE_SPANS)
  std::string Title() const;  // its name, or "thread 3"
};

struct TakenSpans {
  std::vector<SpanRecord> spans;  // ordered by start, enclosing ones first
  std::vector<SpanTrack> tracks;  // of the threads that there are spans of, by number
};

// Of SpanCollector (span_collector.h) and of tests; all others make one.
void SetTracing(bool on);
int64_t TraceNow();  // on the clock of start_ns
void SortSpans(std::vector<SpanRecord>& spans);
TakenSpans TakeTrace();               // empties the rings
std::vector<SpanRecord> TakeSpans();  // the same without tracks
// What the calling thread's track is called.
void NameTrack(std::string_view name, bool device);

// Appends the spans to a trace: a process for the host from number `process` on, and one for each
// device behind it. Arrows lead from where a run was queued to where it ran.
void AppendSpans(const TakenSpans& taken, int process, TraceJson& json);

namespace internal {
inline std::atomic<bool> tracing{false};
int64_t NowNs();
void RecordSpan(const SpanLabel& label, int64_t start, int64_t value);
// The same of a span that is over.
void RecordSpanOf(const SpanLabel& label, int64_t start, int64_t duration);
void RecordInstant(const SpanLabel& label, int64_t value);
const SpanLabel& LabelOf(SpanKind kind, std::string_view name);
void NoteRecorded();
}  // namespace internal

inline bool IsTracing() { return internal::tracing.load(std::memory_order_relaxed); }

class TraceSpan {
 public:
  // The label must outlive the trace: KeepLabel's do.
  explicit TraceSpan(const SpanLabel& label, int64_t value = 0) : value_(value) {
    if (IsTracing()) [[unlikely]]
      Start(label);
  }
  // The same of what `label` gives, which is called while tracing only.
  template <std::invocable F>
  explicit TraceSpan(F&& label, int64_t value = 0) : value_(value) {
    if (IsTracing()) [[unlikely]]
      Start(label());
  }
  TraceSpan(SpanKind kind, std::string_view name, int64_t value = 0) : value_(value) {
    if (IsTracing()) [[unlikely]]
      Start(internal::LabelOf(kind, name));
  }
  ~TraceSpan() {
    if (label_ != nullptr) [[unlikely]]
      internal::RecordSpan(*label_, start_, value_);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

  void set_value(int64_t value) { value_ = value; }

 private:
  void Start(const SpanLabel& label) {
    label_ = &label;
    start_ = internal::NowNs();
  }

  const SpanLabel* label_ = nullptr;
  int64_t start_ = 0;
  int64_t value_;
};

// Many small events as one span, from the first NoteRecorded() of the thread to EndRecorded(): an
// event of its own would cost as much as what it is of. Its value is their number.
inline void NoteRecorded() {
  if (IsTracing()) [[unlikely]]
    internal::NoteRecorded();
}
void EndRecorded();

// A value that changes over time: bytes in use.
inline void TraceCounter(std::string_view name, int64_t value) {
  if (IsTracing()) [[unlikely]]
    internal::RecordInstant(internal::LabelOf(SpanKind::kCounter, name), value);
}

}  // namespace lazuli::ir
