#include <string>

#include <gtest/gtest.h>

#include "backend/npu/compiler/supported.h"
#include "ir/hlo/opcode.h"
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

// One instruction of every kind and type that the compiler takes, on infinities, NaN, extremes.
TEST(NpuElementwiseTest, EveryOpcodeIsTheEvaluators) {
  int taken = 0;
  for (const char* const type :
       {"pred", "s8", "u8", "s16", "s32", "u32", "bf16", "f32", "s64", "u64"}) {
    for (int o = 0; o < hlo::NumOpcodes(); ++o) {
      const auto opcode = static_cast<hlo::Opcode>(o);
      const hlo::OpcodeTraits& traits = hlo::Traits(opcode);
      if (!traits.elementwise || traits.arity < 1 || traits.arity > 2 ||
          !hlo::Accepts(opcode, *ParseDType(type)))
        continue;
      const bool special =
          opcode == hlo::Opcode::kCompare || opcode == hlo::Opcode::kConvert ||
          opcode == hlo::Opcode::kBitcastConvert || opcode == hlo::Opcode::kReducePrecision ||
          opcode == hlo::Opcode::kStochasticConvert || opcode == hlo::Opcode::kComplex;
      if (special) continue;
      const std::string out = opcode == hlo::Opcode::kIsFinite ? "pred" : type;
      const auto module = ParseHlo(
          Str("ENTRY e { x = ", type, "[517] parameter(0) ",
              traits.arity == 2 ? Str("y = ", type, "[517] parameter(1) ") : "", "ROOT z = ", out,
              "[517] ", traits.text, "(x", traits.arity == 2 ? ", y" : "", ") }"));
      if (WhyNot(*module->entry()->root(), Config())) continue;
      ++taken;
      ExpectCompiled(*module, {.values = RandomValues::kSpecial});
    }
    for (const char* const direction : {"EQ", "NE", "LT", "LE", "GT", "GE"})
      ExpectCompiled(
          Str("ENTRY e { x = ", type, "[517] parameter(0) y = ", type,
              "[517] parameter(1) ROOT z = pred[517] compare(x, y), direction=", direction, " }"),
          {.values = RandomValues::kSpecial});
    ExpectCompiled(Str("ENTRY e { m = pred[517] parameter(0) x = ", type, "[517] parameter(1) y = ",
                       type, "[517] parameter(2) ROOT z = ", type, "[517] select(m, x, y) }"),
                   {.values = RandomValues::kSpecial});
    for (const char* const to :
         {"pred", "s8", "u8", "s16", "s32", "u32", "bf16", "f32", "s64", "u64"})
      ExpectCompiled(
          Str("ENTRY e { x = ", type, "[517] parameter(0) ROOT z = ", to, "[517] convert(x) }"),
          {.values = RandomValues::kSpecial});
    if (HasFailure()) return;
  }
  EXPECT_GE(taken, 150);
}

// Kernels that together want more than there is are planned again with less.
TEST(NpuElementwiseTest, ATinyScratchpadIsEnough) {
  Config tiny;
  tiny.spm.kb = 1;
  tiny.acc.rows = 8;
  std::string text = "ENTRY e {\n", last = "p0";
  for (int i = 0; i < 12; ++i) text += Str("p", i, " = s64[300] parameter(", i, ")\n");
  for (int i = 1; i < 12; ++i) {
    text += Str(i == 11 ? "ROOT " : "", "v", i, " = s64[300] ",
                i % 2 == 0 ? "multiply(" : "maximum(", last, ", p", i, ")\n");
    last = Str("v", i);
  }
  ExpectCompiled(text + "}", {.config = tiny});
  ExpectCompiled(
      "ENTRY e { a = s8[70,90] parameter(0) b = s8[90,50] parameter(1) ROOT c = s32[70,50] dot(a, "
      "b), "
      "lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
      {.config = tiny});
}

TEST(NpuElementwiseTest, LongChainsTakeNoStack) {
  std::string text = "ENTRY e {\nx = s32[5] parameter(0) y = s32[5] parameter(1)\n", last = "x";
  for (int i = 0; i < 5000; ++i) {
    text += Str(i == 4999 ? "ROOT " : "", "v", i, " = s32[5] ",
                i % 2 == 0 ? "multiply(" : "subtract(", last, ", y)\n");
    last = Str("v", i);
  }
  Config config;
  config.strict = false;  // for time
  ExpectCompiled(text + "}", {.config = config});
}

TEST(NpuElementwiseTest, RefusesWithAReason) {
  const auto module = ParseHlo("ENTRY e { x = f64[3] parameter(0) ROOT y = f64[3] negate(x) }");
  const auto refusal = WhyNot(*module->entry()->root(), Config());
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->code, "unsupported-dtype");
  EXPECT_EQ(refusal->sentence, "the vector unit does not compute with f64");
  EXPECT_EQ(Compile(*module, Config()).status().message(),
            "unsupported-dtype: negate y: the vector unit does not compute with f64");
}

}  // namespace
}  // namespace lazuli::npu
