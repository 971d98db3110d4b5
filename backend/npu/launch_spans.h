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

class LaunchSpans final : public ForwardingObserver {
 public:
  LaunchSpans(const DeviceProgram& program, Observer* next);
  ~LaunchSpans() override;  // the launch is over
  LaunchSpans(const LaunchSpans&) = delete;
  LaunchSpans& operator=(const LaunchSpans&) = delete;

  void OnSlice(const Slice& slice) override;

 private:
  const DeviceProgram& program_;
  const int64_t start_;
  std::vector<int64_t> cycles_;  // by origin
};

}  // namespace lazuli::npu
