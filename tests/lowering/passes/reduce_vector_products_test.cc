#include "lowering/passes/reduce_vector_products.h"

#include <gtest/gtest.h>

#include "tests/support/pass_test.h"

namespace lazuli::lowering {
namespace {

TEST(ReduceVectorProductsTest, AnInnerProductIsAReduction) {
  ExpectPass(ReduceVectorProducts(), R"(
    ENTRY main {
      x = f32[2] parameter(0)
      y = f32[2] parameter(1)
      // CHECK:      [[P:%[a-z.0-9]+]] = f32[2] multiply(%x, %y)
      // CHECK:      ROOT {{.*}} = f32[] reduce([[P]], {{.*}}), dimensions={0}
      ROOT d = f32[] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
    })");
}

TEST(ReduceVectorProductsTest, BatchesOfThemWithDimensionsOfOne) {
  ExpectPass(ReduceVectorProducts(), R"(
    ENTRY main {
      x = f64[5,1,2] parameter(0)
      y = f64[5,2,1] parameter(1)
      // CHECK:      [[P:%[a-z.0-9]+]] = f64[5,2] multiply(
      // CHECK:      [[R:%[a-z.0-9]+]] = f64[5] reduce([[P]], {{.*}}), dimensions={1}
      // CHECK:      ROOT {{.*}} = f64[5,1,1] reshape([[R]])
      ROOT d = f64[5,1,1] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0},
               lhs_contracting_dims={2}, rhs_contracting_dims={1}
    })");
}

TEST(ReduceVectorProductsTest, DimensionsArePairedAsTheAttributesSay) {
  ExpectPass(ReduceVectorProducts(), R"(
    ENTRY main {
      x = f32[2,4,1] parameter(0)
      y = f32[1,4,2] parameter(1)
      // CHECK:      [[T:%[a-z.0-9]+]] = f32[2,4,1] transpose(%y), dimensions={2,1,0}
      // CHECK:      [[P:%[a-z.0-9]+]] = f32[2,4,1] multiply(%x, [[T]])
      // CHECK:      ROOT {{.*}} = f32[4] reduce([[P]], {{.*}}), dimensions={0,2}
      ROOT d = f32[4] dot(x, y), lhs_batch_dims={1}, rhs_batch_dims={1},
               lhs_contracting_dims={2,0}, rhs_contracting_dims={0,2}
    })");
}

TEST(ReduceVectorProductsTest, OuterProductsAreMultiplications) {
  ExpectPass(ReduceVectorProducts(), R"(
    ENTRY main {
      x = f32[64,30,1] parameter(0)
      y = f32[64,1,40] parameter(1)
      // CHECK:      [[X:%[a-z.0-9]+]] = f32[64,30,40] broadcast({{.*}}), dimensions={0,1}
      // CHECK:      [[Y:%[a-z.0-9]+]] = f32[64,30,40] broadcast({{.*}}), dimensions={0,2}
      // CHECK:      [[P:%[a-z.0-9]+]] = f32[64,30,40] multiply([[X]], [[Y]])
      // CHECK:      ROOT {{.*}} = f32[64,30,40] add([[P]], {{.*}})
      ROOT d = f32[64,30,40] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0},
               lhs_contracting_dims={2}, rhs_contracting_dims={1}
    })");
}

TEST(ReduceVectorProductsTest, ProductsWithAMatrixStay) {
  ExpectNoChange(ReduceVectorProducts(), R"(
    ENTRY main {
      x = f32[2] parameter(0)
      y = f32[2,19] parameter(1)
      n = s32[2] parameter(2)
      d = f32[19] dot(x, y), lhs_contracting_dims={0}, rhs_contracting_dims={0}
      e = s32[] dot(n, n), lhs_contracting_dims={0}, rhs_contracting_dims={0}
      ROOT t = (f32[19], s32[]) tuple(d, e)
    })");
}

}  // namespace
}  // namespace lazuli::lowering
