// Places in the scratchpad: what is said where it does not suffice, and what goes to DRAM before that.

#include "backend/npu/compiler/allocate.h"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/support/status.h"
#include "tests/backend/npu/compiler/compiled.h"

namespace lazuli::npu {
namespace {

using testing::AllOf;
using testing::HasSubstr;

struct Named {
  std::string name;
  int64_t size;
  Space space = Space::kSpm;
};

// Operations that name these buffers.
TileProgram ProgramOf(const std::vector<Named>& buffers, const std::vector<std::vector<int>>& ops) {
  TileProgram program;
  for (const Named& b : buffers) program.buffers.push_back({b.name, b.space, b.size, -1});
  for (const std::vector<int>& names : ops) {
    TileOp& op = program.ops.emplace_back(TileOp{Op::kDmaCp, Queue::kLd0});
    for (std::size_t i = 0; i < names.size(); ++i)
      op.from[i] = {buffers[static_cast<std::size_t>(names[i])].space, names[i], 0, 0, 1};
  }
  return program;
}

TEST(NpuAllocateTest, TheChartSaysWhatLivesWhereSomethingDoesNotFit) {
  Config config;
  config.spm.kb = 1;
  TileProgram program = ProgramOf({{"image", 500}, {"sums", 300}, {"out", 200}, {"early", 100}},
                                  {{3}, {0}, {0, 1}, {1, 2}, {0, 2}});
  EXPECT_EQ(Message(Allocate(config, program)),
            "SPM_OVERFLOW: no room for 200 bytes of out2 at operation 3; what lives there:\n"
            "  image0: 500 bytes, operations 1 to 4\n"
            "  sums1: 300 bytes, operations 2 to 3\n"
            "  out2: 200 bytes, operations 3 to 4");
  config.acc.rows = 8;
  TileProgram rows = ProgramOf({{"sum", 5, Space::kAcc}, {"sum", 4, Space::kAcc}}, {{0}, {0, 1}});
  EXPECT_EQ(Message(Allocate(config, rows)),
            "ACC_OVERFLOW: no room for 4 rows of sum1 at operation 1; what lives there:\n"
            "  sum0: 5 rows, operations 0 to 1\n"
            "  sum1: 4 rows, operations 1 to 1");
}

// Not even one window fits: the chart comes with the error of the compile, from where the placement has it.
TEST(NpuAllocateTest, WhatCannotBeCutSmallEnoughIsAnErrorWithTheChart) {
  Config config;
  config.spm.kb = 1;
  const auto module = ParseHlo(R"(
    add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
    ENTRY e { x = f32[2000] parameter(0) z = f32[] constant(0)
      ROOT y = f32[1000] reduce-window(x, z), window={size=2 rhs_dilate=1000}, to_apply=add })");
  const absl::Status status = CompileSimplified(*module, config).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(Message(status)),
              AllOf(HasSubstr("SPM_OVERFLOW: no room for 4004 bytes of part0 at operation 0; what "
                              "lives there:\n  part0: 4004 bytes, operations 0 to ")));
}

// Two values that are read on both sides of something that needs all of the scratchpad.
TEST(NpuAllocateTest, ValuesAreSpilledWhereSomethingElseNeedsTheRoom) {
  Config config;
  config.spm.kb = 16;
  const auto text = [](int apart) {
    return Str(R"(
    add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT c = f32[] add(a, b) }
    ENTRY e { x = f32[200] parameter(0) w = f32[4200] parameter(1) z = f32[] constant(0)
      a = f32[200] exponential(x) t = f32[] reduce(a, z), dimensions={0}, to_apply=add s = f32[200] broadcast(t), dimensions={}
      b = f32[200] divide(a, s) u = f32[] reduce(b, z), dimensions={0}, to_apply=add v = f32[200] broadcast(u), dimensions={}
      c = f32[200] multiply(b, v) y = f32[)",
               4200 - apart, "] reduce-window(w, z), window={size=2 rhs_dilate=", apart,
               R"(}, to_apply=add
      p = f32[100] slice(y), slice={[0:100]} q = f32[200] concatenate(p, p), dimensions={0}
      d = f32[200] add(b, q) e = f32[200] add(a, q) ROOT r = (f32[200], f32[200], f32[200]) tuple(c, d, e) })");
  };
  CompileReport roomy, tight;
  for (const int apart : {40, 3800})
    ExpectCompiled(text(apart), {.rtol = 1e-4, .atol = 1e-4, .config = config});
  ASSERT_TRUE(CompileSimplified(*ParseHlo(text(40)), config, &roomy).ok());
  ASSERT_TRUE(CompileSimplified(*ParseHlo(text(3800)), config, &tight).ok());
  EXPECT_EQ(roomy.spilled, 0);
  EXPECT_GT(tight.spilled, 0);
  EXPECT_LE(tight.spm_bytes, config.spm_bytes());
}

}  // namespace
}  // namespace lazuli::npu
