#include "lazy/debug/memory_report.h"

#include "backend/cpu/codegen/kernel.h"
#include "backend/cpu/cpu_client.h"
#include "ir/support/flags.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

TEST(MemoryReportTest, APlatformWithoutAProgram) {
  GetProgramCache().Clear();
  const backend::Device device = TestDevice(1);
  EXPECT_THAT(MemoryReport(device),
              testing::MatchesRegex("interpreter:1: .* in use, .* at most, 0 bytes cached, no "
                                    "limit\n"));
  ASSERT_TRUE(ir::SetFlag("LAZULI_MEMORY_LIMIT", "3M").ok());
  EXPECT_THAT(MemoryReport(device), testing::HasSubstr("cached, limit 3.0 MiB\n"));
  ASSERT_TRUE(ir::SetFlag("LAZULI_MEMORY_LIMIT", "0").ok());
}

TEST(MemoryReportTest, TheSumsOfAProgramAndItsLargestArrays) {
  const Tensor w = FromLiteral(Literal(Shape(DType::kF32, {64, 32})), TestDevice());
  w.storage().set_name("fc.weight");
  Tensor y;
  {
    const SiteScope site(ir::InternSite("train.cc", "main", 7));
    y = Add(Floats({1, 2, 3}), Slot(1));
    Assign("add_", w, w + w);
  }
  ASSERT_TRUE(Sync().ok());
  const CachedProgramPtr program = LastProgram();
  EXPECT_EQ(ProgramMemoryText(*program),
            Str(program->name(),
                ": planned peak 16.0 KiB\n"
                "  updated in place     8.0 KiB  1 arrays\n"
                "  inputs              12 bytes  1 arrays\n"
                "  results             12 bytes  1 arrays\n"
                "  scratch              0 bytes  0 bytes of it hold values at one time\n"
                "  the largest arrays\n"
                "       8.0 KiB  f32[64,32]            updated  fc.weight\n"
                "      12 bytes  f32[3]                input    train.cc:7\n"
                "      12 bytes  f32[3]                result   train.cc:7\n"
                "  not taken over\n"
                "      12 bytes  f32[3]                train.cc:7: no result is written over it: "
                "x.add_(y) would be, x = x + y is a new tensor\n"));
}

TEST(MemoryReportTest, AnInputThatAResultMightReplaceIsNamed) {
  const Tensor x = FromLiteral(Literal(Shape(DType::kF32, {64, 32})), TestDevice());
  const Tensor y = x + x;
  ASSERT_TRUE(Sync().ok());
  EXPECT_THAT(
      ProgramMemoryText(*LastProgram()),
      testing::HasSubstr("  not taken over\n"
                         "       8.0 KiB  f32[64,32]            : no result is written over "
                         "it: x.add_(y) would be, x = x + y is a new tensor\n"));
}

// relu() is written over the product, which it is the last to read.
TEST(MemoryReportTest, MemoryThatIsWrittenOverInPlaceCountsOnce) {
  if (!cpu::KernelsAvailable()) GTEST_SKIP() << "kernels write in place, which need LLVM";
  TestDevice();  // makes an engine
  cpu::RegisterCpu();
  const backend::Device device{*backend::FindClient("cpu"), 0};
  const Tensor x = FromLiteral(Literal(Shape(DType::kF32, {256, 256})), device);
  const Tensor y = Matmul(Relu(Matmul(x, x)), x);
  ASSERT_TRUE(Sync().ok());
  const CachedProgramPtr program = LastProgram();
  const MemoryPlan& plan = program->memory;
  EXPECT_EQ(plan.count(MemoryPlan::Role::kResult), 1);
  const MemoryTimeline timeline = TimelineOf(*program);
  ASSERT_EQ(timeline.steps.size(), 3u);
  EXPECT_EQ(timeline.bytes[timeline.peak()],
            plan.argument_bytes() + plan.output_bytes + x.shape().byte_size());
}

TEST(MemoryReportTest, WhoKeepsALeafFromBeingTakenOver) {
  const Tensor w = FromLiteral(Literal(Shape(DType::kF32, {48, 32})), TestDevice());
  w.storage().set_name("w");
  const auto step = [&] {
    Assign("add_", w, w + w);
    ASSERT_TRUE(Sync().ok());
  };
  step();
  EXPECT_EQ(PlannedArrays(*LastProgram())[0].donation, "taken over");
  const Tensor snapshot(Context::Current().Snapshot(w.storage()));
  step();
  EXPECT_EQ(PlannedArrays(*LastProgram())[0].donation,
            "a tensor or another graph holds its elements, too");
  EXPECT_EQ(LastProgram()->runs, 2);
}

TEST(MemoryReportTest, TheProgramThatNeedsTheMostIsTheReports) {
  const Tensor x = FromLiteral(Literal(Shape(DType::kF32, {512, 512})), TestDevice());
  Tensor y = x * x;
  ASSERT_TRUE(Sync().ok());
  const CachedProgramPtr large = LastProgram();
  y = Floats({1, 2, 3}) * Floats({1, 2, 3});
  ASSERT_TRUE(Sync().ok());
  EXPECT_EQ(ProgramsByMemory(TestDevice())[0], large);
  EXPECT_THAT(MemoryReport(TestDevice()),
              testing::HasSubstr(Str("\n", large->name(), ": planned peak 2.0 MiB\n")));
  // All devices of a platform run what one compile made.
  EXPECT_EQ(ProgramsByMemory(TestDevice(1))[0], large);
}

TEST(LiveTensorsTest, WhatWasMadeAfterAMarkAndIsAlive) {
  MarkTensors();
  const Tensor before = Floats({1, 2});
  const uint64_t mark = MarkTensors();
  std::vector<Tensor> kept;
  {
    const SiteScope site(ir::InternSite("leak.cc", "main", 3));
    for (int i = 0; i < 3; ++i) {
      const Tensor gone = Floats({1, 2, 3, 4});
      kept.push_back(gone + gone);
    }
  }
  const std::vector<LiveTensors> alive = TensorsSince(mark);
  ASSERT_EQ(alive.size(), 1u);
  EXPECT_EQ(alive[0].count, 3);
  EXPECT_EQ(alive[0].bytes, 3 * 16);
  EXPECT_EQ(LiveTensorsText(alive), "    48 bytes       3 of f32[4]                leak.cc:3\n");
  kept.clear();
  EXPECT_TRUE(TensorsSince(mark).empty());
}

}  // namespace
}  // namespace lazuli::lazy
