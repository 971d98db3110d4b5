#include "backend/cpu/passes/fold_kernel_reverse.h"

#include <gtest/gtest.h>

#include "tests/support/pass_test.h"

namespace lazuli::cpu {
namespace {

TEST(FoldKernelReverseTest, FlippedKernelsBecomeReversal) {
  ExpectPass(FoldKernelReverse(), R"(
    ENTRY main {
      x = f32[1,2,6,6] parameter(0)
      w = f32[2,3,3,3] parameter(1)
      // CHECK-NOT: reverse(
      r = f32[2,3,3,3] reverse(w), dimensions={2,3}
      // CHECK:     convolution(%x, %w), window={size=3x3 pad=2_2x2_2 rhs_reversal=1x1}
      ROOT c = f32[1,3,8,8] convolution(x, r), window={size=3x3 pad=2_2x2_2}, dim_labels=bf01_io01->bf01
    })");
}

TEST(FoldKernelReverseTest, TwoReversalsCancel) {
  ExpectPass(FoldKernelReverse(), R"(
    ENTRY main {
      x = f32[1,2,6,6] parameter(0)
      w = f32[2,3,3,3] parameter(1)
      r = f32[2,3,3,3] reverse(w), dimensions={2,3}
      // CHECK:     convolution(%x, %w), window={size=3x3}
      ROOT c = f32[1,3,4,4] convolution(x, r), window={size=3x3 rhs_reversal=1x1}, dim_labels=bf01_io01->bf01
    })");
}

TEST(FoldKernelReverseTest, ReversedFeaturesStay) {
  ExpectNoChange(FoldKernelReverse(), R"(
    ENTRY main {
      x = f32[1,2,6,6] parameter(0)
      w = f32[2,3,3,3] parameter(1)
      r = f32[2,3,3,3] reverse(w), dimensions={0,2}
      ROOT c = f32[1,3,4,4] convolution(x, r), window={size=3x3}, dim_labels=bf01_io01->bf01
    })");
}

// The library's call would be another one, which adds in another order.
TEST(FoldKernelReverseTest, AReversalOfOneDimensionAndThatOfAKernelsGradientStay) {
  ExpectNoChange(FoldKernelReverse(), R"(
    ENTRY main {
      x = f32[1,2,6,6] parameter(0)
      w = f32[2,3,3,3] parameter(1)
      r = f32[2,3,3,3] reverse(w), dimensions={3}
      ROOT c = f32[1,3,4,4] convolution(x, r), window={size=3x3}, dim_labels=bf01_io01->bf01
    })");
  ExpectNoChange(FoldKernelReverse(), R"(
    ENTRY main {
      x = f32[4,2,6,6] parameter(0)
      dy = f32[4,3,4,4] parameter(1)
      r = f32[4,3,4,4] reverse(dy), dimensions={2,3}
      ROOT c = f32[3,2,3,3] convolution(x, r), window={size=4x4}, dim_labels=fb01_io01->fb01
    })");
}

}  // namespace
}  // namespace lazuli::cpu
