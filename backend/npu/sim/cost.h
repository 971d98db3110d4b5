// What instructions cost: cycles that they occupy their unit, and how much later their results are
// there.
//
// One place for all units: the event-driven simulator, npu-layers and the compiler's search call
// these. A next instruction of the unit may start `occupancy` after this one; what this one writes
// is there, and its signal given, `latency` after that. DRAM has a state and a class of its own
// (dram.h).
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "backend/npu/sim/config.h"

namespace lazuli::npu {

struct Cost {
  int64_t occupancy = 0, latency = 0;
  int64_t total() const { return occupancy + latency; }
};

constexpr int64_t CeilDiv(int64_t a, int64_t b) { return (a + b - 1) / b; }

// --- the array
//
// From the first clock to the last of one fold of a matrix product: what lies still in the array is
// loaded, T rows stream through, and the results leave it. ws: weights (k x n) lie still and T = m;
// is: inputs (k x m) lie still and T = n; os: results (m x n) lie still and T = k, without the R
// clocks in which they leave the array if `os_drain` is false. array_model.h counts the same, clock
// by clock.
int64_t FoldCycles(Dataflow dataflow, int64_t rows, int64_t cols, int64_t t, bool os_drain);

// Cycles that a row of A occupies the array: f32 by its mode, everything else 1.
int64_t ClocksPerRow(const Config& config, bool f32, F32Mode mode);

// k x n weights into the shadow plane; transposed: through the transposer. With dataflow os or is
// they are not loaded but stream in with the product.
Cost LoadWeightsCost(const Config& config, int64_t k, int64_t n, bool transposed);
// m rows against an active plane of k x n. `bank_clocks`: in how many clocks the scratchpad gives
// the rows (BankConflicts), at least m.
Cost MultiplyCost(const Config& config, int64_t m, int64_t k, int64_t n, int64_t clocks_per_row,
                  int64_t bank_clocks);
// m rows of accumulators, n columns each, to the scratchpad.
Cost OutCost(const Config& config, int64_t m, int64_t n);

// --- the scratchpad's banks
//
// A word of spm.bank_bytes lies in bank (address / bank_bytes) mod banks, and a bank serves one
// word a clock. Elements do not cross words.

// Clocks in which `bytes` consecutive bytes are served.
int64_t RowClocks(const Config& config, uint64_t address, int64_t bytes);

// How long a row of A takes whose elements lie at offsets (the K-offset table) from where it
// begins: the most words that one bank has to serve. What it says repeats with the address, modulo
// one word of every bank, and is kept.
class BankConflicts {
 public:
  BankConflicts(const Config& config, std::vector<int64_t> offsets);
  int64_t Clocks(uint64_t address) { return At(address).clocks; }
  // Words of each bank, for those that have any.
  const std::vector<std::pair<int32_t, int32_t>>& Words(uint64_t address) {
    return At(address).words;
  }

 private:
  struct RowConflicts {
    int64_t clocks = 0;  // 0: not asked for yet
    std::vector<std::pair<int32_t, int32_t>> words;
  };
  const RowConflicts& At(uint64_t address);

  int64_t bank_bytes_, banks_;
  std::vector<int64_t> offsets_;
  std::vector<RowConflicts> known_;  // by the address modulo a word of every bank
};

// --- vectors
//
// A vector program of `alu` and `sfu` micro-operations that reads and writes `streams` streams,
// over n elements. The units work side by side, so the slowest decides: `initiation` is the clocks
// between two groups of vpu.lanes elements, or of n if those are fewer.
int64_t InitiationInterval(const Config& config, int64_t n, int64_t alu, int64_t sfu,
                           int64_t streams);
Cost VectorCost(const Config& config, int64_t n, int64_t initiation);
// The same, with results of `length` elements each: their lanes are joined in a tree, which they
// follow each other through.
Cost ReduceCost(const Config& config, int64_t n, int64_t initiation, int64_t length);
Cost RandomCost(const Config& config, int64_t n);
// Transposing rows x cols elements, block by block.
Cost TransposeCost(const Config& config, int64_t rows, int64_t cols);

// --- copies
//
// Inside a core or between two cores; also filling.
Cost CopyCost(const Config& config, int64_t bytes);
Cost HostCost(const Config& config, int64_t bytes);
int64_t LaunchCycles(const Config& config);

// Devices that a message from one to the other meets, the receiver included: 1 for a neighbour.
int64_t Hops(const Config& config, int64_t from, int64_t to);
Cost LinkCost(const Config& config, int64_t bytes, int64_t hops);

// A rate in cycles and a time in cycles, rounded up.
double BytesPerCycle(const Config& config, double gbs);
int64_t CyclesOf(const Config& config, double nanoseconds);

}  // namespace lazuli::npu
