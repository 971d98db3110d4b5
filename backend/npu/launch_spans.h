// LaunchSpans: what a launch took, for the profiler, by HLO instruction.
//
// The time of a simulation says little about the simulated device. So the launch's time is shared
// out by the cycles that the units were busy for each instruction: a profile then says which lines
// of a program the device would spend its time on. Without cycles (NPU_TIMING=0) nothing is.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/npu/plan.h"
#include "backend/npu/sim/observer.h"

namespace lazuli::npu {

class LaunchSpans final : public Observer {
 public:
  // Hands on what it sees to `next`, which may be null.
  LaunchSpans(const DeviceProgram& program, Observer* next);
  ~LaunchSpans() override;  // the launch is over
  LaunchSpans(const LaunchSpans&) = delete;
  LaunchSpans& operator=(const LaunchSpans&) = delete;

  void OnSlice(const Slice& slice) override;
  void OnDelay(int device, int core, int track, int64_t end, int64_t done) override;
  void OnWork(int device, int core, uint32_t pc, const Counters& work) override;
  void OnSignal(int device, int core, int semaphore, int value, int64_t cycle, int track,
                uint32_t pc) override;
  void OnWait(int device, int core, int semaphore, int value, int64_t cycle, int track,
              uint32_t pc) override;
  void OnAccess(const Access& access, int64_t cycle) override;

 private:
  const DeviceProgram& program_;
  Observer* const next_;
  const int64_t start_;
  std::vector<int64_t> cycles_;  // by origin
};

}  // namespace lazuli::npu
