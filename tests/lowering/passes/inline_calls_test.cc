#include "lowering/passes/inline_calls.h"

#include <string>
#include <string_view>

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

TEST(InlineCallsTest, WritesOutFusionsThatTheModuleCameWith) {
  ExpectPass(InlineCalls(), R"(
    add { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
    inner { x = f32[4,8] parameter(0)  ROOT y = f32[4,8] abs(x) }
    fused {
      p = f32[4,8] parameter(0)
      f = f32[4,8] fusion(p), kind=kLoop, calls=inner
      zero = f32[] constant(0)
      r = f32[4] reduce(f, zero), dimensions={1}, to_apply=add
      ROOT s = f32[4] sqrt(r)
    }
    ENTRY main {
      // CHECK-LABEL: ENTRY
      p = f32[4,8] parameter(0)
      // CHECK-NOT:   fusion(
      // CHECK:       %[[A:.*]] = f32[4,8] abs(%p)
      // CHECK:       %[[R:.*]] = f32[4] reduce(%[[A]], {{.*}})
      // CHECK:       ROOT {{.*}} sqrt(%[[R]])
      ROOT f = f32[4] fusion(p), kind=kLoop, calls=fused
    })");
}

TEST(InlineCallsTest, KeepsFusionsThatAreOrderedAmongOthers) {
  ExpectNoChange(InlineCalls(), R"(
    fused { p = f32[4] parameter(0)  ROOT s = f32[4] sqrt(p) }
    ENTRY main {
      p = f32[4] parameter(0)
      a = f32[4] abs(p)
      f = f32[4] fusion(p), kind=kLoop, calls=fused, control-predecessors={a}
      g = f32[4] fusion(p), kind=kLoop, calls=fused
      b = f32[4] abs(p), control-predecessors={g}
      ROOT t = (f32[4], f32[4], f32[4], f32[4]) tuple(a, f, g, b)
    })");
}

// `size` negations.
std::string LargeBody(std::string_view name, int size) {
  std::string text = Str(name, " { x0 = f32[] parameter(0)\n");
  for (int k = 1; k < size; ++k) text += Str("x", k, " = f32[] negate(x", k - 1, ")\n");
  return text + Str("ROOT y = f32[] negate(x", size - 1, ") }\n");
}

TEST(InlineCallsTest, ALargeBodyGoesToItsOnlyCaller) {
  const auto once = ParseHlo(LargeBody("f", 5000) +
                             "ENTRY main { p = f32[] parameter(0) ROOT c = f32[] call(p), "
                             "to_apply=f }");
  EXPECT_TRUE(*InlineCalls().Run(*once));
  const auto twice = ParseHlo(LargeBody("f", 5000) +
                              "ENTRY main { p = f32[] parameter(0) c = f32[] call(p), to_apply=f "
                              "ROOT d = f32[] call(c), to_apply=f }");
  EXPECT_FALSE(*InlineCalls().Run(*twice));
}

// Instructions after the pass of `levels` functions that each call the next one twice.
int64_t CountAfterInlining(int levels) {
  std::string text = "level0 { x = f32[] parameter(0)  ROOT y = f32[] add(x, x) }\n";
  for (int i = 1; i < levels; ++i) {
    text += Str("level", i, " { x = f32[] parameter(0)  y = f32[] call(x), to_apply=level", i - 1,
                "  ROOT z = f32[] call(y), to_apply=level", i - 1, " }\n");
  }
  text += Str("ENTRY main { x = f32[] parameter(0)  ROOT y = f32[] call(x), to_apply=level",
              levels - 1, " }\n");
  const auto module = ParseHlo(text);
  EXPECT_TRUE(InlineCalls().Run(*module).ok());
  return module->instruction_count();
}

TEST(InlineCallsTest, LevelsThatCallTwiceDoNotDouble) {
  EXPECT_LT(CountAfterInlining(64), 64 * 1000);
  EXPECT_LT(CountAfterInlining(128), 2 * CountAfterInlining(64) + 4000);
}

}  // namespace
}  // namespace lazuli::lowering
