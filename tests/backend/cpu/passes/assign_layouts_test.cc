#include "backend/cpu/passes/assign_layouts.h"

#include <gtest/gtest.h>

#include "ir/hlo/text/printer.h"
#include "tests/support/hlo_test.h"
#include "tests/support/pass_test.h"

namespace lazuli::cpu {
namespace {

using hlo::Opcode;

int64_t Count(const hlo::Module& module, Opcode opcode) {
  int64_t count = 0;
  for (const auto& i : module.entry()->instructions()) count += i->opcode() == opcode;
  return count;
}

const hlo::Instruction* Find(const hlo::Module& module, std::string_view name) {
  for (const auto& i : module.entry()->instructions()) {
    if (i->name() == name) return i.get();
  }
  return nullptr;
}

TEST(AssignLayoutsTest, ActivationsHaveFeaturesInnermostAndElementwiseWorkFollows) {
  auto module = ParseHlo(R"(
    ENTRY main {
      x = f32[2,3,14,15] parameter(0)
      w = f32[8,3,3,3] parameter(1)
      v = f32[8,8,3,3] parameter(2)
      c = f32[2,8,12,13] convolution(x, w), window={size=3x3}, dim_labels=bf01_oi01->bf01
      t = f32[2,8,12,13] tanh(c)
      ROOT d = f32[2,8,10,11] convolution(t, v), window={size=3x3}, dim_labels=bf01_oi01->bf01
    })");
  const auto changed = AssignLayouts().Run(*module);
  ASSERT_TRUE(changed.ok()) << changed.status();
  EXPECT_TRUE(*changed);
  EXPECT_EQ(Count(*module, Opcode::kCopy), 2) << module->ToString();  // in front of c, behind d
  const Dims features_innermost = {1, 3, 2, 0};
  for (const char* name : {"c", "t", "d"})
    EXPECT_EQ(Find(*module, name)->shape().minor_to_major(), features_innermost) << name;
  EXPECT_FALSE(module->entry()->root()->shape().has_layout());
}

TEST(AssignLayoutsTest, WeightGradientsReadActivationsAsTheyAre) {
  auto module = ParseHlo(R"(
    ENTRY main {
      x = f32[4,3,14,15] parameter(0)
      y = f32[4,8,12,13] parameter(1)
      ROOT d = f32[8,3,3,3] convolution(x, y), window={size=12x13}, dim_labels=fb01_io01->fb01
    })");
  ASSERT_TRUE(AssignLayouts().Run(*module).ok());
  const hlo::Instruction* d = Find(*module, "d");
  const Dims features_innermost = {1, 3, 2, 0};
  EXPECT_EQ(d->operand(0)->shape().minor_to_major(), features_innermost);
  EXPECT_EQ(d->operand(1)->shape().minor_to_major(), features_innermost);
  EXPECT_FALSE(d->shape().has_layout());
}

TEST(AssignLayoutsTest, PoolingTakesTheFirstFixedDimensionForTheBatch) {
  auto module = ParseHlo(R"(
    max { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT m = f32[] maximum(a, b) }
    ENTRY main {
      x = f32[2,9,12,14] parameter(0)
      low = f32[] constant(-inf)
      r = f32[2,9,6,7] reduce-window(x, low), window={size=1x1x2x2 stride=1x1x2x2}, to_apply=max
      ROOT f = f32[2,378] reshape(r)
    })");
  ASSERT_TRUE(AssignLayouts().Run(*module).ok());
  EXPECT_EQ(Find(*module, "r")->shape().minor_to_major(), (Dims{1, 3, 2, 0}));
  EXPECT_EQ(Find(*module, "f")->operand(0)->opcode(), Opcode::kCopy);
}

TEST(AssignLayoutsTest, OneCopyServesAllUsers) {
  auto module = ParseHlo(R"(
    ENTRY main {
      x = f32[2,3,14,15] parameter(0)
      w = f32[8,3,3,3] parameter(1)
      v = f32[8,3,3,3] parameter(2)
      c = f32[2,8,12,13] convolution(x, w), window={size=3x3}, dim_labels=bf01_oi01->bf01
      d = f32[2,8,12,13] convolution(x, v), window={size=3x3}, dim_labels=bf01_oi01->bf01
      s = f32[2,8,12,13] add(c, d)
      ROOT t = (f32[2,8,12,13]) tuple(s)
    })");
  ASSERT_TRUE(AssignLayouts().Run(*module).ok());
  EXPECT_EQ(Count(*module, Opcode::kCopy), 2);
}

TEST(AssignLayoutsTest, LeavesTheRestRowMajor) {
  ExpectNoChange(AssignLayouts(), R"(
    ENTRY main {
      x = f32[2,14] parameter(0)
      y = f32[14,3] parameter(1)
      d = f32[2,3] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT t = f32[2,3] tanh(d)
    })");
}

}  // namespace
}  // namespace lazuli::cpu
