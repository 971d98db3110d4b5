#include <string>

#include <gtest/gtest.h>

#include "backend/npu/compiler/supported.h"
#include "ir/support/status.h"
#include "tests/backend/npu/compiler/compiled.h"

namespace lazuli::npu {
namespace {

TEST(NpuFoldTest, SumsOf64Bits) {
  for (const char* const dims : {"{0}", "{1}", "{0,2}", "{0,1,2}"}) {
    const std::string_view kept = dims == std::string_view("{0}")     ? "3,70"
                                  : dims == std::string_view("{1}")   ? "45,70"
                                  : dims == std::string_view("{0,2}") ? "3"
                                                                      : "";
    for (const char* const op : {"add", "maximum"})
      ExpectCompiled(
          Str("f { a = s64[] parameter(0) b = s64[] parameter(1) ROOT c = s64[] ", op, "(a, b) }",
              "ENTRY e { x = s64[45,3,70] parameter(0) i = s64[] constant(-4) ROOT y = s64[", kept,
              "] reduce(x, i), dimensions=", dims, ", to_apply=f }"),
          {.values = RandomValues::kSpecial});
  }
}

// As frameworks write argmax: NaN wins, then the first.
TEST(NpuFoldTest, LargestWithItsIndex) {
  for (const int64_t n : {7, 40, 700}) {
    ExpectCompiled(Str(R"(
      larger { a = f32[] parameter(0) i = s64[] parameter(1) b = f32[] parameter(2) j = s64[] parameter(3)
        e = pred[] compare(a, a), direction=EQ  isnan = pred[] not(e)  g = pred[] compare(a, b), direction=GT
        greater = pred[] or(g, isnan)  other = pred[] compare(b, b), direction=NE  q = pred[] compare(a, b), direction=EQ
        both = pred[] and(isnan, other)  same = pred[] or(q, both)  l = pred[] compare(i, j), direction=LT
        earlier = pred[] and(same, l)  differs = pred[] not(same)  strictly = pred[] and(greater, differs)
        keep = pred[] or(strictly, earlier)  v = f32[] select(keep, a, b)  k = s64[] select(keep, i, j)
        ROOT t = (f32[], s64[]) tuple(v, k) }
      ENTRY e { x = f32[5,)",
                       n, "] parameter(0) n = s64[5,", n, R"(] iota(), iota_dimension=1
        low = f32[] constant(-inf) last = s64[] constant(9223372036854775807)
        ROOT r = (f32[5], s64[5]) reduce(x, n, low, last), dimensions={1}, to_apply=larger })"),
                   {.values = RandomValues::kSpecial});
  }
}

TEST(NpuFoldTest, WhatMustBeInOrderIsWhileItIsShort) {
  auto text = [](int64_t n) {
    return Str(
        "f { a = f32[] parameter(0) b = f32[] parameter(1) h = f32[] constant(0.5) c = f32[] "
        "multiply(a, h) "
        "ROOT d = f32[] add(c, b) } ENTRY e { x = f32[9,",
        n,
        "] parameter(0) i = f32[] parameter(1) "
        "ROOT y = f32[9] reduce(x, i), dimensions={1}, to_apply=f }");
  };
  ExpectCompiled(text(20));
  const auto module = ParseHlo(text(40));
  const auto refusal = WhyNot(*module->entry()->root(), Config());
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->sentence, "a reduction of 40 elements strictly in order");
}

}  // namespace
}  // namespace lazuli::npu
