#include "lowering/passes/rules/rules.h"

#include <set>
#include <string>

#include <gmock/gmock.h>

#include "ir/hlo/verifier.h"
#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "ir/support/status.h"
#include "lowering/passes/simplify.h"
#include "tests/lowering/passes/rule_samples.h"
#include "tests/support/hlo_test.h"
#include "tests/support/pass_test.h"

namespace lazuli::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// All rules but this one are off while it lives.
class OnlyRule {
 public:
  explicit OnlyRule(std::string_view name) {
    std::string others;
    for (const Rule& rule : AllRules()) {
      if (rule.name != name) others += Str(rule.name, ",");
    }
    EXPECT_TRUE(SetFlag("LAZULI_DISABLE_RULES", others).ok());
  }
  ~OnlyRule() { EXPECT_TRUE(SetFlag("LAZULI_DISABLE_RULES", "").ok()); }
};

// Each rewrite must make a value lighter while it lives.
class VerifiedPasses {
 public:
  VerifiedPasses() { EXPECT_TRUE(SetFlag("LAZULI_VERIFY_PASSES", "true").ok()); }
  ~VerifiedPasses() { EXPECT_TRUE(SetFlag("LAZULI_VERIFY_PASSES", "false").ok()); }
};

std::string Module(std::string_view body) {
  return Str(kSampleCallees, "ENTRY main {\n", body, "\n}\n");
}

int64_t Hits(std::string_view rule) {
  for (const auto& [name, value] : NamedCounters()) {
    if (name == Str("rule.", rule)) return value;
  }
  return 0;
}

class RuleTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  const RuleSample& sample() const { return RuleSamples()[GetParam()]; }
};

TEST_P(RuleTest, MakesThePositiveSampleLighterAndKeepsItsValues) {
  const OnlyRule only(sample().rule);
  const VerifiedPasses weighed;
  const int64_t before = Hits(sample().rule);
  ExpectPass(Simplify(), Module(sample().positive));
  EXPECT_GT(Hits(sample().rule), before);
}

TEST_P(RuleTest, LeavesTheNegativeSampleAlone) {
  const OnlyRule only(sample().rule);
  ExpectNoChange(Simplify(), Module(sample().negative));
}

TEST_P(RuleTest, AgreesWithAllRulesTogether) {
  const VerifiedPasses weighed;
  ExpectPass(Simplify(), Module(sample().positive));
}

std::string SampleName(const ::testing::TestParamInfo<std::size_t>& info) {
  std::string name(RuleSamples()[info.param].rule);
  for (char& c : name) {
    if (c == '-') c = '_';
  }
  return Str(name, "_", info.param);
}
INSTANTIATE_TEST_SUITE_P(Samples, RuleTest, ::testing::Range(std::size_t{0}, RuleSamples().size()),
                         SampleName);

TEST(RulesTest, EveryRuleHasASampleAndEverySampleARule) {
  std::set<std::string_view> rules, sampled;
  for (const Rule& rule : AllRules())
    EXPECT_TRUE(rules.insert(rule.name).second) << "two rules " << rule.name;
  for (const RuleSample& sample : RuleSamples()) sampled.insert(sample.rule);
  EXPECT_EQ(rules, sampled);
}

// Constants on both sides of an addition used to change places for ever.
TEST(RulesTest, ConstantsOnlyBecomeOne) {
  ExpectPass(Simplify(), R"(
    ENTRY main {
      x = u32[] parameter(0)
      c1 = u32[] constant(1053357856)
      c2 = u32[] constant(2654435769)
      s = u32[] add(c1, c2)
      c3 = u32[] constant(2654435769)
      // CHECK:  %[[C:.*]] = u32[] constant(1013904242)
      // CHECK:  add(%c1, %[[C]])
      r = u32[] add(s, c3)
      ROOT t = (u32[], u32[]) tuple(r, x)
    })");
}

Instruction* Swap(Instruction* i, Rewriter& r) {
  return r.Add(Opcode::kAdd, i->shape(), {i->operand(1), i->operand(0)});
}

// A mistake in a rule costs simplicity, never the program; where passes are verified it is named.
TEST(RulesTest, RulesThatUndoEachOtherStopAndAreCounted) {
  const Rule swap[] = {{"swap", Opcode::kAdd, Swap}};
  constexpr std::string_view kText = R"(
    ENTRY main {
      x = f32[] parameter(0)
      y = f32[] parameter(1)
      ROOT r = f32[] add(x, y)
    })";
  ASSERT_TRUE(SetFlag("LAZULI_VERIFY_PASSES", "false").ok());
  auto module = ParseHlo(kText);
  const auto stops = [] { return Get(Counter::kSimplifyStopped); };
  const int64_t before = stops();
  for (int run = 1; run <= 2; ++run) {
    testing::internal::CaptureStderr();
    const auto changed = Simplify(swap).Run(*module);
    const std::string said = testing::internal::GetCapturedStderr();
    ASSERT_TRUE(changed.ok()) << Message(changed.status());
    EXPECT_TRUE(hlo::Verify(*module).ok());
    EXPECT_EQ(stops(), before + run);
    EXPECT_EQ(said.find("lazuli: the rules of simplify rewrite main for ever;") == 0, run == 1);
  }
  ASSERT_TRUE(SetFlag("LAZULI_VERIFY_PASSES", "true").ok());
  module = ParseHlo(kText);
  EXPECT_THAT(
      Message(Simplify(swap).Run(*module).status()),
      testing::HasSubstr("rule swap replaced %r = f32[] add(%x, %y), which weighs 17, by "));
  ASSERT_TRUE(SetFlag("LAZULI_VERIFY_PASSES", "false").ok());
}

TEST(RulesTest, DisablingARuleThatDoesNotExistIsAnError) {
  ASSERT_TRUE(SetFlag("LAZULI_DISABLE_RULES", "add-zero, add-hero").ok());
  const auto module = ParseHlo("ENTRY main { ROOT x = f32[] parameter(0) }");
  EXPECT_EQ(Message(Simplify().Run(*module).status()),
            "LAZULI_DISABLE_RULES: there is no rule add-hero; the nearest is add-zero");
  ASSERT_TRUE(SetFlag("LAZULI_DISABLE_RULES", "").ok());
}

}  // namespace
}  // namespace lazuli::lowering
