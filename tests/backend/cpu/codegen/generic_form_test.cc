// Generic code: bodies of equal structure have the same code, whatever their sizes are.
#include "backend/cpu/codegen/generic_form.h"

#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/cpu/codegen/generate_kernel.h"
#include "ir/support/str.h"
#include "tests/support/hlo_test.h"

namespace lazuli::cpu {
namespace {

using testing::ElementsAre;

struct Described {
  std::string structure, ir;
  std::vector<int64_t> numbers;
};

// Of the one computation in the text.
Described Describe(const std::string& body) {
  const auto module = ParseHlo("ENTRY " + body);
  GenericForm form;
  const auto shape = ShapeOfKernel(*module->entry(), &form);
  EXPECT_TRUE(shape.ok()) << shape.status();
  const auto ir = GenericIr(*module->entry());
  EXPECT_TRUE(ir.ok()) << ir.status();
  return {form.structure(), *ir, form.numbers()};
}

std::string Bias(int64_t rows, int64_t columns) {
  return ir::Str("main { x = f32[", rows, ",", columns, "] parameter(0)  b = f32[", columns,
                 "] parameter(1)  w = f32[", rows, ",", columns,
                 "] broadcast(b), dimensions={1}  ROOT r = f32[", rows, ",", columns,
                 "] add(x, w) }");
}

TEST(GenericFormTest, SizesAreNumbers) {
  const Described small = Describe(Bias(5, 100)), large = Describe(Bias(3000, 777));
  EXPECT_EQ(small.structure, large.structure);
  EXPECT_EQ(small.ir, large.ir);
  EXPECT_THAT(small.numbers, ElementsAre(5, 100));
  EXPECT_THAT(large.numbers, ElementsAre(3000, 777));
}

TEST(GenericFormTest, WhatDecidesTheCodeIsStructure) {
  const std::string some = Describe(Bias(5, 100)).structure;
  EXPECT_NE(Describe(Bias(5, 7)).structure, some);      // no room for a vector
  EXPECT_NE(Describe(Bias(100, 100)).structure, some);  // one number, not two
  EXPECT_NE(
      Describe("main { x = f32[5,100] parameter(0)  b = f32[100] parameter(1)  w = f32[5,100] "
               "broadcast(b), dimensions={1}  ROOT r = f32[5,100] subtract(x, w) }")
          .structure,
      some);
  EXPECT_NE(
      Describe("main { x = f64[5,100] parameter(0)  b = f64[100] parameter(1)  w = f64[5,100] "
               "broadcast(b), dimensions={1}  ROOT r = f64[5,100] add(x, w) }")
          .structure,
      some);
  const auto scaled = [](const std::string& by) {
    return Describe("main { x = f32[50] parameter(0)  c = f32[] constant(" + by +
                    ")  b = f32[50] broadcast(c), dimensions={}  ROOT r = f32[50] multiply(x, b) }")
        .structure;
  };
  EXPECT_NE(scaled("2"), scaled("3"));
  EXPECT_NE(scaled("0"), scaled("-0"));
}

TEST(GenericFormTest, ComplexNumbersHaveCodeOfTheirOwnSizes) {
  EXPECT_EQ(Describe("main { x = c64[50] parameter(0)  ROOT r = c64[50] negate(x) }").structure,
            "");
}

// Bodies of all forms that generic code has, by two sizes.
using Body = std::function<std::string(int64_t, int64_t)>;
const std::pair<const char*, Body> kBodies[] = {
    {"a line",
     [](int64_t m, int64_t) {
       return ir::Str("main { x = f32[", m, "] parameter(0)  ROOT r = f32[", m,
                      "] exponential(x) }");
     }},
    {"rows and columns", Bias},
    {"a transpose, in tiles",
     [](int64_t m, int64_t n) {
       return ir::Str("main { x = f32[", m, ",", n, "] parameter(0)  y = f32[", n, ",", m,
                      "] parameter(1)  t = f32[", n, ",", m,
                      "] transpose(x), dimensions={1,0}  ROOT r = f32[", n, ",", m,
                      "] add(t, y) }");
     }},
    {"a slice by steps, from behind",
     [](int64_t m, int64_t n) {
       return ir::Str("main { x = s32[", m, ",", 3 * n, "] parameter(0)  s = s32[", m, ",", n,
                      "] slice(x), slice={[0:", m, "], [1:", 3 * n, ":3]}  v = s32[", m, ",", n,
                      "] reverse(s), dimensions={0,1}  ROOT r = s32[", m, ",", n, "] negate(v) }");
     }},
    {"an iota",
     [](int64_t m, int64_t n) {
       return ir::Str("main { i = f32[", m, ",", n, "] iota(), iota_dimension=0  j = f32[", m, ",",
                      n, "] iota(), iota_dimension=1  ROOT r = f32[", m, ",", n,
                      "] subtract(i, j) }");
     }},
    {"a gather",
     [](int64_t m, int64_t n) {
       return ir::Str("main { x = f32[", n, ",7] parameter(0)  i = s32[", m,
                      "] parameter(1)  g = f32[", m,
                      ",7] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, "
                      "start_index_map={0}, index_vector_dim=1, slice_sizes={1,7}  ROOT r = f32[",
                      m, ",7] negate(g) }");
     }},
    {"sums of rows",
     [](int64_t m, int64_t n) {
       return ir::Str("main { x = f32[", m, ",", n,
                      "] parameter(0)  z = f32[] constant(0)  ROOT r = f32[", m,
                      "] reduce(x, z), dimensions={1}, to_apply=sum }");
     }},
    {"sums of columns",
     [](int64_t m, int64_t n) {
       return ir::Str("main { x = f32[", m, ",", n,
                      "] parameter(0)  z = f32[] constant(1)  ROOT r = f32[", n,
                      "] reduce(x, z), dimensions={0}, to_apply=sum }");
     }},
    {"sums over the middle",
     [](int64_t m, int64_t n) {
       return ir::Str("main { x = bf16[3,", m, ",", n,
                      "] parameter(0)  z = bf16[] constant(0)  ROOT r = bf16[3,", n,
                      "] reduce(x, z), dimensions={1}, to_apply=bsum }");
     }},
    {"extremes of rows, and what they are of",
     [](int64_t m, int64_t n) {
       return ir::Str("main { x = f32[", m, ",", n, "] parameter(0)  e = f32[", m, ",", n,
                      "] exponential(x)  z = f32[] constant(-inf)  r = f32[", m,
                      "] reduce(e, z), dimensions={1}, to_apply=most  ROOT t = (f32[", m, "], f32[",
                      m, ",", n, "]) tuple(r, e) }");
     }},
    {"the sum of all",
     [](int64_t m, int64_t n) {
       return ir::Str("main { x = f32[", m, ",", n,
                      "] parameter(0)  z = f32[] constant(0)  ROOT r = f32[] reduce(x, z), "
                      "dimensions={0,1}, to_apply=sum }");
     }},
};

constexpr char kReducers[] = R"(
sum { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] add(a, b) }
bsum { a = bf16[] parameter(0)  b = bf16[] parameter(1)  ROOT c = bf16[] add(a, b) }
most { a = f32[] parameter(0)  b = f32[] parameter(1)  ROOT c = f32[] maximum(a, b) }
)";

