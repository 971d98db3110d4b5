#include "lowering/passes/flat_module.h"

#include <gtest/gtest.h>

#include "ir/evaluator/evaluator.h"
#include "ir/hlo/verifier.h"
#include "tests/support/hlo_test.h"

namespace lazuli::lowering {
namespace {

constexpr std::string_view kNested = R"(
  callee (x: f32[2]) -> f32[2] {
    x = f32[2] parameter(0)
    ROOT n = f32[2] negate(x)
  }
  ENTRY main {
    p = (f32[2], (s32[])) parameter(0)
    q = f32[2] parameter(1)
    x = f32[2] get-tuple-element(p), index=0
    t = (s32[]) get-tuple-element(p), index=1
    n = f32[2] call(x), to_apply=callee
    ROOT r = (f32[2], (s32[]), f32[2]) tuple(q, t, n)
  })";

TEST(FlatModuleTest, LeavesBecomeParametersAndResults) {
  const auto module = ParseHlo(kNested);
  ASSERT_TRUE(CanFlatten(*module->entry()));
  const auto flat = FlatModule(*module->entry());
  ASSERT_TRUE(hlo::Verify(*flat).ok()) << hlo::Verify(*flat);
  EXPECT_EQ(flat->entry()->parameters().size(), 3U);
  EXPECT_EQ(flat->entry()->root()->shape().ToString(), "(f32[2], s32[], f32[2])");
  const Literal x = Literal::FromValues<float>({2}, {1, 2}), i = Literal::Scalar<int32_t>(7),
                q = Literal::FromValues<float>({2}, {3, 4});
  const auto result = hlo::Evaluate(*flat, {&x, &i, &q});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(result->ToString(), "( {3, 4}, 7, {-1, -2} )");
}

TEST(FlatModuleTest, EntriesKeepNameAndAliases) {
  const auto module = ParseHlo(
      R"(HloModule step, input_output_alias={ {1}: (0, {1,0}, must-alias), {0}: (1, {}), {2}: (0, {1}) }
    ENTRY main {
      p = (f32[2], (s32[])) parameter(0)
      q = f32[2] parameter(1)
      t = (s32[]) get-tuple-element(p), index=1
      i = s32[] get-tuple-element(t), index=0
      u = (s32[]) tuple(i)
      ROOT r = (f32[2], s32[], (s32[])) tuple(q, i, u)
    })");
  EXPECT_TRUE(TakesTuples(*module));
  const auto flat = FlatEntry(*module);
  ASSERT_TRUE(hlo::Verify(*flat).ok()) << hlo::Verify(*flat);
  EXPECT_FALSE(TakesTuples(*flat));
  EXPECT_EQ(flat->name(), "step");
  const std::vector<hlo::Alias> aliases = {{{1}, 1, {}, true}, {{0}, 2, {}, false}};
  EXPECT_EQ(flat->aliases(), aliases) << "the third is one of tuples";
}

TEST(FlatModuleTest, TokensAreNoArrays) {
  const auto module = ParseHlo(R"(ENTRY main {
    t = token[] parameter(0)
    ROOT u = token[] after-all(t)
  })");
  EXPECT_FALSE(CanFlatten(*module->entry()));
}

}  // namespace
}  // namespace lazuli::lowering
