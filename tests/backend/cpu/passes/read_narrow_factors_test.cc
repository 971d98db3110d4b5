#include "backend/cpu/passes/read_narrow_factors.h"

#include <gtest/gtest.h>

#include "tests/support/pass_test.h"

namespace lazuli::cpu {
namespace {

bool IsByteOrHalf(const hlo::Instruction& dot, DType factor) {
  return dot.shape().dtype() == DType::kF32 &&
         (factor == DType::kS8 || factor == DType::kBF16 || factor == DType::kF16);
}

TEST(ReadNarrowFactorsTest, AFactorThatWasWidenedIsReadAsItWas) {
  ExpectPass(ReadNarrowFactors(IsByteOrHalf), R"(
    ENTRY main {
      a = f32[1,32] parameter(0)
      w = s8[32,64] parameter(1)
      v = bf16[32,64] parameter(2)
      h = f16[32,64] parameter(3)
      // CHECK-NOT:  convert
      // CHECK-DAG:  %d = f32[1,64] dot(%a, %w)
      // CHECK-DAG:  %e = f32[1,64] dot(%a, %v)
      // CHECK-DAG:  %f = f32[1,64] dot(%a, %w)
      // CHECK-DAG:  %g = f32[1,64] dot(%a, %h)
      once = f32[32,64] convert(w)
      wide = f32[32,64] convert(v)
      short = bf16[32,64] convert(w)
      twice = f32[32,64] convert(short)
      d = f32[1,64] dot(a, once), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      e = f32[1,64] dot(a, wide), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      half = f32[32,64] convert(h)
      f = f32[1,64] dot(a, twice), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      g = f32[1,64] dot(a, half), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT t = (f32[1,64], f32[1,64], f32[1,64], f32[1,64]) tuple(d, e, f, g)
    })");
}

TEST(ReadNarrowFactorsTest, AFactorThatWasRoundedStaysRounded) {
  ExpectPass(ReadNarrowFactors(IsByteOrHalf), R"(
    ENTRY main {
      a = f32[1,32] parameter(0)
      w = f32[32,64] parameter(1)
      u = u8[32,64] parameter(2)
      // CHECK:  [[R:%[a-z.0-9]+]] = bf16[32,64] convert(%w)
      // CHECK:  %d = f32[1,64] dot(%a, [[R]])
      // CHECK:  [[U:%[a-z.0-9]+]] = f32[32,64] convert(%u)
      // CHECK:  %e = f32[1,64] dot(%a, [[U]])
      rounded = bf16[32,64] convert(w)
      wide = f32[32,64] convert(rounded)
      d = f32[1,64] dot(a, wide), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      c = f32[32,64] convert(u)
      e = f32[1,64] dot(a, c), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT t = (f32[1,64], f32[1,64]) tuple(d, e)
    })");
}

}  // namespace
}  // namespace lazuli::cpu
