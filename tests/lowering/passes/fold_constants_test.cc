#include "lowering/passes/fold_constants.h"

#include <gtest/gtest.h>

#include "tests/support/pass_test.h"

namespace lazuli::lowering {
namespace {

TEST(FoldConstantsTest, EvaluatesChainsOfConstants) {
  ExpectPass(FoldConstants(), R"(
    ENTRY main {
      p = f32[] parameter(0)
      // CHECK-NOT:  multiply
      // CHECK:      %[[C:.*]] = f32[] constant(7)
      a = f32[] constant(2)
      b = f32[] constant(3)
      c = f32[] multiply(a, b)
      one = f32[] constant(1)
      d = f32[] add(c, one)
      // CHECK:      ROOT {{.*}} add(%p, %[[C]])
      ROOT r = f32[] add(p, d)
    })");
}

TEST(FoldConstantsTest, EvaluatesDataMovementAndReductions) {
  ExpectPass(FoldConstants(), R"(
    sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
    ENTRY main {
      x = f32[2,3] constant({{1, 2, 3}, {4, 5, 6}})
      t = f32[3,2] transpose(x), dimensions={1,0}
      s = f32[2,2] slice(t), slice={[1:3], [0:2]}
      z = f32[] constant(0)
      // CHECK-LABEL: ENTRY
      // CHECK:       ROOT {{.*}} = f32[2] constant({7, 9})
      ROOT r = f32[2] reduce(s, z), dimensions={1}, to_apply=sum
    })");
}

TEST(FoldConstantsTest, LeavesBroadcastsAndIotasAlone) {
  ExpectNoChange(FoldConstants(), R"(
    ENTRY main {
      c = f32[] constant(2)
      b = f32[1024] broadcast(c), dimensions={}
      i = f32[1024] iota(), iota_dimension=0
      ROOT r = f32[1024] add(b, i)
    })");
}

TEST(FoldConstantsTest, LeavesLargeResultsAlone) {
  ExpectNoChange(FoldConstants(), R"(
    ENTRY main {
      c = f32[2] constant({1, 2})
      z = f32[] constant(0)
      // 64 KiB and an element
      ROOT r = f32[16385] pad(c, z), padding=0_16383
    })");
}

TEST(FoldConstantsTest, LeavesSideEffectsAlone) {
  ExpectNoChange(FoldConstants(), R"(
    ENTRY main {
      a = f32[] constant(0)
      b = f32[] constant(1)
      ROOT r = f32[4] rng(a, b), distribution=rng_uniform
    })");
}

}  // namespace
}  // namespace lazuli::lowering
