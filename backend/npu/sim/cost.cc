#include "backend/npu/sim/cost.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "backend/npu/sim/topology.h"

namespace lazuli::npu {
namespace {

int64_t RingDistance(int64_t size, int64_t from, int64_t to) {
  const int64_t forward = std::abs(from - to);
  return std::min(forward, size - forward);
}

int64_t CyclesFor(const Config& config, int64_t bytes, double gbs) {
  return static_cast<int64_t>(std::ceil(static_cast<double>(bytes) / BytesPerCycle(config, gbs)));
}

}  // namespace

int64_t FoldCycles(Dataflow dataflow, int64_t rows, int64_t cols, int64_t t, bool os_drain) {
  const int64_t stream = rows + cols + t - 2;
  return dataflow == Dataflow::kOs && !os_drain ? stream : rows + stream;
}

int64_t ClocksPerRow(const Config& config, bool f32, F32Mode mode) {
  if (!f32) return 1;
  switch (mode) {
    case F32Mode::kNative:
      return config.mxu.f32_clk_per_row;
    case F32Mode::kX1:
      return 1;
    case F32Mode::kX3:
      return 3;
    case F32Mode::kX6:
      return 6;
  }
  return 1;
}

Cost LoadWeightsCost(const Config& config, int64_t k, int64_t /*n*/, bool transposed) {
  if (config.mxu.dataflow != Dataflow::kWs) return {};
  return {CeilDiv(k, config.mxu.ldw_rows_per_clk) + (transposed ? config.mxu.cols : 0), 0};
}

Cost MultiplyCost(const Config& config, int64_t m, int64_t k, int64_t n, int64_t clocks_per_row,
                  int64_t bank_clocks) {
  const auto& mxu = config.mxu;
  switch (mxu.dataflow) {
    case Dataflow::kWs:
      return {std::max(m * clocks_per_row, bank_clocks), k + n - 2};
    case Dataflow::kOs: {
      const int64_t folds = CeilDiv(m, mxu.rows);
      const int64_t clocks =
          folds * FoldCycles(Dataflow::kOs, mxu.rows, mxu.cols, k * clocks_per_row, mxu.os_drain);
      return {std::max(clocks, bank_clocks), 0};
    }
    case Dataflow::kIs: {
      const int64_t folds = CeilDiv(m, mxu.cols);
      const int64_t clocks =
          folds * FoldCycles(Dataflow::kIs, mxu.rows, mxu.cols, n * clocks_per_row, true);
      return {std::max(clocks, bank_clocks), 0};
    }
  }
  return {};
}

Cost OutCost(const Config& config, int64_t m, int64_t n) {
  return {m * CeilDiv(n, config.mxu.cols), config.mxu.out_latency};
}

int64_t RowClocks(const Config& config, uint64_t address, int64_t bytes) {
  if (bytes <= 0) return 0;
  const auto word = static_cast<uint64_t>(config.spm.bank_bytes);
  const uint64_t words = (address + static_cast<uint64_t>(bytes) - 1) / word - address / word + 1;
  return CeilDiv(static_cast<int64_t>(words), config.spm.banks);
}

BankConflicts::BankConflicts(const Config& config, std::vector<int64_t> offsets)
    : bank_bytes_(config.spm.bank_bytes), banks_(config.spm.banks), offsets_(std::move(offsets)) {}

const BankConflicts::RowConflicts& BankConflicts::At(uint64_t address) {
  if (known_.empty()) known_.resize(static_cast<std::size_t>(bank_bytes_ * banks_));
  const auto phase = static_cast<std::size_t>(address % known_.size());
  RowConflicts& row = known_[phase];
  if (row.clocks != 0) return row;
  // Words as (bank, word), each once.
  std::vector<std::pair<int64_t, int64_t>> words;
  words.reserve(offsets_.size());
  for (const int64_t offset : offsets_) {
    // Two's complement: a word below 0 is as good as any.
    const int64_t word = (static_cast<int64_t>(phase) + offset) >>
                         std::countr_zero(static_cast<uint64_t>(bank_bytes_));
    words.emplace_back(word & (banks_ - 1), word);
  }
  std::sort(words.begin(), words.end());
  words.erase(std::unique(words.begin(), words.end()), words.end());
  row.clocks = 1;
  for (const auto& [bank, word] : words) {
    if (row.words.empty() || row.words.back().first != bank)
      row.words.emplace_back(static_cast<int32_t>(bank), 0);
    row.clocks = std::max<int64_t>(row.clocks, ++row.words.back().second);
  }
  return row;
}

int64_t InitiationInterval(const Config& config, int64_t n, int64_t alu, int64_t sfu,
                           int64_t streams) {
  const int64_t port = CeilDiv(streams * std::min(config.vpu.lanes, n) * 4,
                               config.spm.banks * config.spm.bank_bytes);
  return std::max({int64_t{1}, alu, sfu * config.vpu.sfu_rate, port});
}

Cost VectorCost(const Config& config, int64_t n, int64_t initiation) {
  return {config.vpu.issue + CeilDiv(n, config.vpu.lanes) * initiation, config.vpu.depth};
}

Cost ReduceCost(const Config& config, int64_t n, int64_t initiation, int64_t length) {
  Cost cost = VectorCost(config, n, initiation);
  cost.occupancy += std::bit_width(static_cast<uint64_t>(std::min(config.vpu.lanes, length) - 1));
  return cost;
}

Cost RandomCost(const Config& config, int64_t n) {
  return {config.vpu.issue + CeilDiv(n, config.vpu.lanes) * config.vpu.rng_slots, 0};
}

Cost TransposeCost(const Config& config, int64_t rows, int64_t cols) {
  const int64_t tile = config.xlu.tile;
  // Each column of blocks passes all rows once, and each block takes `tile` clocks to leave.
  return {CeilDiv(cols, tile) * (rows + CeilDiv(rows, tile) * tile), 0};
}

Cost CopyCost(const Config& config, int64_t bytes) {
  return {config.dma.issue + CeilDiv(bytes, config.spm.bank_bytes), 0};
}

Cost HostCost(const Config& config, int64_t bytes) {
  return {CyclesFor(config, bytes, config.host.gbs),
          CyclesOf(config, config.host.latency_us * 1e3)};
}

int64_t LaunchCycles(const Config& config) { return CyclesOf(config, config.host.launch_us * 1e3); }

int64_t Hops(const Config& config, int64_t from, int64_t to) {
  const int64_t width = DevicesInARow(config), height = config.devices / width;
  return RingDistance(width, from % width, to % width) +
         RingDistance(height, from / width, to / width);
}

Cost LinkCost(const Config& config, int64_t bytes, int64_t hops) {
  const double passing = static_cast<double>(std::max<int64_t>(hops - 1, 0)) * config.link.hop_ns;
  return {config.dma.issue + CyclesFor(config, bytes, config.link.gbs),
          CyclesOf(config, config.link.latency_ns + passing)};
}

double BytesPerCycle(const Config& config, double gbs) { return gbs * 1e3 / config.clock_mhz; }

int64_t CyclesOf(const Config& config, double nanoseconds) {
  return static_cast<int64_t>(std::ceil(nanoseconds * config.clock_mhz / 1e3));
}

}  // namespace lazuli::npu
