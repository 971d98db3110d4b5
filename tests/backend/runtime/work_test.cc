#include "backend/runtime/work.h"

#include <cmath>

#include <gtest/gtest.h>

#include "ir/support/str.h"
#include "tests/support/hlo_test.h"

namespace lazuli::backend {
namespace {

TEST(WorkOfTest, CountsWhatIsCalledTwiceTwiceButLooksAtItOnce) {
  std::string text = "level0 { x = f32[8] parameter(0) ROOT y = f32[8] negate(x) }\n";
  constexpr int kLevels = 60;
  for (int k = 1; k <= kLevels; ++k)
    text += ir::Str("level", k, " { x = f32[8] parameter(0) y = f32[8] call(x), to_apply=level",
                    k - 1, " ROOT z = f32[8] call(y), to_apply=level", k - 1, " }\n");
  const auto module = ParseHlo(text + ir::Str("ENTRY e { x = f32[8] parameter(0) ROOT y = f32[8] ",
                                              "call(x), to_apply=level", kLevels, " }"));
  EXPECT_EQ(WorkOf(*module->entry()->root()).flops, 8 * std::pow(2.0, kLevels));
}

}  // namespace
}  // namespace lazuli::backend
