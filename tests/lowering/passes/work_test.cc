// Passes take time that is linear in a graph, whatever its shape. Counted in blocks of their code
// that run: the passes of this program are compiled with calls of the function below (CMakeLists.txt).
#include <cstdint>
#include <memory>

#include <gtest/gtest.h>

#include "lowering/passes/fuse.h"
#include "lowering/passes/fuse_loops.h"
#include "lowering/passes/pipelines.h"
#include "lowering/passes/reduce_vector_products.h"
#include "lowering/passes/split_complex_products.h"
#include "lowering/passes/unroll_reductions.h"
#include "lowering/passes/widen_products.h"
#include "tests/support/graph_shapes.h"
#include "tests/support/hlo_test.h"

namespace {
std::int64_t blocks = 0;
}  // namespace

extern "C" void __sanitizer_cov_trace_pc();
extern "C" void __sanitizer_cov_trace_pc() { ++blocks; }

namespace lazuli::lowering {
namespace {

bool IsKernel(const hlo::Instruction& i) {
  switch (i.opcode()) {
    case hlo::Opcode::kBroadcast:
    case hlo::Opcode::kTranspose:
    case hlo::Opcode::kSlice:
    case hlo::Opcode::kReverse:
    case hlo::Opcode::kReduce:
      return true;
    case hlo::Opcode::kConstant:
      return i.shape().IsScalar();
    default:
      return i.IsElementwise();
  }
}

// Blocks that the passes run, all that devices use.
std::int64_t WorkOn(const std::string& hlo) {
  const FusionTarget target{.device = "cpu",
                            .supports = IsKernel,
                            .supports_loop = [](const hlo::Computation&) { return true; },
                            .max_args = 64};
  PassPipeline pipeline("all");
  AddSimplificationPipeline(pipeline);
  pipeline.Add<FuseLoops>(target);
  pipeline.Add<SplitComplexProducts>();
  pipeline.Add<WidenProducts>();
  pipeline.Add<ReduceVectorProducts>();
  pipeline.Add<UnrollReductions>();
  pipeline.Add<Fuse>(target);
  const auto module = ParseHlo(hlo);
  const std::int64_t before = blocks;
  const absl::StatusOr<bool> changed = pipeline.Run(*module);
  EXPECT_TRUE(changed.ok()) << changed.status();
  return blocks - before;
}

// A quadratic pass would take four times the work for twice the graph.
constexpr double kLinear = 2.6;

TEST(WorkTest, BlocksAreCounted) {
  const std::int64_t few = WorkOn(FlatGraphs(10)[0].hlo);
  EXPECT_GT(few, 1000);
}

TEST(WorkTest, IsLinearInFlatGraphs) {
  constexpr int kSize = 200;
  const std::vector<GraphShape> graphs = FlatGraphs(kSize), larger = FlatGraphs(2 * kSize);
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    const auto few = static_cast<double>(WorkOn(graphs[g].hlo)),
               many = static_cast<double>(WorkOn(larger[g].hlo));
    EXPECT_LT(many, kLinear * few) << graphs[g].name << ": " << few << ", then " << many;
  }
}

TEST(WorkTest, IsLinearInNests) {
  constexpr int kLevels = 40;
  const std::vector<NestedGraph> graphs = NestedGraphs(kLevels), larger = NestedGraphs(2 * kLevels);
  for (std::size_t g = 0; g < graphs.size(); ++g) {
    const auto few = static_cast<double>(WorkOn(graphs[g].hlo)),
               many = static_cast<double>(WorkOn(larger[g].hlo));
    EXPECT_LT(many, kLinear * few) << graphs[g].name << ": " << few << ", then " << many;
  }
}

}  // namespace
}  // namespace lazuli::lowering
