#include "lowering/passes/widen_products.h"

#include <gtest/gtest.h>

#include "tests/support/pass_test.h"

namespace lazuli::lowering {
namespace {

TEST(WidenProductsTest, NarrowOperandsAndResultsAreConverted) {
  ExpectPass(WidenProducts(), R"(
    ENTRY main {
      a = bf16[4,8] parameter(0)
      b = bf16[8,3] parameter(1)
      // CHECK-DAG:  [[A:%[a-z.0-9]+]] = f32[4,8] convert(%a)
      // CHECK-DAG:  [[B:%[a-z.0-9]+]] = f32[8,3] convert(%b)
      // CHECK:      [[D:%[a-z.0-9]+]] = f32[4,3] dot([[A]], [[B]])
      // CHECK:      ROOT {{.*}} = bf16[4,3] convert([[D]])
      ROOT d = bf16[4,3] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    })");
}

TEST(WidenProductsTest, AMixedProductNeedsNoConversionBehindIt) {
  ExpectPass(WidenProducts(), R"(
    ENTRY main {
      a = f8e4m3fn[4,8] parameter(0)
      b = f32[8,3] parameter(1)
      // CHECK:      ROOT {{.*}} = f32[4,3] dot({{.*}}, %b)
      ROOT d = f32[4,3] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    })");
}

TEST(WidenProductsTest, OperandsOfTwoProductsAreConvertedOnce) {
  ExpectPass(WidenProducts(), R"(
    ENTRY main {
      a = f16[8,8] parameter(0)
      // CHECK:      f32[8,8] convert(%a)
      // CHECK-NOT:  convert(%a)
      d = f16[8,8] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      e = f32[8,8] dot(a, a), lhs_contracting_dims={0}, rhs_contracting_dims={0}
      ROOT t = (f16[8,8], f32[8,8]) tuple(d, e)
    })");
}

TEST(WidenProductsTest, ShortProductsOfBytesAreExact) {
  ExpectPass(WidenProducts(), R"(
    ENTRY main {
      a = s8[4,1024] parameter(0)
      b = s8[1024,3] parameter(1)
      // CHECK:      f32[4,3] dot(
      // CHECK:      ROOT {{.*}} = s32[4,3] convert(
      ROOT d = s32[4,3] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
    })");
}

TEST(WidenProductsTest, OtherTypesStay) {
  ExpectNoChange(WidenProducts(), R"(
    ENTRY main {
      a = f32[4,8] parameter(0)
      b = f32[8,3] parameter(1)
      c = s8[4,1025] parameter(2)
      e = s8[1025,3] parameter(3)
      d = f32[4,3] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      f = s32[4,3] dot(c, e), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      ROOT t = (f32[4,3], s32[4,3]) tuple(d, f)
    })");
}

TEST(WidenProductsTest, OperandsThatALibraryMultipliesStay) {
  const auto multiplies = [](const hlo::Instruction& i) {
    return i.operand(0)->shape().dtype() == DType::kBF16;
  };
  ExpectPass(WidenProducts(multiplies), R"(
    ENTRY main {
      a = bf16[4,8] parameter(0)
      b = bf16[8,3] parameter(1)
      c = f16[4,8] parameter(2)
      // CHECK-NOT:  convert(%a)
      // CHECK:      %e = f32[4,3] dot(%a, %b)
      // CHECK:      [[D:%[a-z.0-9]+]] = f32[4,3] dot(%a, %b)
      // CHECK-NEXT: bf16[4,3] convert([[D]])
      // CHECK:      f32[4,8] convert(%c)
      d = bf16[4,3] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      e = f32[4,3] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
      f = f16[4,4] dot(c, c), lhs_contracting_dims={1}, rhs_contracting_dims={1}
      ROOT t = (bf16[4,3], f32[4,3], f16[4,4]) tuple(d, e, f)
    })");
}

}  // namespace
}  // namespace lazuli::lowering
