#include "backend/cpu/passes/widened_copy.h"

#include <memory>
#include <string_view>

#include <gtest/gtest.h>

#include "ir/hlo/text/printer.h"
#include "ir/hlo/verifier.h"
#include "tests/support/hlo_test.h"
#include "tests/support/pass_test.h"

namespace lazuli::cpu {
namespace {

TEST(WidenedCopyTest, RoundsOnceWhateverRoundedBetween) {
  constexpr std::string_view kText = R"(
    // CHECK-LABEL: ENTRY
    // CHECK:       [[X:%[a-z0-9.-]+]] = f32[4] convert(%{{.*}})
    // CHECK:       [[H:%[a-z0-9.-]+]] = f32[] constant(0.5)
    // CHECK:       [[HS:%[a-z0-9.-]+]] = f32[4] broadcast([[H]])
    // CHECK:       [[Y:%[a-z0-9.-]+]] = f32[4] multiply([[X]], [[HS]])
    // CHECK:       [[Z:%[a-z0-9.-]+]] = f32[4] exponential([[Y]])
    // CHECK:       [[C:%[a-z0-9.-]+]] = pred[4] compare([[Z]], [[Y]])
    // CHECK:       [[N:%[a-z0-9.-]+]] = bf16[4] convert([[Z]])
    // CHECK:       ROOT {{.*}} tuple([[N]], [[Z]], [[C]])
    ENTRY main {
      x = bf16[4] parameter(0)
      half = bf16[] constant(0.5)
      halves = bf16[4] broadcast(half), dimensions={}
      y = bf16[4] multiply(x, halves)
      wide = f32[4] convert(y)
      z = f32[4] exponential(wide)
      narrow = bf16[4] convert(z)
      c = pred[4] compare(narrow, y), direction=LT
      ROOT r = (bf16[4], f32[4], pred[4]) tuple(narrow, z, c)
    })";
  const std::unique_ptr<hlo::Module> module = ParseHlo(kText);
  hlo::Computation* const wide = WidenedCopy(*module->entry());
  ASSERT_NE(wide, nullptr);
  module->set_entry(wide);
  EXPECT_TRUE(hlo::Verify(*module).ok());
  EXPECT_EQ(FileCheckError(kText, hlo::ToString(*module, {.layouts = false, .metadata = false})),
            "");
}

TEST(WidenedCopyTest, ThereIsNoneOfWhatReadsBitsNorOfF32) {
  for (const std::string_view text :
       {"ENTRY main { x = bf16[4] parameter(0)  ROOT y = u16[4] bitcast-convert(x) }",
        "ENTRY main { x = f32[4] parameter(0)  ROOT y = f32[4] negate(x) }"}) {
    EXPECT_EQ(WidenedCopy(*ParseHlo(text)->entry()), nullptr) << text;
  }
}

}  // namespace
}  // namespace lazuli::cpu
