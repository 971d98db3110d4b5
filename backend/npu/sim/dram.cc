#include "backend/npu/sim/dram.h"

#include <algorithm>
#include <cmath>

#include "backend/npu/sim/cost.h"

namespace lazuli::npu {

Dram::Dram(const Config& config)
    : burst_(static_cast<uint64_t>(config.dram.burst)),
      row_bytes_(static_cast<uint64_t>(config.dram.row_bytes)),
      ticks_per_byte_(static_cast<double>(kTicksPerCycle) / BytesPerCycle(config, config.dram.gbs)),
      latency_(CyclesOf(config, config.dram.latency_ns)),
      latency_ticks_(latency_ * kTicksPerCycle),
      miss_ticks_(CyclesOf(config, config.dram.miss_ns) * kTicksPerCycle) {
  if (config.dram.model == DramModel::kBanked)
    banks_.resize(static_cast<std::size_t>(config.dram.banks));
}

int64_t Dram::Serve(int64_t now, uint64_t address, int64_t bytes) {
  if (bytes <= 0) return std::max(now, free_);
  const uint64_t begin = address / burst_ * burst_;
  const uint64_t end = (address + static_cast<uint64_t>(bytes) + burst_ - 1) / burst_ * burst_;
  bytes_ += static_cast<int64_t>(end - begin);
  const auto ticks = [this](uint64_t size) {
    return static_cast<int64_t>(std::ceil(static_cast<double>(size) * ticks_per_byte_));
  };
  free_ = std::max(now, free_);
  if (banks_.empty()) return free_ += ticks(end - begin);
  for (uint64_t from = begin; from < end;) {
    const uint64_t row = from / row_bytes_;
    const uint64_t to = std::min(end, (row + 1) * row_bytes_);
    Bank& bank = banks_[row % banks_.size()];
    if (bank.row != static_cast<int64_t>(row)) {
      ++misses_;
      const int64_t opening = std::max(bank.free, free_ - latency_ticks_);
      free_ = std::max(free_, opening + miss_ticks_);
      bank.row = static_cast<int64_t>(row);
    }
    free_ += ticks(to - from);
    bank.free = free_;
    from = to;
  }
  return free_;
}

}  // namespace lazuli::npu
