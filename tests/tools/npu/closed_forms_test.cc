// The event-driven machine against the closed forms of npu-layers: the same tiles, data in the
// scratchpad.
#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "backend/npu/sim/assembler.h"
#include "backend/npu/sim/machine.h"
#include "backend/npu/sim/trace.h"
#include "ir/support/status.h"
#include "ir/support/str.h"
#include "tools/npu/layers.h"

namespace lazuli::npu {
namespace {

// c = a b with one multiplication for each tile of the array.
std::string TiledProduct(int64_t m, int64_t n, int64_t k, const Config& config,
                         std::string_view set) {
  const int64_t rows = config.mxu.rows, cols = config.mxu.cols, weights = 0x8000;
  std::string text =
      Str(".config npu1-edge ", set, "\n.arg a s8[", m, ",", k, "] in\n.arg b s8[", k, ",", n,
          "] in\n.desc a dim(", m * k, ") src(1) dst(1) elem 1\n.desc b dim(", k * n,
          ") src(1) dst(1) elem 1\n.desc rows dim(", m, ") src(", k, ") dst(0) elem 1\n  movi r2, ",
          weights, "\n  dma.ld.0 [r1], $a, a\n  dma.ld.0 [r2], $b, b\n  fence all\n");
  for (int64_t column = 0; column < n; column += cols) {
    for (int64_t row = 0; row < k; row += rows) {
      text +=
          Str("  movi r3, ", weights + row * n + column, "\n  mx.ldw.s8 [r3], k=", rows,
              ", n=", cols, ", ld=", n, "\n  mx.swp\n  movi r1, ", row, "\n  movi r4, ",
              row > 0 ? 1 : 0, "\n  mx.mm.s8 [r1], acc[", column / cols * m, "], rows, acc=r4\n");
    }
  }
  return text + "  halt\n";
}

// From the first load of weights to the last sum.
int64_t ArrayCycles(std::string_view text, const Config& config) {
  const auto program = Assemble(text, "t.s");
  EXPECT_TRUE(program.ok()) << Message(program.status());
  if (!program.ok()) return -1;
  auto machine = Machine::Create(config);
  Trace trace(*program, config);
  RunOptions options;
  options.observer = &trace;
  auto fault = (*machine)->Load(*program);
  for (const Symbol& symbol : program->symbols)
    EXPECT_TRUE(
        (*machine)->WriteSymbol(0, symbol.name, std::vector<std::byte>(symbol.bytes())).ok());
  if (!fault) fault = (*machine)->Run(options);
  EXPECT_FALSE(fault) << fault->ToString();
  int64_t begin = -1, end = 0;
  for (const Slice& slice : trace.slices()) {
    if (slice.track == kSequencerTrack) continue;
    if (slice.instruction->opcode() == Op::kMxLdw && begin < 0) begin = slice.start;
    if (slice.instruction->opcode() == Op::kMxMm) end = std::max(end, slice.done);
  }
  return end - begin;
}

TEST(ClosedFormsTest, TheMachineTakesThemForTheSameTiles) {
  for (const char* set :
       {"mxu.rows=8,mxu.cols=16", "mxu.rows=16,mxu.cols=8,mxu.ldw_rows_per_clk=2",
        "mxu.rows=16,mxu.cols=16,mxu.shadow_planes=0", "mxu.rows=8,mxu.cols=8,mxu.dataflow=os"}) {
    Config config;
    ASSERT_TRUE(SetKeys(set, config).ok());
    for (const int64_t m : {8, 20, 64}) {
      for (const int64_t n : {16, 48}) {
        for (const int64_t k : {16, 64}) {
          const LayerReport report = EstimateLayer(Layer::Product("g", m, n, k), config);
          const int64_t cycles = ArrayCycles(TiledProduct(m, n, k, config, set), config);
          if (config.mxu.dataflow == Dataflow::kOs) {
            // A program's tile is a fold for each k tile; the closed form's folds take all of k.
            EXPECT_GE(cycles, report.cycles) << set << " " << m << "," << n << "," << k;
          } else {
            EXPECT_EQ(cycles, report.cycles) << set << " " << m << "," << n << "," << k;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace lazuli::npu
