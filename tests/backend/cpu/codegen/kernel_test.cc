#include "backend/cpu/codegen/kernel.h"

#include <gtest/gtest.h>

#include "ir/support/metrics.h"
#include "tests/support/hlo_test.h"

namespace lazuli::cpu {
namespace {

std::vector<const hlo::Instruction*> Fusions(const hlo::Module& module) {
  std::vector<const hlo::Instruction*> fusions;
  for (const hlo::Instruction* i : module.entry()->PostOrder())
    if (i->opcode() == hlo::Opcode::kFusion) fusions.push_back(i);
  return fusions;
}

std::vector<std::shared_ptr<const Kernel>> Compile(
    const std::vector<const hlo::Instruction*>& fusions) {
  std::vector<const hlo::Computation*> bodies;
  for (const hlo::Instruction* fusion : fusions) bodies.push_back(fusion->to_apply());
  auto kernels = CompileKernels(bodies);
  EXPECT_TRUE(kernels.ok()) << kernels.status();
  return *std::move(kernels);
}

TEST(KernelTest, BodiesThatDifferInNamesAloneAreCompiledOnce) {
  const auto module = ParseHlo(R"(
    first { a = f32[77] parameter(0)  b = f32[77] parameter(1)  ROOT c = f32[77] add(a, b) }
    second { x = f32[77] parameter(0)  y = f32[77] parameter(1)  ROOT z = f32[77] add(x, y) }
    third { x = f32[77] parameter(0)  y = f32[77] parameter(1)  ROOT z = f32[77] add(y, x) }
    ENTRY main {
      p = f32[77] parameter(0)
      q = f32[77] parameter(1)
      f = f32[77] fusion(p, q), kind=kLoop, calls=first
      g = f32[77] fusion(f, q), kind=kLoop, calls=second
      ROOT h = f32[77] fusion(g, p), kind=kLoop, calls=third
    })");
  const int64_t before = ir::Get(ir::Counter::kKernels);
  const auto kernels = Compile(Fusions(*module));
  ASSERT_EQ(kernels.size(), 3U);
  EXPECT_EQ(kernels[0], kernels[1]);
  EXPECT_NE(kernels[0], kernels[2]);
  EXPECT_EQ(ir::Get(ir::Counter::kKernels) - before, 2);
  // As long as somebody holds it, nobody compiles it again.
  EXPECT_EQ(Compile(Fusions(*module))[0], kernels[0]);
  EXPECT_EQ(ir::Get(ir::Counter::kKernels) - before, 2);
}

std::unique_ptr<Thunk> ThunkOf(const hlo::Module& module) {
  const auto fusions = Fusions(module);
  std::vector<BufferId> operands;
  for (int64_t k = 0; k < fusions[0]->operand_count(); ++k)
    operands.push_back(static_cast<BufferId>(k));
  return MakeKernelThunk(*fusions[0], Compile(fusions)[0], operands, {100}, -1);
}

TEST(KernelTest, ElementwiseWorkSplitsAlongTheOutermostDimension) {
  const auto module = ParseHlo(R"(
    body {
      x = f32[6,5,7]{1,2,0} parameter(0)
      bias = f32[5] parameter(1)
      b = f32[6,5,7]{1,2,0} broadcast(bias), dimensions={1}
      ROOT r = f32[6,5,7]{1,2,0} add(x, b)
    }
    ENTRY main {
      p = f32[6,5,7]{1,2,0} parameter(0)
      q = f32[5] parameter(1)
      ROOT f = f32[6,5,7]{1,2,0} fusion(p, q), kind=kLoop, calls=body
    })");
  const auto thunk = ThunkOf(*module);
  EXPECT_TRUE(thunk->CanSplit(3));
  EXPECT_FALSE(thunk->CanSplit(4));
  EXPECT_TRUE(thunk->uses()[0].by_part);
  EXPECT_FALSE(thunk->uses()[1].by_part);  // every part needs all of the bias
  EXPECT_TRUE(thunk->uses()[2].by_part);
}

TEST(KernelTest, WhatIsReadTheOtherWayRoundIsReadAsAWhole) {
  const auto module = ParseHlo(R"(
    body {
      x = f32[6,8] parameter(0)
      y = f32[6,8] parameter(1)
      r = f32[6,8] reverse(x), dimensions={0}
      ROOT s = f32[6,8] add(r, y)
    }
    ENTRY main {
      p = f32[6,8] parameter(0)
      q = f32[6,8] parameter(1)
      ROOT f = f32[6,8] fusion(p, q), kind=kLoop, calls=body
    })");
  const auto thunk = ThunkOf(*module);
  EXPECT_TRUE(thunk->CanSplit(2));
  EXPECT_FALSE(thunk->uses()[0].by_part);
  EXPECT_TRUE(thunk->uses()[1].by_part);
}

TEST(KernelTest, AReductionDoesNotSplit) {
  const auto module = ParseHlo(R"(
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
    body {
      x = f32[6,8] parameter(0)
      zero = f32[] constant(0)
      ROOT r = f32[8] reduce(x, zero), dimensions={0}, to_apply=add
    }
    ENTRY main {
      p = f32[6,8] parameter(0)
      ROOT f = f32[8] fusion(p), kind=kInput, calls=body
    })");
  EXPECT_FALSE(ThunkOf(*module)->CanSplit(2));
}

#ifdef __SANITIZE_ADDRESS__
TEST(KernelDeathTest, ReadingBehindAnArrayIsSeen) {
  const auto module = ParseHlo(R"(
    body {
      x = f32[100] parameter(0)
      ROOT r = f32[100] negate(x)
    }
    ENTRY main {
      p = f32[100] parameter(0)
      ROOT f = f32[100] fusion(p), kind=kLoop, calls=body
    })");
  const auto thunk = ThunkOf(*module);
  std::vector<float> from(99), to(100);
  std::vector<std::byte*> table(101);
  table[0] = reinterpret_cast<std::byte*>(from.data());
  table[100] = reinterpret_cast<std::byte*>(to.data());
  EXPECT_DEATH(thunk->Execute({table.data()}).IgnoreError(), "heap-buffer-overflow");
}
#endif

}  // namespace
}  // namespace lazuli::cpu
