#include "lowering/passes/fold_transposes.h"

#include <gtest/gtest.h>

#include "tests/support/pass_test.h"

namespace lazuli::lowering {
namespace {

TEST(FoldTransposesTest, FoldsIntoBothSidesOfADot) {
  ExpectPass(FoldTransposes(), R"(
    ENTRY main {
      x = f32[3,4] parameter(0)
      w = f32[8,3] parameter(1)
      tx = f32[4,3] transpose(x), dimensions={1,0}
      tw = f32[3,8] transpose(w), dimensions={1,0}
      // CHECK-NOT: transpose
      // CHECK:     dot(%x, %w), lhs_contracting_dims={0}, rhs_contracting_dims={1}
      ROOT d = f32[4,8] dot(tx, tw), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    })");
}

TEST(FoldTransposesTest, FoldsBatchedTransposes) {
  ExpectPass(FoldTransposes(), R"(
    ENTRY main {
      x = f32[5,2,3] parameter(0)
      w = f32[2,3,7] parameter(1)
      t = f32[2,5,3] transpose(x), dimensions={1,0,2}
      // CHECK: dot(%x, %w), lhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
      ROOT d = f32[2,5,7] dot(t, w), lhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_batch_dims={0}, rhs_contracting_dims={1}
    })");
}

TEST(FoldTransposesTest, KeepsTheOrderOfFreeDimensions) {
  ExpectNoChange(FoldTransposes(), R"(
    ENTRY main {
      x = f32[5,2,3] parameter(0)
      w = f32[3] parameter(1)
      t = f32[2,5,3] transpose(x), dimensions={1,0,2}
      ROOT d = f32[2,5] dot(t, w), lhs_contracting_dims={2}, rhs_contracting_dims={0}
    })");
}

// Libraries add the products of w x in another order than those of x w.
TEST(FoldTransposesTest, LeavesTheTransposedResultOfADotAlone) {
  ExpectNoChange(FoldTransposes(), R"(
    ENTRY main {
      x = f32[4,3] parameter(0)
      w = f32[3,8] parameter(1)
      d = f32[4,8] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT t = f32[8,4] transpose(d), dimensions={1,0}
    })");
}

TEST(FoldTransposesTest, FoldsIntoAllSidesOfAConvolution) {
  ExpectPass(FoldTransposes(), R"(
    ENTRY main {
      x = f32[2,5,6,3] parameter(0)
      k = f32[3,3,3,4] parameter(1)
      tx = f32[2,3,5,6] transpose(x), dimensions={0,3,1,2}
      tk = f32[4,3,3,3] transpose(k), dimensions={3,2,0,1}
      c = f32[2,4,3,4] convolution(tx, tk), window={size=3x3}, dim_labels=bf01_oi01->bf01
      // CHECK-NOT: transpose
      // CHECK:     ROOT {{.*}} = f32[2,3,4,4] convolution(%x, %k), window={size=3x3}, dim_labels=b01f_01io->b01f
      ROOT t = f32[2,3,4,4] transpose(c), dimensions={0,2,3,1}
    })");
}

// It would look like the gradient of a kernel, which devices sum in another order.
TEST(FoldTransposesTest, LeavesABatchThatWouldComeBehindTheFeatures) {
  ExpectNoChange(FoldTransposes(), R"(
    ENTRY main {
      x = f32[3,2,5,6] parameter(0)
      k = f32[4,3,5,6] parameter(1)
      t = f32[2,3,5,6] transpose(x), dimensions={1,0,2,3}
      ROOT c = f32[2,4,1,1] convolution(t, k), window={size=5x6}, dim_labels=bf01_oi01->bf01
    })");
}

TEST(FoldTransposesTest, LeavesAReversedKernelAlone) {
  ExpectNoChange(FoldTransposes(), R"(
    ENTRY main {
      x = f32[2,3,5,6] parameter(0)
      k = f32[4,3,3,3] parameter(1)
      r = f32[4,3,3,3] reverse(k), dimensions={2,3}
      ROOT c = f32[2,4,3,4] convolution(x, r), window={size=3x3}, dim_labels=bf01_oi01->bf01
    })");
}

}  // namespace
}  // namespace lazuli::lowering
