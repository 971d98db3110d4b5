#include "lowering/passes/dce.h"

#include <gtest/gtest.h>

#include "tests/support/hlo_test.h"
#include "tests/support/pass_test.h"

namespace lazuli::lowering {
namespace {

TEST(DceTest, RemovesWhatTheRootDoesNotNeed) {
  ExpectPass(Dce(), R"(
    ENTRY main {
      // CHECK:      %p = f32[4] parameter(0)
      p = f32[4] parameter(0)
      // CHECK-NEXT: %q = f32[4] parameter(1)
      q = f32[4] parameter(1)
      a = f32[4] add(p, q)
      b = f32[4] multiply(a, a)
      // CHECK-NEXT: ROOT %r = f32[4] negate(%p)
      ROOT r = f32[4] negate(p)
    })");
}

TEST(DceTest, RemovesComputationsThatTheEntryDoesNotReach) {
  const auto module = ParseHlo(R"(
    inner { x = f32[] parameter(0)  ROOT n = f32[] negate(x) }
    outer { x = f32[] parameter(0)  ROOT c = f32[] call(x), to_apply=inner }
    used { x = f32[] parameter(0)  ROOT n = f32[] abs(x) }
    ENTRY main {
      p = f32[] parameter(0)
      dead = f32[] call(p), to_apply=outer
      ROOT c = f32[] call(p), to_apply=used
    })");
  const auto changed = Dce().Run(*module);
  ASSERT_TRUE(changed.ok());
  EXPECT_TRUE(*changed);
  EXPECT_EQ(module->computations().size(), 2u);
  EXPECT_FALSE(*Dce().Run(*module));
}

TEST(DceTest, KeepsSideEffectsAndWhatTheyRead) {
  ExpectNoChange(Dce(), R"(
    ENTRY main {
      p = f32[4] parameter(0)
      a = f32[4] add(p, p)
      t = f32[4] custom-call(a), custom_call_target="print", custom_call_has_side_effect=true
      ROOT r = f32[4] negate(p)
    })");
}

TEST(DceTest, RemovesABarrierThatNobodyReads) {
  ExpectPass(Dce(), R"(
    // CHECK-NOT: add(
    // CHECK:     opt-barrier(%b)
    // CHECK-NOT: opt-barrier(
    ENTRY main {
      p = f32[4] parameter(0)
      a = f32[4] add(p, p)
      unread = f32[4] opt-barrier(a)
      b = f32[4] multiply(p, p)
      read = f32[4] opt-barrier(b)
      ROOT r = f32[4] negate(read)
    })");
}

TEST(DceTest, KeepsElementsOfTuplesThatNobodyAsksFor) {
  ExpectNoChange(Dce(), R"(
    ENTRY main {
      p = f32[4] parameter(0)
      a = f32[4] add(p, p)
      t = (f32[4], f32[4]) tuple(a, p)
      ROOT r = f32[4] get-tuple-element(t), index=1
    })");
}

// A barrier is no side effect: what calls one goes like anything else.
TEST(DceTest, ALoopWithABarrierInItGoesWhenNobodyReadsIt) {
  ExpectPass(Dce(), R"(
    body {
      s = (s32[], f32[4]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      x = f32[4] get-tuple-element(s), index=1
      one = s32[] constant(1)
      next = s32[] add(i, one)
      y = f32[4] opt-barrier(x)
      ROOT t = (s32[], f32[4]) tuple(next, y)
    }
    condition {
      s = (s32[], f32[4]) parameter(0)
      i = s32[] get-tuple-element(s), index=0
      ten = s32[] constant(10)
      ROOT less = pred[] compare(i, ten), direction=LT
    }
    ENTRY main {
      x = f32[4] parameter(0)
      zero = s32[] constant(0)
      t = (s32[], f32[4]) tuple(zero, x)
      // CHECK-NOT: while(
      w = (s32[], f32[4]) while(t), condition=condition, body=body
      ROOT r = f32[4] negate(x)
    })");
}

}  // namespace
}  // namespace lazuli::lowering
