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

}  // namespace
}  // namespace lazuli::cpu
