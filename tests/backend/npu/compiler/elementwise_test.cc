#include <string>

#include <gtest/gtest.h>

#include "backend/npu/compiler/supported.h"
#include "ir/support/status.h"
#include "tests/backend/npu/compiler/compiled.h"

namespace lazuli::npu {
namespace {

TEST(NpuElementwiseTest, AddsArraysOfEveryRank) {
  for (const char* dims : {"", "1", "7", "300", "3,5", "2,3,4,5", "2,1,3,1,2,2", "40000"})
    ExpectCompiled(Str("ENTRY e { x = f32[", dims, "] parameter(0) y = f32[", dims,
                       "] parameter(1) ROOT z = f32[", dims, "] add(x, y) }"));
}

TEST(NpuElementwiseTest, NothingIsDoneWithoutElements) {
  ExpectCompiled("ENTRY e { x = f32[0,3] parameter(0) ROOT y = f32[0,3] negate(x) }");
}

TEST(NpuElementwiseTest, ManyInputsTakeSeveralPrograms) {
  std::string text = "ENTRY e {\n", sum = "p0";
  for (int i = 0; i < 9; ++i) text += Str("p", i, " = f32[33,7] parameter(", i, ")\n");
  for (int i = 1; i < 9; ++i) {
    const std::string next = Str("sum", i);
    text += Str(i == 8 ? "ROOT " : "", next, " = f32[33,7] ",
                i % 2 == 0 ? "multiply(" : "subtract(", sum, ", p", i, ")\n");
    sum = next;
  }
  ExpectCompiled(text + "}");
}

TEST(NpuElementwiseTest, OverlappingStripsOfALargeArray) {
  Config small;
  small.spm.kb = 16;
  ExpectCompiled(R"(ENTRY e {
    x = f32[90,70] parameter(0)
    y = f32[70] parameter(1)
    b = f32[90,70] broadcast(y), dimensions={1}
    a = f32[90,70] add(x, b)
    c = f32[90,70] exponential(a)
    u = f32[70,90] transpose(c), dimensions={1,0}
    ROOT t = (f32[90,70], f32[70,90]) tuple(a, u)
  })",
                 {.config = small});
}

TEST(NpuElementwiseTest, RefusesWithAReason) {
  const auto module = ParseHlo("ENTRY e { x = f64[3] parameter(0) ROOT y = f64[3] negate(x) }");
  const auto refusal = WhyNot(*module->entry()->root(), Config());
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, "unsupported-dtype");
  EXPECT_EQ(refusal->reason, "the vector unit does not compute with f64");
  EXPECT_EQ(Compile(*module, Config()).status().message(),
            "unsupported-dtype: negate y: the vector unit does not compute with f64");
}

}  // namespace
}  // namespace lazuli::npu
