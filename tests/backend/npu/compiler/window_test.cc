#include <string>

#include <gtest/gtest.h>

#include "backend/npu/compiler/supported.h"
#include "ir/support/status.h"
#include "tests/backend/npu/compiler/compiled.h"

namespace lazuli::npu {
namespace {

constexpr char kComputations[] = R"(
add { a = TYPE[] parameter(0) b = TYPE[] parameter(1) ROOT c = TYPE[] add(a, b) }
max { a = TYPE[] parameter(0) b = TYPE[] parameter(1) ROOT c = TYPE[] maximum(a, b) }
ge { a = TYPE[] parameter(0) b = TYPE[] parameter(1) ROOT c = pred[] compare(a, b), direction=GE }
keeps { a = TYPE[] parameter(0) b = TYPE[] parameter(1) gt = pred[] compare(b, a), direction=GT
  some = pred[] compare(b, b), direction=EQ not = pred[] not(gt) ROOT c = pred[] and(not, some) }
)";

std::string WithType(std::string text, const std::string& type) {
  for (std::size_t at = text.find("TYPE"); at != std::string::npos; at = text.find("TYPE", at))
    text.replace(at, 4, type);
  return text;
}

TEST(NpuWindowTest, ReducesWindows) {
  Config small;
  small.spm.kb = 8;
  const char* const windows[] = {
      "y = TYPE[3,5,8,6] reduce-window(x, i), window={size=1x1x2x2 stride=1x1x2x2}, to_apply=max",
      "y = TYPE[3,5,16,12] reduce-window(x, i), window={size=1x1x3x3 pad=0_0x0_0x1_1x1_1}, "
      "to_apply=add",
      "y = TYPE[3,5,15,5] reduce-window(x, i), window={size=1x1x2x2 stride=1x1x2x3 "
      "pad=0_0x0_0x0_0x3_0 "
      "lhs_dilate=1x1x2x1 rhs_dilate=1x1x2x1}, to_apply=add",
  };
  for (const char* const window : windows) {
    for (const char* const type : {"f32", "s32", "s8", "bf16"}) {
      for (const Config& config : {Config(), small})
        ExpectCompiled(WithType(Str(kComputations,
                                    "ENTRY e { x = TYPE[3,5,16,12] parameter(0) "
                                    "i = TYPE[] parameter(1) ROOT ",
                                    window, " }"),
                                type),
                       {.rtol = 3e-2, .atol = 3e-2, .config = config});
    }
  }
}

TEST(NpuWindowTest, SelectsAndScatters) {
  const char* const windows[] = {
      "s = TYPE[3,5,8,6] parameter(1) y = TYPE[3,5,16,12] select-and-scatter(x, s, i), "
      "window={size=1x1x2x2 "
      "stride=1x1x2x2}, select=ge, scatter=add",
      "s = TYPE[3,5,8,6] parameter(1) y = TYPE[3,5,16,12] select-and-scatter(x, s, i), "
      "window={size=1x1x3x3 "
      "stride=1x1x2x2 pad=0_0x0_0x1_0x1_0}, select=ge, scatter=add",
      // As the gradient of a pool has it: a NaN is the greatest.
      "s = TYPE[3,5,8,6] parameter(1) y = TYPE[3,5,16,12] select-and-scatter(x, s, i), "
      "window={size=1x1x2x2 "
      "stride=1x1x2x2}, select=keeps, scatter=add",
  };
  for (const char* const window : windows) {
    for (const char* const type : {"f32", "s32"}) {
      std::string text = WithType(Str(kComputations,
                                      "ENTRY e { x = TYPE[3,5,16,12] parameter(0) "
                                      "i = TYPE[] parameter(2) ",
                                      window, " }"),
                                  type);
      text.replace(text.find(" y = "), 5, " ROOT y = ");
      ExpectCompiled(text, {.rtol = 1e-5, .atol = 1e-5});
      if (type == std::string("f32"))
        ExpectCompiled(text, {.rtol = 1e-5, .atol = 1e-5, .values = RandomValues::kSpecial});
    }
  }
}

TEST(NpuWindowTest, OverlappingWindowsThatDoNotFitAreRefused) {
  const auto module = ParseHlo(WithType(Str(kComputations, R"(ENTRY e {
    x = TYPE[1000,1000] parameter(0) s = TYPE[500,500] parameter(1) i = TYPE[] parameter(2)
    ROOT y = TYPE[1000,1000] select-and-scatter(x, s, i), window={size=3x3 stride=2x2 pad=1_0x1_0}, select=ge, scatter=add })"),
                                        "f32"));
  const auto refusal = WhyNot(*module->entry()->root(), Config());
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, "unsupported-shape");
  EXPECT_EQ(refusal->sentence, "windows that overlap do not fit the scratchpad together");
}

}  // namespace
}  // namespace lazuli::npu
