#include "lowering/passes/join_products.h"

#include <gtest/gtest.h>

#include "tests/support/pass_test.h"

namespace lazuli::lowering {
namespace {

// Of integers, whose sums do not depend on the order.
TEST(JoinProductsTest, ASumOfProductsIsOneProduct) {
  ExpectPass(JoinProducts(), R"(
    ENTRY main {
      // CHECK:     concatenate(%a1, %a2, %a3, %a4), dimensions={0}
      // CHECK:     concatenate(%b1, %b2, %b3, %b4), dimensions={0}
      // CHECK:     %[[DOT:d1.*]] = s32[8,9] dot({{.*}}), lhs_contracting_dims={0}, rhs_contracting_dims={0}
      // CHECK-NOT: dot(
      // CHECK:     add(%x, %[[DOT]])
      a1 = s32[2,8] parameter(0)
      b1 = s32[2,9] parameter(1)
      a2 = s32[2,8] parameter(2)
      b2 = s32[2,9] parameter(3)
      a3 = s32[2,8] parameter(4)
      b3 = s32[2,9] parameter(5)
      a4 = s32[2,8] parameter(6)
      b4 = s32[2,9] parameter(7)
      x = s32[8,9] parameter(8)
      d1 = s32[8,9] dot(a1, b1), lhs_contracting_dims={0}, rhs_contracting_dims={0}
      d2 = s32[8,9] dot(a2, b2), lhs_contracting_dims={0}, rhs_contracting_dims={0}
      d3 = s32[8,9] dot(a3, b3), lhs_contracting_dims={0}, rhs_contracting_dims={0}
      d4 = s32[8,9] dot(a4, b4), lhs_contracting_dims={0}, rhs_contracting_dims={0}
      part1 = s32[8,9] add(d1, d2)
      part2 = s32[8,9] add(part1, x)
      part3 = s32[8,9] add(d3, d4)
      ROOT s = s32[8,9] add(part2, part3)
    })");
}

// A sum of three, and one whose terms something else needs.
TEST(JoinProductsTest, NotFewAndNotWhatIsNeededElsewhere) {
  ExpectNoChange(JoinProducts(), R"(
    ENTRY main {
      a = f32[2,8] parameter(0)
      b = f32[2,9] parameter(1)
      d1 = f32[8,9] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}
      d2 = f32[8,9] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}
      d3 = f32[8,9] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}
      d4 = f32[8,9] dot(a, b), lhs_contracting_dims={0}, rhs_contracting_dims={0}
      part1 = f32[8,9] add(d1, d2)
      part2 = f32[8,9] add(d3, d4)
      s = f32[8,9] add(part1, part2)
      ROOT t = (f32[8,9], f32[8,9]) tuple(s, d4)
    })");
}

// The factors would cost more than what they make.
TEST(JoinProductsTest, NotLongOnes) {
  ExpectNoChange(JoinProducts(), R"(
    ENTRY main {
      a = f32[8,90] parameter(0)
      b = f32[90,8] parameter(1)
      d1 = f32[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      d2 = f32[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      d3 = f32[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      d4 = f32[8,8] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      part1 = f32[8,8] add(d1, d2)
      part2 = f32[8,8] add(d3, d4)
      ROOT s = f32[8,8] add(part1, part2)
    })");
}

}  // namespace
}  // namespace lazuli::lowering