// The promise itself: the structure says all that decides the code.
TEST(GenericFormTest, EqualStructuresHaveEqualCode) {
  std::mt19937_64 random(7);
  const auto size = [&] {
    const int64_t most[] = {4, 20, 40, 300, 3000};
    return std::uniform_int_distribution<int64_t>(1, most[random() % 5])(random);
  };
  for (const auto& [name, body] : kBodies) {
    SCOPED_TRACE(name);
    std::map<std::string, std::string> code;
    std::size_t shared = 0;
    for (int k = 0; k < 60; ++k) {
      const int64_t m = size(), n = size();
      SCOPED_TRACE(ir::Str(m, " ", n));
      const auto module = ParseHlo(kReducers + ("ENTRY " + body(m, n)));
      GenericForm form;
      ASSERT_TRUE(ShapeOfKernel(*module->entry(), &form).ok());
      ASSERT_NE(form.structure(), "");
      const auto ir = GenericIr(*module->entry());
      ASSERT_TRUE(ir.ok()) << ir.status();
      const auto [it, is_new] = code.try_emplace(form.structure(), *ir);
      ASSERT_EQ(it->second, *ir);
      shared += !is_new;
    }
    EXPECT_GT(shared, 20);
  }
}

}  // namespace
}  // namespace lazuli::cpu
