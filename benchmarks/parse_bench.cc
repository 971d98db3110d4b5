// Reading and writing HLO: bytes per second, and a module of 4,000 instructions. Goals: 50 MB/s of
// text parsed, and 10 ms.
#include <string>

#include <benchmark/benchmark.h>

#include "ir/hlo/proto/proto.h"
#include "ir/hlo/text/parser.h"
#include "ir/hlo/text/printer.h"
#include "ir/support/str.h"

namespace lazuli::hlo {
namespace {

// A chain of elementwise instructions and dots, as training steps have them, with metadata.
std::string TextOf(int64_t instructions) {
  std::string text = "HloModule m\n\nENTRY %main {\n  %v0 = f32[32,32]{1,0} parameter(0)\n";
  const char* const kOps[] = {"add", "multiply", "maximum", "subtract"};
  for (int64_t i = 1; i < instructions; ++i) {
    const std::string metadata = Str(", metadata={op_type=\"aten__mm\" op_name=\"layer", i / 10,
                                     "/mm\" source_file=\"train.py\" source_line=", i, "}");
    const std::string left = Str("%v", i - 1), right = Str("%v", i / 2);
    const char* root = i + 1 == instructions ? "  ROOT " : "  ";
    if (i % 8 == 0) {
      text += Str(root, "%v", i, " = f32[32,32]{1,0} dot(", left, ", ", right,
                  "), lhs_contracting_dims={1}, rhs_contracting_dims={0}", metadata, "\n");
    } else {
      text += Str(root, "%v", i, " = f32[32,32]{1,0} ", kOps[i % 4], "(", left, ", ", right, ")",
                  metadata, "\n");
    }
  }
  return text + "}\n";
}

void SetBytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<int64_t>(bytes) * state.iterations());
}

void BM_Parse(benchmark::State& state) {
  const std::string text = TextOf(state.range(0));
  for (auto _ : state) benchmark::DoNotOptimize(ParseModule(text));
  SetBytes(state, text.size());
}
BENCHMARK(BM_Parse)->Arg(4000)->Arg(40000)->Unit(benchmark::kMillisecond);

void BM_ParseConstants(benchmark::State& state) {
  std::string text = "HloModule m\nENTRY e { ROOT c = f32[100000] constant({";
  for (int i = 0; i < 100000; ++i) text += Str(i == 0 ? "" : ", ", 0.37 * i - 1234);
  text += "}) }";
  for (auto _ : state) benchmark::DoNotOptimize(ParseModule(text));
  SetBytes(state, text.size());
}
BENCHMARK(BM_ParseConstants)->Unit(benchmark::kMillisecond);

void BM_Print(benchmark::State& state) {
  const auto module = *ParseModule(TextOf(state.range(0)));
  std::size_t bytes = 0;
  for (auto _ : state) bytes = ToString(*module).size();
  SetBytes(state, bytes);
}
BENCHMARK(BM_Print)->Arg(4000)->Unit(benchmark::kMillisecond);

void BM_ParseProto(benchmark::State& state) {
  const std::string bytes = SerializeModuleProto(**ParseModule(TextOf(state.range(0))));
  for (auto _ : state) benchmark::DoNotOptimize(ParseModuleProto(bytes));
  SetBytes(state, bytes.size());
}
BENCHMARK(BM_ParseProto)->Arg(4000)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lazuli::hlo
