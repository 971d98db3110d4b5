// Traces in the JSON that chrome://tracing and Perfetto open: tracks of slices, arrows between
// them, counters.
//
// Times are nanoseconds, or whatever unit shall be shown as such; a simulator's clocks are. A
// process is a group of tracks, a track a thread of it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "ir/support/namespaces.h"

namespace lazuli::ir {

class TraceJson {
 public:
  TraceJson();

  void NameProcess(int process, std::string_view name);
  // Tracks of a process stand in the order of their numbers.
  void NameTrack(int process, int track, std::string_view name);
  // `arguments` is the inside of a JSON object ("\"bytes\":64"), or empty.
  void Slice(int process, int track, std::string_view name, int64_t start, int64_t duration,
             std::string_view arguments = {});
  // A moment without duration.
  void Instant(int process, int track, std::string_view name, int64_t time);
  // An arrow from the slice that holds one point to the slice that holds the other; `id` is its
  // own.
  void Flow(int64_t id, std::string_view name, int from_process, int from_track, int64_t from,
            int to_process, int to_track, int64_t to);
  void Counter(int process, std::string_view name, int64_t time, double value);

  std::string Finish() &&;

 private:
  void Begin(std::string_view phase, int process, int track);
  void Name(std::string_view name);
  void Time(std::string_view key, int64_t ns);

  std::string out_;
  bool first_ = true;
};

}  // namespace lazuli::ir
