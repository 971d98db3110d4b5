#include "lowering/passes/rules/rules.h"

#include <set>
#include <string>

#include <gmock/gmock.h>

#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "ir/support/status.h"
#include "lowering/passes/simplify.h"
#include "tests/lowering/passes/rule_samples.h"
#include "tests/support/hlo_test.h"
#include "tests/support/pass_test.h"

namespace lazuli::lowering {
namespace {

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

TEST_P(RuleTest, ChangesThePositiveSampleAndNoValues) {
  const OnlyRule only(sample().rule);
  const int64_t before = Hits(sample().rule);
  ExpectPass(Simplify(), Module(sample().positive));
  EXPECT_GT(Hits(sample().rule), before);
}

TEST_P(RuleTest, LeavesTheNegativeSampleAlone) {
  const OnlyRule only(sample().rule);
  ExpectNoChange(Simplify(), Module(sample().negative));
}

TEST_P(RuleTest, AgreesWithAllRulesTogether) { ExpectPass(Simplify(), Module(sample().positive)); }

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

TEST(RulesTest, DisablingARuleThatDoesNotExistIsAnError) {
  ASSERT_TRUE(SetFlag("LAZULI_DISABLE_RULES", "add-zero, add-hero").ok());
  const auto module = ParseHlo("ENTRY main { ROOT x = f32[] parameter(0) }");
  EXPECT_EQ(Message(Simplify().Run(*module).status()),
            "LAZULI_DISABLE_RULES: there is no rule add-hero");
  ASSERT_TRUE(SetFlag("LAZULI_DISABLE_RULES", "").ok());
}

}  // namespace
}  // namespace lazuli::lowering
