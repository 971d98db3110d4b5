// Random programs through the simplification pipeline, and through random sets of its rules: the
// values must stay the same bit for bit, and rewriting must end.
//
// LAZULI_FUZZ_PROGRAMS=N runs N programs of each kind instead of a sample, LAZULI_FUZZ_SEED=N
// others.
#include <cstdlib>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "ir/evaluator/evaluator.h"
#include "ir/hlo/text/printer.h"
#include "ir/hlo/verifier.h"
#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "ir/support/status.h"
#include "lowering/passes/pipelines.h"
#include "lowering/passes/simplify.h"
#include "tests/lowering/passes/random_module.h"
#include "tests/support/hlo_test.h"

namespace lazuli::lowering {
namespace {

uint64_t FromEnvironment(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

int64_t Stops() { return Get(Counter::kSimplifyStopped); }

void ExpectSameValues(const hlo::Module& before, const hlo::Module& after) {
  for (RandomValues values : {RandomValues::kTame, RandomValues::kSpecial}) {
    const std::vector<Literal> arguments = RandomArguments(before, values);
    std::vector<const Literal*> pointers;
    for (const Literal& argument : arguments) pointers.push_back(&argument);
    const auto expected = hlo::Evaluate(before, pointers), actual = hlo::Evaluate(after, pointers);
    ASSERT_TRUE(expected.ok()) << Message(expected.status());
    ASSERT_TRUE(actual.ok()) << Message(actual.status());
    ExpectSameBits(*expected, *actual);
  }
}

// The pass ends by itself, keeps the values, and finds nothing more to do.
void ExpectSettles(Pass& pass, const hlo::Module& before) {
  const std::unique_ptr<hlo::Module> after = before.Clone();
  const int64_t stops = Stops();
  const absl::StatusOr<bool> changed = pass.Run(*after);
  SCOPED_TRACE(Str(hlo::ToString(before), "\n", hlo::ToString(*after)));
  ASSERT_TRUE(changed.ok()) << Message(changed.status());
  EXPECT_EQ(Stops(), stops);
  const absl::Status verified = hlo::Verify(*after);
  ASSERT_TRUE(verified.ok()) << Message(verified);
  ExpectSameValues(before, *after);
  EXPECT_FALSE(*pass.Run(*after)) << "one run was not enough";
}

// Shares, so that ctest may run them in parallel.
constexpr uint64_t kShares = 8;
class PassFuzzTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  // Calls f(seed) for this share of so many programs.
  template <class F>
  void ForEachSeed(uint64_t programs, F&& f) {
    const uint64_t count = FromEnvironment("LAZULI_FUZZ_PROGRAMS", programs) / kShares;
    const uint64_t first = FromEnvironment("LAZULI_FUZZ_SEED", 0) + GetParam() * count;
    for (uint64_t seed = first; seed < first + count && !HasFailure(); ++seed) {
      SCOPED_TRACE(Str("seed ", seed));
      f(seed);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Shares, PassFuzzTest, ::testing::Range<uint64_t>(0, kShares));

TEST_P(PassFuzzTest, ThePipelineKeepsValuesAndSettles) {
  ForEachSeed(2000, [](uint64_t seed) {
    PassPipeline pipeline("fuzz");
    AddSimplificationPipeline(pipeline);
    ExpectSettles(pipeline, *RandomModule(seed).Make());
  });
}

// Small graphs over scalars and few constants, in which rules meet that large programs keep apart.
// Every rewrite is weighed (LAZULI_VERIFY_PASSES).
TEST_P(PassFuzzTest, AnySetOfRulesKeepsValuesAndSettles) {
  ASSERT_TRUE(SetFlag("LAZULI_VERIFY_PASSES", "true").ok());
  ForEachSeed(4000, [](uint64_t seed) {
    std::mt19937_64 random(seed * 2 + 1);
    std::vector<Rule> rules;
    const uint64_t of_four = 1 + random() % 4;  // how many of four rules are on
    for (const Rule& rule : AllRules()) {
      if (random() % 4 < of_four) rules.push_back(rule);
    }
    RandomModule::Options options{.operations = 6 + static_cast<int>(random() % 14)};
    if (random() % 2 == 0) options.dims = {};
    if (random() % 2 == 0) options.dtypes = {DType::kU32, DType::kS8};
    Simplify simplify(rules);
    ExpectSettles(simplify, *RandomModule(seed, options).Make());
  });
  ASSERT_TRUE(SetFlag("LAZULI_VERIFY_PASSES", "false").ok());
}

}  // namespace
}  // namespace lazuli::lowering
