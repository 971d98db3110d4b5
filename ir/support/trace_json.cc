#include "ir/support/trace_json.h"

#include <utility>

#include "ir/support/json.h"
#include "ir/support/str.h"

namespace lazuli::ir {

TraceJson::TraceJson() : out_("{\"traceEvents\":[") {}

void TraceJson::Begin(std::string_view phase, int process, int track) {
  out_ += first_ ? "\n" : ",\n";
  first_ = false;
  out_ += "{\"ph\":\"";
  out_ += phase;
  out_ += "\",\"pid\":";
  AppendTo(out_, process);
  out_ += ",\"tid\":";
  AppendTo(out_, track);
}

void TraceJson::Name(std::string_view name) {
  out_ += ",\"name\":";
  AppendJsonString(out_, name);
}

// Microseconds with all three decimals: viewers take times in microseconds.
void TraceJson::Time(std::string_view key, int64_t ns) {
  out_ += ",\"";
  out_ += key;
  out_ += "\":";
  if (ns < 0) {
    out_ += '-';
    ns = -ns;
  }
  AppendTo(out_, ns / 1000);
  const auto digit = [](int64_t d) { return static_cast<char>('0' + d % 10); };
  out_ += {'.', digit(ns / 100), digit(ns / 10), digit(ns)};
}

void TraceJson::NameProcess(int process, std::string_view name) {
  Begin("M", process, 0);
  out_ += ",\"name\":\"process_name\",\"args\":{\"name\":";
  AppendJsonString(out_, name);
  out_ += "}}";
}

void TraceJson::NameTrack(int process, int track, std::string_view name) {
  Begin("M", process, track);
  out_ += ",\"name\":\"thread_name\",\"args\":{\"name\":";
  AppendJsonString(out_, name);
  out_ += "}}";
  Begin("M", process, track);
  out_ += ",\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":";
  AppendTo(out_, track);
  out_ += "}}";
}

void TraceJson::Slice(int process, int track, std::string_view name, int64_t start,
                      int64_t duration, std::string_view arguments) {
  Begin("X", process, track);
  Name(name);
  Time("ts", start);
  Time("dur", duration);
  if (!arguments.empty()) {
    out_ += ",\"args\":{";
    out_ += arguments;
    out_ += "}";
  }
  out_ += "}";
}

void TraceJson::Instant(int process, int track, std::string_view name, int64_t time) {
  Begin("i", process, track);
  Name(name);
  Time("ts", time);
  out_ += ",\"s\":\"t\"}";
}

void TraceJson::Flow(int64_t id, std::string_view name, int from_process, int from_track,
                     int64_t from, int to_process, int to_track, int64_t to) {
  const auto end = [&](std::string_view phase, int process, int track, int64_t time,
                       std::string_view binding) {
    Begin(phase, process, track);
    Name(name);
    Time("ts", time);
    out_ += Str(",\"cat\":\"flow\",\"id\":", id, binding, "}");
  };
  end("s", from_process, from_track, from, "");
  end("f", to_process, to_track, to, ",\"bp\":\"e\"");
}

void TraceJson::Counter(int process, std::string_view name, int64_t time, double value) {
  Begin("C", process, 0);
  Name(name);
  Time("ts", time);
  out_ += ",\"args\":{\"value\":";
  AppendTo(out_, value);
  out_ += "}}";
}

std::string TraceJson::Finish() && {
  out_ += "\n],\"displayTimeUnit\":\"ms\"}\n";
  return std::move(out_);
}

}  // namespace lazuli::ir
