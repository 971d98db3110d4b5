#include "lowering/passes/inline_calls.h"

#include <string>

#include <gtest/gtest.h>

#include "ir/support/status.h"
#include "tests/support/hlo_test.h"
#include "tests/support/pass_test.h"

namespace lazuli::lowering {
namespace {

TEST(InlineCallsTest, InlinesNestedCallsInOneRun) {
  ExpectPass(InlineCalls(), R"(
    double { x = f32[] parameter(0)  ROOT y = f32[] add(x, x) }
    outer {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      c = f32[] call(b), to_apply=double
      ROOT s = f32[] subtract(c, a)
    }
    ENTRY main {
      // CHECK-LABEL: ENTRY
      p = f32[] parameter(0)
      q = f32[] parameter(1)
      // CHECK-NOT:   call(
      // CHECK:       %[[Y:.*]] = f32[] add(%p, %p)
      // CHECK:       %[[S:.*]] = f32[] subtract(%[[Y]], %q)
      // CHECK:       ROOT {{.*}} negate(%[[S]])
      s = f32[] call(q, p), to_apply=outer
      ROOT n = f32[] negate(s)
    })");
}

TEST(InlineCallsTest, ACallOfAParameterIsItsOperand) {
  ExpectPass(InlineCalls(), R"(
    second { a = f32[] parameter(0)  ROOT b = f32[] parameter(1) }
    ENTRY main {
      p = f32[] parameter(0)
      q = f32[] parameter(1)
      c = f32[] call(p, q), to_apply=second
      // CHECK: ROOT {{.*}} negate(%q)
      ROOT n = f32[] negate(c)
    })");
}

TEST(InlineCallsTest, KeepsCallsWithSideEffects) {
  ExpectNoChange(InlineCalls(), R"(
    noise {
      a = f32[] parameter(0)
      b = f32[] parameter(1)
      ROOT r = f32[4] rng(a, b), distribution=rng_uniform
    }
    ENTRY main {
      p = f32[] parameter(0)
      q = f32[] parameter(1)
      ROOT c = f32[4] call(p, q), to_apply=noise
    })");
}

TEST(InlineCallsTest, StopsBeforeItExplodes) {
  std::string text = "f0 { x = f32[] parameter(0)  ROOT y = f32[] add(x, x) }\n";
  for (int i = 1; i < 64; ++i) {
    text += ir::Str("f", i, " { x = f32[] parameter(0)  y = f32[] call(x), to_apply=f", i - 1,
                    "  ROOT z = f32[] call(y), to_apply=f", i - 1, " }\n");
  }
  text += "ENTRY main { x = f32[] parameter(0)  ROOT y = f32[] call(x), to_apply=f63 }\n";
  const auto module = ParseHlo(text);
  ASSERT_TRUE(InlineCalls().Run(*module).ok());
  EXPECT_LT(module->instruction_count(), 2'000'000);
}

}  // namespace
}  // namespace lazuli::lowering
