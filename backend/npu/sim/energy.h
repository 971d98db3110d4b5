// Energy of a run: how often each thing happened times what it costs in a table.
//
// A joule means nothing without its table, so an Energy carries the table's name, and whoever
// prints one prints it. The tables are of published figures of one operation; wires, clocks and
// control are in none of them, and leakage is a key of the configuration.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "backend/npu/sim/config.h"
#include "backend/npu/sim/observer.h"

namespace lazuli::npu {

// Picojoules.
struct EnergyTable {
  std::string_view name;
  std::string_view source;
  double mac_int8, mac_bf16, mac_f32;    // with the addition to the sum
  double acc_word;                       // 32 bits of the accumulators, read or written
  double alu, sfu;                       // a lane's micro-operation
  double sram_8kb, sram_32kb, sram_1mb;  // 8 bytes of a memory of this size
  double dram;                           // 8 bytes
  double link;                           // 8 bytes to another device or the host
};
const EnergyTable& EnergyTableOf(const Config& config);

// What happened, on all cores of a device.
struct Activity {
  int64_t cycles = 0;
  int64_t macs_int8 = 0, macs_bf16 = 0, macs_f32 = 0;
  int64_t acc_words = 0;
  int64_t spm_bytes = 0;
  int64_t dram_bytes = 0;
  int64_t alu_ops = 0, sfu_ops = 0;
  int64_t link_bytes = 0;
};

// What the machine counted.
Activity ActivityOf(const Counters& counters);

struct EnergyPart {
  std::string_view name;
  double joules;
};
struct Energy {
  std::string_view table;
  std::vector<EnergyPart> parts;
  double joules = 0;  // the sum of the parts
};
Energy EnergyOf(const Activity& activity, const Config& config);

// "12.3 uJ (horowitz45): macs 4.56, ..., leakage 0.1".
std::string EnergyText(const Energy& energy);
// The tables, one row a figure, as Markdown.
std::string EnergyPage();

// Picojoules of 8 bytes of one bank of the scratchpad: the table's sizes, joined by straight lines
// over the logarithms.
double SpmAccessEnergy(const Config& config);

}  // namespace lazuli::npu
