#include "lowering/passes/cse.h"

#include <gtest/gtest.h>

#include "tests/support/hlo_test.h"
#include "tests/support/pass_test.h"

namespace lazuli::lowering {
namespace {

TEST(CseTest, MergesEqualAdds) {
  ExpectPass(Cse(), R"(
    ENTRY main {
      p = f32[4] parameter(0)
      // CHECK:      %[[A:.*]] = f32[4] add(%p, %p)
      // CHECK-NOT:  add(
      a = f32[4] add(p, p)
      b = f32[4] add(p, p)
      // CHECK:      ROOT {{.*}} multiply(%[[A]], %[[A]])
      ROOT m = f32[4] multiply(a, b)
    })");
}

TEST(CseTest, MergesChainsInOneRun) {
  ExpectPass(Cse(), R"(
    ENTRY main {
      p = f32[4] parameter(0)
      q = f32[4] parameter(1)
      // CHECK:      %[[A:.*]] = f32[4] add(%p, %q)
      // CHECK-NOT:  add(
      a = f32[4] add(p, q)
      b = f32[4] add(q, p)
      // CHECK:      %[[E:.*]] = f32[4] exponential(%[[A]])
      // CHECK-NOT:  exponential
      ea = f32[4] exponential(a)
      eb = f32[4] exponential(b)
      // CHECK:      ROOT {{.*}} subtract(%[[E]], %[[E]])
      ROOT m = f32[4] subtract(ea, eb)
    })");
}

TEST(CseTest, MergesEqualConstantsAndBroadcasts) {
  ExpectPass(Cse(), R"(
    ENTRY main {
      p = f32[4] parameter(0)
      // CHECK-COUNT-1: constant(
      // CHECK-NOT:     constant(
      c = f32[] constant(2)
      d = f32[] constant(2)
      // CHECK-COUNT-1: broadcast(
      // CHECK-NOT:     broadcast(
      bc = f32[4] broadcast(c), dimensions={}
      bd = f32[4] broadcast(d), dimensions={}
      a = f32[4] add(p, bc)
      ROOT m = f32[4] multiply(a, bd)
    })");
}

TEST(CseTest, ComparesRegionsByWhatTheyCompute) {
  ExpectPass(Cse(), R"(
    sum1 { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
    sum2 { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT z = f32[] add(x, y) }
    max1 { x = f32[] parameter(0)  y = f32[] parameter(1)  ROOT z = f32[] maximum(x, y) }
    ENTRY main {
      p = f32[4] parameter(0)
      z = f32[] constant(0)
      // CHECK-LABEL:   ENTRY
      // CHECK:         to_apply=%sum1
      // CHECK-NOT:     to_apply=%sum2
      // CHECK:         to_apply=%max1
      r = f32[] reduce(p, z), dimensions={0}, to_apply=sum1
      s = f32[] reduce(p, z), dimensions={0}, to_apply=sum2
      t = f32[] reduce(p, z), dimensions={0}, to_apply=max1
      // CHECK:         ROOT {{.*}} tuple(%r, %r, %t)
      ROOT u = (f32[], f32[], f32[]) tuple(r, s, t)
    })");
}

TEST(CseTest, KeepsWhatOnlyLooksEqual) {
  ExpectNoChange(Cse(), R"(
    ENTRY main {
      p = f32[4] parameter(0)
      q = f32[4] parameter(1)
      a = f32[4] subtract(p, q)
      b = f32[4] subtract(q, p)
      c = pred[4] compare(p, q), direction=LT
      d = pred[4] compare(p, q), direction=LE
      z = f32[] constant(0)
      n = f32[] constant(-0.0)
      s = f32[2] slice(p), slice={[0:2]}
      t = f32[2] slice(p), slice={[1:3]}
      ROOT r = (f32[4], f32[4], pred[4], pred[4], f32[], f32[], f32[2], f32[2]) tuple(a, b, c, d, z, n, s, t)
    })");
}

TEST(CseTest, NeverMergesSideEffects) {
  ExpectNoChange(Cse(), R"(
    ENTRY main {
      p = f32[] parameter(0)
      q = f32[] parameter(1)
      a = f32[4] rng(p, q), distribution=rng_uniform
      b = f32[4] rng(p, q), distribution=rng_uniform
      c = f32[4] custom-call(a), custom_call_target="print", custom_call_has_side_effect=true
      d = f32[4] custom-call(a), custom_call_target="print", custom_call_has_side_effect=true
      ROOT r = (f32[4], f32[4], f32[4]) tuple(b, c, d)
    })");
}

TEST(CseTest, MergesInsideRegions) {
  ExpectPass(Cse(), R"(
    body {
      x = f32[] parameter(0)
      // CHECK:      %[[A:.*]] = f32[] add(%x, %x)
      // CHECK-NOT:  add(
      a = f32[] add(x, x)
      b = f32[] add(x, x)
      ROOT m = f32[] multiply(a, b)
    }
    ENTRY main {
      p = f32[] parameter(0)
      ROOT c = f32[] call(p), to_apply=body
    })");
}

// What is computed again behind a barrier is so on purpose.
TEST(CseTest, KeepsBarriersApart) {
  ExpectNoChange(Cse(), R"(
    ENTRY main {
      p = f32[4] parameter(0)
      a = f32[4] opt-barrier(p)
      b = f32[4] opt-barrier(p)
      x = f32[4] negate(a)
      y = f32[4] negate(b)
      ROOT t = (f32[4], f32[4]) tuple(x, y)
    })");
}

}  // namespace
}  // namespace lazuli::lowering
