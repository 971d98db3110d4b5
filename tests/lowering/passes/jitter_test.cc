#include "lowering/passes/jitter.h"

#include <cmath>

#include <gmock/gmock.h>

#include "ir/evaluator/evaluator.h"
#include "ir/support/flags.h"
#include "ir/support/status.h"
#include "tests/support/hlo_test.h"

namespace lazuli::lowering {
namespace {

constexpr std::string_view kProgram = R"(
  ENTRY main {
    a = f32[4,8] parameter(0)
    n = s32[3] parameter(1)
    d = f32[4,4] dot(a, a), lhs_contracting_dims={1}, rhs_contracting_dims={1}
    e = f64[4,4] convert(d)
    m = s32[3] add(n, n)
    ROOT t = (f32[4,4], f64[4,4], s32[3], f32[4,8]) tuple(d, e, m, a)
  })";

class JitterTest : public testing::Test {
 protected:
  ~JitterTest() override {
    Set("");
    EXPECT_TRUE(ir::SetFlag("LAZULI_JITTER_SEED", "0").ok());
  }
  static void Set(std::string_view amplitude) {
    ASSERT_TRUE(ir::SetFlag("LAZULI_JITTER", amplitude).ok());
  }
  // Of the program on the same inputs, after the pass.
  static std::vector<Literal> Results() {
    const auto module = ParseHlo(kProgram);
    const absl::StatusOr<bool> changed = Jitter().Run(*module);
    EXPECT_TRUE(changed.ok()) << changed.status();
    const std::vector<Literal> arguments = RandomArguments(*ParseHlo(kProgram));
    const Literal result = *hlo::Evaluate(*module, {&arguments[0], &arguments[1]});
    return {result.tuple().begin(), result.tuple().end()};
  }
};

TEST_F(JitterTest, FloatsMoveByAsMuchAsTheFlagSays) {
  const std::vector<Literal> exact = Results();
  Set("1e-4");
  const std::vector<Literal> moved = Results();
  for (const std::size_t o : {0u, 1u}) {
    EXPECT_FALSE(exact[o].BitsEqual(moved[o]));
    for (int64_t i = 0; i < 4; ++i) {  // squares: nothing cancels
      const double x = exact[o].AsDouble(5 * i), y = moved[o].AsDouble(5 * i);
      EXPECT_LE(std::abs(x - y), 3.01e-4 * x) << o;
    }
  }
  ExpectSameBits(exact[2], moved[2]);
  ExpectSameBits(exact[3], moved[3]);  // a parameter that is a result stays as it is
}

TEST_F(JitterTest, TheSeedDecides) {
  Set("1e-4");
  const std::vector<Literal> first = Results();
  ExpectSameBits(first[0], Results()[0]);
  ASSERT_TRUE(ir::SetFlag("LAZULI_JITTER_SEED", "1").ok());
  EXPECT_FALSE(first[0].BitsEqual(Results()[0]));
}

TEST_F(JitterTest, WithoutTheFlagNothingChanges) {
  const auto module = ParseHlo(kProgram);
  EXPECT_FALSE(*Jitter().Run(*module));
}

TEST_F(JitterTest, WhatIsNoAmplitudeIsAnError) {
  const auto module = ParseHlo(kProgram);
  for (const std::string_view bad : {"much", "1", "-0.1", "1e-4x"}) {
    Set(bad);
    EXPECT_EQ(ir::Message(Jitter().Run(*module).status()),
              Str("LAZULI_JITTER='", bad, "' is not a number from 0 to 1"));
  }
}

}  // namespace
}  // namespace lazuli::lowering
