// What holds for every run of every program, whatever it computes: docs/npu.md, promise 11.
#pragma once

#include <cstdint>

#include <gtest/gtest.h>

#include "backend/npu/sim/energy.h"
#include "backend/npu/sim/machine.h"

namespace lazuli::npu {

inline int64_t DramBytes(const Program& program, bool read) {
  int64_t bytes = 0;
  for (const Symbol& s : program.symbols) {
    const bool both = s.kind == SymbolKind::kInOut;
    if (both || (read ? s.kind == SymbolKind::kIn || s.kind == SymbolKind::kConst
                      : s.kind == SymbolKind::kOut))
      bytes += s.bytes();
  }
  return bytes;
}

inline double PicojoulesByHand(const Counters& c, const Config& config) {
  const EnergyTable& table = EnergyTableOf(config);
  return static_cast<double>(c.macs_int) * table.mac_int8 +
         static_cast<double>(c.macs_bf16) * table.mac_bf16 +
         static_cast<double>(c.macs_f32) * table.mac_f32 +
         static_cast<double>(c.acc_words) * table.acc_word +
         static_cast<double>(c.spm_read_bytes + c.spm_write_bytes) * SpmAccessEnergy(config) / 8 +
         static_cast<double>(c.alu_ops) * table.alu + static_cast<double>(c.sfu_ops) * table.sfu +
         static_cast<double>(c.dram_burst_bytes) * table.dram / 8 +
         static_cast<double>(c.link_bytes + c.host_bytes) * table.link / 8 +
         config.energy.leakage_mw * static_cast<double>(c.cycles) * 1e3 / config.clock_mhz;
}

// Of one device's run that counted its cycles. reads_all: the program reads all of what it is given.
inline void ExpectInvariants(const Program& program, const Config& config, const Counters& c,
                             int64_t cycles, bool reads_all) {
  EXPECT_GE(c.busy[kMxTrack] * config.mxu.rows * config.mxu.cols,
            c.macs_int + c.macs_bf16 + c.macs_f32 * config.mxu.f32_clk_per_row);
  if (reads_all) {
    EXPECT_GE(c.dram_read_bytes, DramBytes(program, true));
  }
  EXPECT_GE(c.dram_write_bytes, DramBytes(program, false));
  EXPECT_GE(c.dram_burst_bytes, c.dram_read_bytes + c.dram_write_bytes);
  for (const int64_t busy : c.busy) EXPECT_LE(busy, cycles);
  const double picojoules = PicojoulesByHand(c, config);
  const Energy energy = EnergyOf(ActivityOf(c), config);
  EXPECT_NEAR(energy.joules, picojoules * 1e-12, picojoules * 1e-12 * 1e-9);
  double parts = 0;
  for (const EnergyPart& part : energy.parts) parts += part.joules;
  EXPECT_NEAR(energy.joules, parts, parts * 1e-12);
}

}  // namespace lazuli::npu
