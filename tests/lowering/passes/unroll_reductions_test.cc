#include "lowering/passes/unroll_reductions.h"

#include <gtest/gtest.h>

#include "tests/support/pass_test.h"

namespace lazuli::lowering {
namespace {

constexpr char kAdd[] = R"(
    add {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT r = f32[] add(a, b)
    })";

TEST(UnrollReductionsTest, LanesThenATree) {
  ExpectPass(UnrollReductions(), std::string(kAdd) + R"(
    ENTRY main {
      // CHECK:      %[[ZERO:.*]] = f32[2] broadcast(
      // CHECK:      %[[S0:.*]] = f32[1,2] slice(%x), slice={[0:1], [0:2]}
      // CHECK-NEXT: %[[X0:.*]] = f32[2] reshape(%[[S0]])
      // CHECK-NEXT: %[[L0:.*]] = f32[2] add(%[[ZERO]], %[[X0]])
      // CHECK:      slice={[4:5], [0:2]}
      // CHECK:      %[[L4:.*]] = f32[2] add(%[[ZERO]],
      // CHECK:      add(%[[L0]], %[[L4]])
      // CHECK-NOT:  reduce(
      x = f32[5,2] parameter(0)
      zero = f32[] constant(0)
      ROOT sum = f32[2] reduce(x, zero), dimensions={0}, to_apply=add
    })");
}

TEST(UnrollReductionsTest, TermsOfADotInOrder) {
  ExpectPass(UnrollReductions(), R"(
    ENTRY main {
      // CHECK:      slice(%x), slice={[0:2], [0:1], [0:3]}
      // CHECK:      %[[P0:.*]] = f32[2,3,4] multiply(
      // CHECK:      slice(%x), slice={[0:2], [1:2], [0:3]}
      // CHECK:      %[[P1:.*]] = f32[2,3,4] multiply(
      // CHECK:      ROOT {{.*}} add(%[[P0]], %[[P1]])
      x = f32[2,2,3] parameter(0)
      y = f32[4,2,2] parameter(1)
      ROOT d = f32[2,3,4] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={2}, lhs_contracting_dims={1}, rhs_contracting_dims={1}
    })");
}

TEST(UnrollReductionsTest, WhatIsLargeOrNoMonoidStays) {
  ExpectNoChange(UnrollReductions(), std::string(kAdd) + R"(
    difference {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT r = f32[] subtract(a, b)
    }
    ENTRY main {
      x = f32[17] parameter(0)
      y = f32[3] parameter(1)
      z = f32[5,5] parameter(2)
      zero = f32[] constant(0)
      long = f32[] reduce(x, zero), dimensions={0}, to_apply=add
      left = f32[] reduce(y, zero), dimensions={0}, to_apply=difference
      d = f32[5,5] dot(z, z), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT t = (f32[], f32[], f32[5,5]) tuple(long, left, d)
    })");
}

}  // namespace
}  // namespace lazuli::lowering
