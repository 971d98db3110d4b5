#include "lowering/passes/split_complex_products.h"

#include <gtest/gtest.h>

#include "tests/support/pass_test.h"

namespace lazuli::lowering {
namespace {

// One term in each sum, so that the order of the additions does not matter.
TEST(SplitComplexProductsTest, LargeProductsAreFourRealOnes) {
  ExpectPass(SplitComplexProducts(), R"(
    ENTRY main {
      a = c64[512,1] parameter(0)
      b = c64[1,512] parameter(1)
      // CHECK-DAG:  [[AR:%[a-z.0-9]+]] = f32[512,1] real(%a)
      // CHECK-DAG:  [[AI:%[a-z.0-9]+]] = f32[512,1] imag(%a)
      // CHECK-DAG:  [[BR:%[a-z.0-9]+]] = f32[1,512] real(%b)
      // CHECK-DAG:  [[BI:%[a-z.0-9]+]] = f32[1,512] imag(%b)
      // CHECK-DAG:  [[RR:%[a-z.0-9]+]] = f32[512,512] dot([[AR]], [[BR]])
      // CHECK-DAG:  [[II:%[a-z.0-9]+]] = f32[512,512] dot([[AI]], [[BI]])
      // CHECK-DAG:  [[RI:%[a-z.0-9]+]] = f32[512,512] dot([[AR]], [[BI]])
      // CHECK-DAG:  [[IR:%[a-z.0-9]+]] = f32[512,512] dot([[AI]], [[BR]])
      // CHECK-DAG:  [[RE:%[a-z.0-9]+]] = f32[512,512] subtract([[RR]], [[II]])
      // CHECK-DAG:  [[IM:%[a-z.0-9]+]] = f32[512,512] add([[RI]], [[IR]])
      // CHECK:      ROOT {{.*}} = c64[512,512] complex([[RE]], [[IM]])
      ROOT d = c64[512,512] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    })");
}

TEST(SplitComplexProductsTest, SmallOnesAndOtherTypesStay) {
  ExpectNoChange(SplitComplexProducts(), R"(
    ENTRY main {
      a = c64[4,8] parameter(0)
      b = c64[8,3] parameter(1)
      d = c64[4,3] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      p = c128[64,64] parameter(2)
      e = c128[64,64] dot(p, p), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      q = f32[64,64] parameter(3)
      f = f32[64,64] dot(q, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT t = (c64[4,3], c128[64,64], f32[64,64]) tuple(d, e, f)
    })");
}

}  // namespace
}  // namespace lazuli::lowering
