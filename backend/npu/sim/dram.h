// The DRAM of a device as the timing model sees it: a channel that one transfer holds at a time.
//
// Model `flat` moves whole bursts at the configured bandwidth. Model `banked` also knows which row
// is open in each bank: opening another one takes dram.miss_ns. The controller sees a request as
// long before its data as dram.latency_ns, so that rows of other banks are opened under the
// transfers before; a stream of consecutive addresses takes as long as with `flat`, rows of one
// bank in turn do not. A transfer's data is there dram.latency_ns after its end, which the caller
// adds.
//
// Deterministic: what is asked in the same order at the same times takes the same time.
#pragma once

#include <cstdint>
#include <vector>

#include "backend/npu/sim/config.h"

namespace lazuli::npu {

// Times of the channel: parts of a cycle, since a burst takes no whole number of them.
inline constexpr int64_t kTicksPerCycle = int64_t{1} << 20;

class Dram {
 public:
  explicit Dram(const Config& config);

  // Transfers bytes that one queue was granted, not before `now`; returns when the channel is free
  // again. In ticks.
  int64_t Serve(int64_t now, uint64_t address, int64_t bytes);

  int64_t free_at() const { return free_; }
  int64_t latency_cycles() const { return latency_; }
  int64_t bytes() const { return bytes_; }  // moved so far, in whole bursts
  int64_t row_misses() const { return misses_; }

 private:
  struct Bank {
    int64_t row = -1;
    int64_t free = 0;
  };

  uint64_t burst_, row_bytes_;
  double ticks_per_byte_;
  int64_t latency_, latency_ticks_, miss_ticks_;
  std::vector<Bank> banks_;  // empty with model flat
  int64_t free_ = 0, bytes_ = 0, misses_ = 0;
};

}  // namespace lazuli::npu
