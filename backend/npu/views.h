// Views: what is written when the process ends of what its NPUs did, if somebody asked for it.
//
// NPU_REPORT=report.html is a page (report.h). NPU_TRACE=trace.json opens in Perfetto: a process
// for each device with a track for each unit, launches where they lie in its simulated time, beside
// the host's spans, which are of wall time.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "backend/npu/npu_executable.h"
#include "backend/npu/profile.h"
#include "ir/support/span_collector.h"
#include "ir/support/trace_json.h"

namespace lazuli::npu {

class Trace;

class Views {
 public:
  // Null if neither is asked for.
  static std::unique_ptr<Views> FromFlags();
  // Of all traces together at most so many slices are kept.
  Views(std::string report, std::string trace, int64_t most_slices = 100000);

  // Watches one launch, for the report and before the trace.
  class LaunchObserver final : public ForwardingObserver {
   public:
    LaunchObserver(Views& views, const Program& program, const Card& card, int device);
    ~LaunchObserver() override;
    LaunchObserver(const LaunchObserver&) = delete;
    LaunchObserver& operator=(const LaunchObserver&) = delete;

    void OnSlice(const Slice& slice) override;
    void OnDelay(int device, int core, int track, int64_t end, int64_t done) override;
    void OnWork(int device, int core, uint32_t pc, const Counters& work) override;

   private:
    Views& views_;
    const int device_;
    const int64_t begin_;
    int64_t seen_ = 0;  // slices
    NpuProfile::Launch profile_;
    std::unique_ptr<Trace> trace_;  // null: no more slices are kept
  };

  // What went wrong is said on standard error: the process ends.
  void Write(const NpuDevices& devices);
  const NpuProfile& profile() const { return profile_; }

 private:
  void SayCut(const NpuDevices& devices);

  const std::string report_, trace_;
  const std::unique_ptr<ir::SpanCollector> spans_;  // of the host, if there is a trace
  const int64_t most_slices_;
  NpuProfile profile_;
  ir::ForkMutex mutex_;
  ir::TraceJson json_;
  int64_t slices_ = 0, seen_ = 0, flows_ = 0;
  std::map<int, int64_t> ends_;  // of what is shown, in cycles, by device
};

}  // namespace lazuli::npu
