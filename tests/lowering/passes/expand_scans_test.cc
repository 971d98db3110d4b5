#include "lowering/passes/expand_scans.h"

#include <gtest/gtest.h>

#include "tests/support/pass_test.h"

namespace lazuli::lowering {
namespace {

TEST(ExpandScansTest, AScanIsALoopOverItsPositions) {
  ExpectPass(ExpandScans(), R"(
    step {
      x = f32[3] parameter(0)
      sum = f32[3] parameter(1)
      new_sum = f32[3] add(x, sum)
      less = pred[3] compare(x, sum), direction=LT
      ROOT r = (pred[3], f32[3], f32[3]) tuple(less, x, new_sum)
    }
    // CHECK: %scan_body
    // CHECK:   dynamic-slice(
    // CHECK:   call(
    // CHECK:   dynamic-update-slice(
    // CHECK: %scan_condition
    // CHECK:   constant(5)
    // CHECK-NOT: scan(
    // CHECK: while(
    ENTRY main {
      x = f32[3,5] parameter(0)
      sum = f32[3] parameter(1)
      ROOT s = (pred[3,5], f32[3,5], f32[3]) scan(x, sum), dimensions={1}, num_carries=1, to_apply=step
    })");
}

TEST(ExpandScansTest, AReversedScanBeginsAtTheEnd) {
  ExpectPass(ExpandScans(), R"(
    step {
      x = f32[] parameter(0)
      sum = f32[] parameter(1)
      half = f32[] constant(0.5)
      scaled = f32[] multiply(sum, half)
      new_sum = f32[] add(x, scaled)
      ROOT r = (f32[], f32[]) tuple(new_sum, new_sum)
    }
    // CHECK: subtract(
    ENTRY main {
      x = f32[6] parameter(0)
      sum = f32[] parameter(1)
      ROOT s = (f32[6], f32[]) scan(x, sum), dimensions={0}, is_reverse=true, num_carries=1, to_apply=step
    })");
}

TEST(ExpandScansTest, WithoutPositionsThereIsNoLoop) {
  ExpectPass(ExpandScans(), R"(
    step {
      x = f32[2] parameter(0)
      sum = s32[] parameter(1)
      ROOT r = (f32[2], s32[]) tuple(x, sum)
    }
    // CHECK: ENTRY
    // CHECK-NOT: while(
    ENTRY main {
      x = f32[0,2] parameter(0)
      sum = s32[] parameter(1)
      ROOT s = (f32[0,2], s32[]) scan(x, sum), dimensions={0}, num_carries=1, to_apply=step
    })");
}

TEST(ExpandScansTest, AScanInAScanIsALoopInALoop) {
  ExpectPass(ExpandScans(), R"(
    inner {
      x = f32[] parameter(0)
      sum = f32[] parameter(1)
      new_sum = f32[] add(x, sum)
      ROOT r = (f32[], f32[]) tuple(new_sum, new_sum)
    }
    outer {
      x = f32[4] parameter(0)
      sum = f32[] parameter(1)
      ROOT s = (f32[4], f32[]) scan(x, sum), dimensions={0}, num_carries=1, to_apply=inner
    }
    // CHECK: while(
    // CHECK: while(
    ENTRY main {
      x = f32[4,5] parameter(0)
      sum = f32[] parameter(1)
      ROOT s = (f32[4,5], f32[]) scan(x, sum), dimensions={1}, num_carries=1, to_apply=outer
    })");
}

}  // namespace
}  // namespace lazuli::lowering
