#include "lowering/passes/match.h"

#include <gtest/gtest.h>

#include "tests/support/hlo_test.h"

namespace lazuli::lowering {
namespace {

class MatchTest : public ::testing::Test {
 protected:
  hlo::Instruction* Find(std::string_view name) { return module->entry()->Find(name); }
  std::unique_ptr<hlo::Module> module = ParseHlo(R"(
    ENTRY main {
      p = f32[4] parameter(0)
      c = f32[] constant(2)
      b = f32[4] broadcast(c), dimensions={}
      n = f32[4] negate(p)
      add = f32[4] add(b, n)
      sub = f32[4] subtract(b, n)
      zeros = f32[2] constant({0, 0})
      minus = f32[2] constant({-0.0, -0.0})
      mixed = f32[2] constant({0, 1})
      big = u64[] constant(18446744073709551615)
      ROOT t = (f32[4], f32[4]) tuple(add, sub)
    })");
};

TEST_F(MatchTest, BindsOperands) {
  hlo::Instruction *x = nullptr, *y = nullptr, *i = nullptr;
  EXPECT_TRUE(Match(Find("sub"), m::Subtract(&i, m::Op(&x), m::Negate(m::Op(&y)))));
  EXPECT_EQ(i, Find("sub"));
  EXPECT_EQ(x, Find("b"));
  EXPECT_EQ(y, Find("p"));
  EXPECT_TRUE(Match(Find("sub"), m::Subtract()));
  EXPECT_FALSE(Match(Find("sub"), m::Add()));
}

TEST_F(MatchTest, TriesCommutativeOperandsBothWaysRound) {
  hlo::Instruction* x = nullptr;
  EXPECT_TRUE(Match(Find("add"), m::Add(m::Op(&x), m::Scalar(2))));
  EXPECT_EQ(x, Find("n"));
  EXPECT_FALSE(Match(Find("sub"), m::Subtract(m::Op(&x), m::Scalar(2))));
}

TEST_F(MatchTest, ScalarsAreConstantsOrBroadcastsOfOneValue) {
  EXPECT_TRUE(Match(Find("c"), m::Scalar(2)));
  EXPECT_TRUE(Match(Find("b"), m::Scalar(2)));
  EXPECT_FALSE(Match(Find("b"), m::Scalar(3)));
  EXPECT_FALSE(Match(Find("p"), m::Scalar(0)));
  EXPECT_FALSE(Match(Find("mixed"), m::Splat()));
  EXPECT_FALSE(Match(Find("big"), m::Scalar(-1)));
}

TEST_F(MatchTest, ScalarsTellNegativeZero) {
  EXPECT_TRUE(Match(Find("zeros"), m::Scalar(0.0)));
  EXPECT_FALSE(Match(Find("zeros"), m::Scalar(-0.0)));
  EXPECT_TRUE(Match(Find("minus"), m::Scalar(-0.0)));
  EXPECT_FALSE(Match(Find("minus"), m::Scalar(0.0)));
}

TEST_F(MatchTest, OneUseCountsUsersAndTheRoot) {
  EXPECT_TRUE(Match(Find("c"), m::OneUse(m::Constant())));
  EXPECT_FALSE(Match(Find("n"), m::OneUse(m::Negate())));
  EXPECT_FALSE(Match(Find("t"), m::OneUse(m::Tuple())));
}

}  // namespace
}  // namespace lazuli::lowering
