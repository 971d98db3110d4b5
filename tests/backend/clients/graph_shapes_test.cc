// Graphs with 2^n paths compile in steps that are linear in their instructions, on every device: of
// a graph that doubles with each level anything else does not come to an end.
#include "tests/support/graph_shapes.h"

#include <gtest/gtest.h>

#include "tests/backend/clients/client_test.h"
#include "tests/support/hlo_test.h"

namespace lazuli {
namespace {

constexpr int kLevels = 64;
// The last round of doublings that a value survives as a finite number.
constexpr int kFewLevels = 6;

backend::ExecutableStats StatsOf(const std::string& hlo) {
  const auto executable = CompileOn("cpu", hlo, {.fallback = backend::Fallback::kAllow});
  EXPECT_TRUE(executable.ok()) << executable.status();
  return executable.ok() ? (*executable)->stats() : backend::ExecutableStats();
}

TEST(GraphShapesTest, FlatGraphsTakeLinearlyManyKernels) {
  const std::vector<GraphShape> graphs = FlatGraphs(kLevels), larger = FlatGraphs(2 * kLevels);
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    SCOPED_TRACE(graphs[g].name);
    const backend::ExecutableStats few = StatsOf(graphs[g].hlo), many = StatsOf(larger[g].hlo);
    EXPECT_LE(many.kernels, 2 * few.kernels + 2);
    EXPECT_LE(many.library_calls, 2 * few.library_calls + 2);
    EXPECT_LE(many.temp_bytes, 2 * few.temp_bytes + 4096);
  }
}

TEST(GraphShapesTest, FlatGraphsHaveTheirValues) {
  for (const GraphShape& graph : FlatGraphs(kFewLevels)) {
    SCOPED_TRACE(graph.name);
    if (graph.name == "products") continue;  // an order of sums of their own, squared
    const auto arguments = RandomArguments(*ParseHlo(graph.hlo));
    const auto expected = RunOn("interpreter", graph.hlo, arguments);
    const auto actual = RunOn("cpu", graph.hlo, arguments);
    ASSERT_TRUE(expected.ok() && actual.ok()) << expected.status() << actual.status();
    ExpectSameBits(expected->outputs[0], actual->outputs[0]);
  }
}

TEST(GraphShapesTest, TheNpuCompilesThem) {
  for (const GraphShape& graph : FlatGraphs(kLevels)) {
    SCOPED_TRACE(graph.name);
    const auto executable = CompileOn("npu", graph.hlo, {.op_filter = false});
    EXPECT_TRUE(executable.ok()) << executable.status();
  }
}

// What would run 2^n times is compiled alone.
TEST(GraphShapesTest, NestsOfCallsLoopsAndBranchesCompile) {
  for (const NestedGraph& graph : NestedGraphs(kLevels)) {
    SCOPED_TRACE(graph.name);
    for (const char* const device : {"cpu", "npu"}) {
      const backend::CompileOptions options{.fallback = backend::Fallback::kAllow,
                                            .op_filter = false};
      const auto executable = CompileOn(device, graph.hlo, options);
      ASSERT_TRUE(executable.ok()) << device << ": " << executable.status();
      if (graph.runs_twice) continue;
      const auto arguments = RandomArguments(*ParseHlo(graph.hlo));
      const auto expected = RunOn("interpreter", graph.hlo, arguments);
      const auto actual = RunOn(device, graph.hlo, arguments, options);
      ASSERT_TRUE(expected.ok() && actual.ok()) << expected.status() << actual.status();
      for (std::size_t k = 0; k < expected->outputs.size(); ++k)
        ExpectSameBits(expected->outputs[k], actual->outputs[k]);
    }
  }
}

// A large body that two calls share is one sequence of thunks, which both run.
TEST(GraphShapesTest, ALargeBodyIsCalled) {
  std::string body = "f { x0 = f32[16] parameter(0)\n";
  for (int k = 0; k < 1200; ++k)
    body += "x" + std::to_string(k + 1) + " = f32[16] " + (k % 2 == 0 ? "sine" : "negate") + "(x" +
            std::to_string(k) + ")\n";
  const std::string hlo = body +
                          "ROOT r = (f32[16], f32[16]) tuple(x1200, x0) }\n"
                          "ENTRY e { x = f32[16] parameter(0)\n"
                          "  a = (f32[16], f32[16]) call(x), to_apply=f\n"
                          "  y = f32[16] get-tuple-element(a), index=0\n"
                          "  b = (f32[16], f32[16]) call(y), to_apply=f\n"
                          "  z = f32[16] get-tuple-element(b), index=0\n"
                          "  w = f32[16] get-tuple-element(b), index=1\n"
                          "  ROOT s = (f32[16], f32[16]) tuple(z, w) }";
  const auto arguments = RandomArguments(*ParseHlo(hlo));
  const auto expected = RunOn("interpreter", hlo, arguments);
  const auto actual = RunOn("cpu", hlo, arguments);
  ASSERT_TRUE(expected.ok() && actual.ok()) << expected.status() << actual.status();
  for (std::size_t k = 0; k < 2; ++k) ExpectSameBits(expected->outputs[k], actual->outputs[k]);
  EXPECT_EQ(actual->stats.evaluator_thunks, 0);
}

}  // namespace
}  // namespace lazuli
