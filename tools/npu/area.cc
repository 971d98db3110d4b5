#include "tools/npu/area.h"

#include "ir/support/str.h"

namespace lazuli::npu {
namespace {

// Square micrometres in 45 nm.
constexpr double kAdd32 = 137, kMul8 = 282, kMul32 = 3495;
constexpr double kMulBf16 = 1640, kAddF32 = 4184, kMulF32 = 7700;
constexpr double kSramBit = 0.346;
constexpr double kSramFilled = 0.5;  // of a memory, by its cells: an assumption
constexpr double kFmaF32 = kMulF32 + kAddF32;

// An element of the array multiplies 8 bits and bf16 every cycle. Its f32 multiplier is as large as
// what it does in a cycle.
double MultiplierArea(const Config& config) {
  const bool native = config.mxu.f32 == F32Mode::kNative;
  return kMul8 + kAdd32 + kMulBf16 + kAddF32 +
         (native ? kMulF32 / static_cast<double>(config.mxu.f32_clk_per_row) : 0);
}

// A special function is four f32 multiplications and additions, as in the tables of energies.
double LaneArea(const Config& config) {
  return kFmaF32 + kMul32 + kAdd32 + 4 * kFmaF32 / static_cast<double>(config.vpu.sfu_rate);
}

double MemoryArea(double bytes) { return bytes * 8 * kSramBit / kSramFilled; }

}  // namespace

Area AreaOf(const Config& config) {
  constexpr double kSquareMillimetre = 1e6;
  const auto cores = static_cast<double>(config.cores) / kSquareMillimetre;
  Area area;
  area.parts = {
      {"array",
       cores * static_cast<double>(config.mxu.rows * config.mxu.cols) * MultiplierArea(config)},
      {"vector unit", cores * static_cast<double>(config.vpu.lanes) * LaneArea(config)},
      {"scratchpad", cores * MemoryArea(static_cast<double>(config.spm_bytes()))},
      {"accumulators", cores * MemoryArea(static_cast<double>(config.acc_bytes()))},
  };
  for (const AreaPart& part : area.parts) area.mm2 += part.mm2;
  return area;
}

std::string AreaPage() {
  return Str(
      "| part | square micrometres (45 nm) |\n| --- | --- |\n"
      "| element of the array | ",
      kMul8, " (multiplication, 8 bits) + ", kAdd32, " (addition, 32 bits) + ", kMulBf16,
      " (multiplication, f16) + ", kAddF32, " (addition, f32); with `mxu.f32` = native + ", kMulF32,
      " (multiplication, f32) / `mxu.f32_clk_per_row` |\n| lane of the vector unit | ", kMulF32,
      " + ", kAddF32, " (f32) + ", kMul32, " + ", kAdd32, " (32 bits) + 4 * (", kMulF32, " + ",
      kAddF32, ") / `vpu.sfu_rate` |\n| bit of SRAM | ", kSramBit, " / ", kSramFilled,
      " |\n\n"
      "- Arithmetic: W. Dally, High-performance hardware for machine learning, NIPS 2015, "
      "synthesised for TSMC's 45 nm.\n"
      "- SRAM: K. Mistry et al., A 45nm logic technology, IEDM 2007: a cell of 0.346. That cells "
      "fill "
      "half of a memory is an assumption.\n");
}

}  // namespace lazuli::npu
