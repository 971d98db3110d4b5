// Dimensions that get their size when a program runs. xla_differential.py compares the same opcodes
// with XLA; here is what it leaves open or refuses.
#include "ir/evaluator/dynamic_sizes.h"

#include <gmock/gmock.h>

#include "tests/ir/evaluator/run.h"

namespace lazuli {
namespace {

using ::testing::HasSubstr;

// A program over d: s32[<=4], the first `n` of 1, 2, 3, 4.
std::string WithSize(int n, const std::string& rest) {
  return R"(
    add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }
    ENTRY e {
      x = s32[4] constant({1, 2, 3, 4})
      n = s32[] constant()" +
         std::to_string(n) + R"()
      d = s32[<=4] set-dimension-size(x, n), dimensions={0}
      zero = s32[] constant(0)
      )" +
         rest + "}";
}

TEST(DynamicSizesTest, WhatIsBeyondTheSizeDoesNotCount) {
  const char* sum = "ROOT r = s32[] reduce(d, zero), dimensions={0}, to_apply=add";
  EXPECT_EQ(EvalText(WithSize(4, sum)), "10");
  EXPECT_EQ(EvalText(WithSize(2, sum)), "3");
  EXPECT_EQ(EvalText(WithSize(0, sum)), "0");
  EXPECT_EQ(EvalText(WithSize(3, "ROOT r = s32[] get-dimension-size(d), dimensions={0}")), "3");
}

TEST(DynamicSizesTest, AProgramGivesArraysOfTheBoundWithZerosBeyondTheSize) {
  EXPECT_EQ(EvalText(WithSize(2, "ROOT r = s32[<=4] add(d, d)")), "{2, 4, 0, 0}");
  EXPECT_EQ(EvalText(WithSize(2, "ROOT r = (s32[<=4], s32[4]) tuple(d, x)")),
            "( {1, 2, 0, 0}, {1, 2, 3, 4} )");
}

TEST(DynamicSizesTest, AStaticDimensionIsFilledUp) {
  EXPECT_EQ(EvalText(WithSize(2, R"(
      s = s32[3] slice(d), slice={[0:3]}
      m = s32[3] not(s)
      ROOT r = s32[3] negate(m))")),
            "{2, 3, 1}");
  EXPECT_EQ(EvalText(WithSize(2, R"(
      four = s32[] constant(4)
      s = s32[4] set-dimension-size(d, four), dimensions={0}
      ROOT r = s32[4] not(s))")),
            "{-2, -3, -1, -1}");
}

TEST(DynamicSizesTest, SizesGoThroughTuplesLoopsBranchesAndCalls) {
  EXPECT_EQ(EvalText(R"(
    add { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }
    more { s = (s32[], s32[<=6]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      three = s32[] constant(3)
      ROOT r = pred[] compare(i, three), direction=LT }
    shrink { s = (s32[], s32[<=6]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      x = s32[<=6] get-tuple-element(s), index=1
      one = s32[] constant(1)
      next = s32[] add(i, one)
      size = s32[] get-dimension-size(x), dimensions={0}
      less = s32[] subtract(size, one)
      y = s32[<=6] set-dimension-size(x, less), dimensions={0}
      ROOT r = (s32[], s32[<=6]) tuple(next, y) }
    double { x = s32[<=6] parameter(0) ROOT r = s32[<=6] add(x, x) }
    same { x = s32[<=6] parameter(0) ROOT r = s32[<=6] copy(x) }
    ENTRY e {
      x = s32[6] constant({1, 2, 3, 4, 5, 6})
      five = s32[] constant(5)
      zero = s32[] constant(0)
      yes = pred[] constant(true)
      d = s32[<=6] set-dimension-size(x, five), dimensions={0}
      init = (s32[], s32[<=6]) tuple(zero, d)
      w = (s32[], s32[<=6]) while(init), condition=more, body=shrink
      two_left = s32[<=6] get-tuple-element(w), index=1
      c = s32[<=6] call(two_left), to_apply=double
      b = s32[<=6] conditional(yes, c, c), true_computation=double, false_computation=same
      ROOT r = s32[] reduce(b, zero), dimensions={0}, to_apply=add })"),
            "12");
}

TEST(DynamicSizesTest, AReshapeKeepsTheElementsThatAreThere) {
  EXPECT_EQ(EvalText(WithSize(2, R"(
      b = s32[3,<=4] broadcast(d), dimensions={1}
      f = s32[<=12] reshape(b)
      s = s32[] get-dimension-size(f), dimensions={0}
      ROOT t = (s32[], s32[<=12]) tuple(s, f))")),
            "( 6, {1, 2, 1, 2, 1, 2, 0, 0, 0, 0, 0, 0} )");
  EXPECT_EQ(EvalText(WithSize(2, R"(
      one = s32[] constant(1)
      ROOT r = s32[1,<=4] dynamic-reshape(d, one, n))")),
            "{ { 1, 2, 0, 0 } }");
}

TEST(DynamicSizesTest, SizesThatDoNotFitAreErrors) {
  const char* whole = "ROOT r = s32[<=4] copy(d)";
  EXPECT_EQ(ErrorOf(WithSize(5, whole)),
            "set-dimension-size %d: size 5 of dimension 0 is not within s32[<=4]");
  EXPECT_EQ(ErrorOf(WithSize(-1, whole)),
            "set-dimension-size %d: size -1 of dimension 0 is not within s32[<=4]");
  EXPECT_EQ(ErrorOf(WithSize(3, "ROOT r = s32[<=2,2] reshape(d)")),
            "reshape %r: reshape of s32[3] (s32[<=4]) to s32[<=2,2]: the number of elements does "
            "not allow it");
  EXPECT_THAT(ErrorOf(WithSize(3, "ROOT r = s32[<=2,<=2] reshape(d)")),
              HasSubstr("of which several sizes are unknown"));
  EXPECT_EQ(ErrorOf(WithSize(3, "ROOT r = s32[1,<=4] dynamic-reshape(d, n, n)")),
            "dynamic-reshape %r: size 3 of dimension 0 is not within s32[1,<=4]");
  EXPECT_THAT(ErrorOf(WithSize(3, R"(
      b = s32[<=4,4] broadcast(d), dimensions={0}
      f = f32[<=4,4] convert(b)
      ROOT r = f32[<=4,4] cholesky(f))")),
              HasSubstr("f32[3,4]"));
}

TEST(DynamicSizesTest, OnlyWhatSetsSizesHasDynamicSizes) {
  EXPECT_TRUE(hlo::HasDynamicSizes(*ParseHlo(WithSize(2, "ROOT r = s32[<=4] copy(d)"))));
  EXPECT_FALSE(hlo::HasDynamicSizes(*ParseHlo("ENTRY e { ROOT p = f32[<=4] parameter(0) }")));
}

}  // namespace
}  // namespace lazuli
