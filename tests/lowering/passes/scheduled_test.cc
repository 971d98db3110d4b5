#include "lowering/passes/scheduled.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/hlo_test.h"

namespace lazuli::lowering {
namespace {

using hlo::Opcode;
using testing::ElementsAre;

std::vector<std::string> Names(const ScheduledComputations& scheduled) {
  std::vector<std::string> names;
  for (const hlo::Computation* c : scheduled.callees_first()) names.push_back(c->name());
  return names;
}

const hlo::Instruction* First(const hlo::Module& module, Opcode opcode) {
  for (const auto& i : module.entry()->instructions())
    if (i->opcode() == opcode) return i.get();
  return nullptr;
}

TEST(ScheduledTest, LoopsAndBranchesButNoReducers) {
  const auto module = ParseHlo(R"(
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT r = f32[] add(a, b) }
    yes { p = f32[8] parameter(0)  ROOT n = f32[8] negate(p) }
    no { p = f32[8] parameter(0)  ROOT n = f32[8] abs(p) }
    goes_on { s = (f32[8], f32[]) parameter(0)
      x = f32[] get-tuple-element(s), index=1
      zero = f32[] constant(0)
      ROOT r = pred[] compare(x, zero), direction=GT }
    body { s = (f32[8], f32[]) parameter(0)
      p = f32[8] get-tuple-element(s), index=0
      x = f32[] get-tuple-element(s), index=1
      zero = f32[] constant(0)
      g = pred[] compare(x, zero), direction=GT
      q = f32[8] conditional(g, p, p), true_computation=yes, false_computation=no
      sum = f32[] reduce(q, zero), dimensions={0}, to_apply=add
      ROOT r = (f32[8], f32[]) tuple(q, sum) }
    ENTRY main { s = (f32[8], f32[]) parameter(0)
      ROOT w = (f32[8], f32[]) while(s), condition=goes_on, body=body })");
  const ScheduledComputations scheduled(*module);
  EXPECT_THAT(Names(scheduled),
              testing::UnorderedElementsAre("yes", "no", "goes_on", "body", "main"));
  EXPECT_EQ(Names(scheduled).back(), "main");
  EXPECT_TRUE(scheduled.Runs(*First(*module, Opcode::kWhile)));
}

TEST(ScheduledTest, CallsButNotOfSizesThatOnlyARunKnows) {
  const std::string call =
      "f { p = f32[8] parameter(0)  ROOT n = f32[8] negate(p) }\n"
      "ENTRY main { p = f32[8] parameter(0)  n = s32[] parameter(1) "
      "c = f32[8] call(p), to_apply=f ";
  const auto fixed = ParseHlo(call + "ROOT r = f32[8] abs(c) }");
  EXPECT_THAT(Names(ScheduledComputations(*fixed)), ElementsAre("f", "main"));
  const auto dynamic =
      ParseHlo(call + "ROOT r = f32[<=8] set-dimension-size(c, n), dimensions={0} }");
  EXPECT_THAT(Names(ScheduledComputations(*dynamic)), ElementsAre("main"));
}

// Infeed and outfeed happen in order, which a device leaves to the evaluator.
TEST(ScheduledTest, WhatSendsOrTakesTokensIsLeftOut) {
  const auto module = ParseHlo(R"(
    sends { p = f32[8] parameter(0)
      t = token[] after-all()
      o = token[] outfeed(p, t), outfeed_shape=f32[8]
      ROOT n = f32[8] negate(p) }
    no { p = f32[8] parameter(0)  ROOT n = f32[8] abs(p) }
    ENTRY main { p = f32[8] parameter(0)  g = pred[] parameter(1)
      ROOT q = f32[8] conditional(g, p, p), true_computation=sends, false_computation=no })");
  const ScheduledComputations scheduled(*module);
  EXPECT_THAT(Names(scheduled), ElementsAre("main"));
  EXPECT_FALSE(scheduled.Runs(*First(*module, Opcode::kConditional)));
}

TEST(ScheduledTest, FunctionsOfTheHostAreCalledAnywhere) {
  const auto module = ParseHlo(R"(
    yes { p = f32[8] parameter(0)
      c = () custom-call(p), custom_call_target="print", custom_call_has_side_effect=true
      ROOT n = f32[8] negate(p) }
    no { p = f32[8] parameter(0)  ROOT n = f32[8] abs(p) }
    ENTRY main { p = f32[8] parameter(0)  g = pred[] parameter(1)
      ROOT q = f32[8] conditional(g, p, p), true_computation=yes, false_computation=no })");
  EXPECT_TRUE(ScheduledComputations(*module).Runs(*First(*module, Opcode::kConditional)));
}

TEST(ScheduledTest, DeepNestsEndAtALevel) {
  std::string text = "c0 { p = f32[8] parameter(0) ROOT n = f32[8] negate(p) }\n";
  constexpr int kLevels = 6500;
  for (int k = 1; k < kLevels; ++k) {
    text += Str("c", k, " { p = f32[8] parameter(0) g = pred[] constant(true) ROOT r = f32[8] ",
                "conditional(g, p, p), true_computation=c", k - 1, ", false_computation=c", k - 1,
                " }\n");
  }
  const auto module = ParseHlo(text + Str("ENTRY e { p = f32[8] parameter(0) g = pred[] ",
                                          "parameter(1) ROOT r = f32[8] conditional(g, p, p), ",
                                          "true_computation=c", kLevels - 1,
                                          ", false_computation=c", kLevels - 1, " }"));
  EXPECT_EQ(ScheduledComputations(*module).callees_first().size(),
            static_cast<std::size_t>(ScheduledComputations::kMaxDepth) + 1);
}

}  // namespace
}  // namespace lazuli::lowering
