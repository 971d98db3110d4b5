// What the simulated NPU simulates in a second: products with and without cycles, scalar
// instructions.
#include <string>
#include <string_view>

#include <benchmark/benchmark.h>

#include "backend/npu/sim/assembler.h"
#include "backend/npu/sim/machine.h"

namespace lazuli::npu {
namespace {

// 400 tiles of 128 rows, weights loaded under the stream.
constexpr std::string_view kProducts = R"(
.desc da dim(16384) src(1) dst(1) elem 4
.desc rows dim(128) src(32) dst(0) elem 4
dma.fill.0 [r1], da, 0x3f800000
fence all
loop r5, 400
mx.ldw.f32 [r1], k=32, n=32
mx.swp
mx.mm.f32 [r1], acc[0], rows, acc=r5
endl
fence all
halt
)";
// The same of 8 bits, rows through a table of offsets.
constexpr std::string_view kConvolutions = R"(
.desc da dim(65536) src(1) dst(1) elem 1
.desc rows dim(8,16) src(1024,32) dst(0,0) elem 1
.desc table dim(32) src(1) dst(1) elem 4
.const offsets s32[32] 0 1 2 3 4 5 6 7 32 33 34 35 36 37 38 39 1024 1025 1026 1027 1028 1029 1030 1031 2048 2049 2050 2051 2052 2053 2054 2055
movi r2, 0x20000
dma.ld.0 [r2], $offsets, table
dma.fill.0 [r1], da, 3
fence all
loop r5, 400
mx.ldw.s8 [r1], k=32, n=32
mx.swp
mx.mm.s8 [r1], acc[0], rows, acc=r5, koff=r2
endl
fence all
halt
)";
constexpr std::string_view kScalars = R"(
loop r5, 1000000
add r6, r6, r5
xor r7, r6, 12345
bge r7, r0, next
add r8, r8, 1
next: sub r9, r9, r8
endl
halt
)";

void RunText(benchmark::State& state, std::string_view text, bool timing, bool strict) {
  const auto program = Assemble(text, "bench");
  Config config;
  config.strict = strict;
  auto machine = Machine::Create(config);
  int64_t macs = 0, instructions = 0;
  for (auto _ : state) {
    if (!program.ok() || !machine.ok() || (*machine)->Load(*program) ||
        (*machine)->Run({.timing = timing})) {
      state.SkipWithError("the program fails");
      return;
    }
    macs += (*machine)->counters(0).macs_f32 + (*machine)->counters(0).macs_int;
    instructions += (*machine)->counters(0).instructions;
  }
  state.counters["macs/s"] =
      benchmark::Counter(static_cast<double>(macs), benchmark::Counter::kIsRate);
  state.counters["instructions/s"] =
      benchmark::Counter(static_cast<double>(instructions), benchmark::Counter::kIsRate);
}

BENCHMARK_CAPTURE(RunText, products, kProducts, true, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(RunText, products_functional, kProducts, false, false)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(RunText, products_strict, kProducts, true, true)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(RunText, convolutions, kConvolutions, true, false)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(RunText, convolutions_strict, kConvolutions, true, true)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(RunText, scalars, kScalars, true, false)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lazuli::npu
