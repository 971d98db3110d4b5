#include "lazy/program/program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/lazy/program/program_text.h"

namespace lazuli::lazy {
namespace {

constexpr char kAdd[] =
    "HloModule add\n"
    "ENTRY main { x = f32[2] parameter(0) p = (s32[], f32[3]) parameter(1)\n"
    "  ROOT y = f32[2] add(x, x), metadata={op_name=\"here\" source_line=7} }\n";

TEST(ProgramTest, TheSignatureIsTheLeavesOfParametersAndRoot) {
  const ProgramPtr program = ProgramOf(kAdd);
  EXPECT_EQ(program->name(), "add");
  EXPECT_THAT(program->parameters(),
              testing::ElementsAre(Shape(DType::kF32, {2}), Shape(DType::kS32, {}),
                                   Shape(DType::kF32, {3})));
  EXPECT_THAT(program->results(), testing::ElementsAre(Shape(DType::kF32, {2})));
  const ProgramPtr checked = CheckedDoubling();
  EXPECT_THAT(checked->results(), testing::ElementsAre(Shape(DType::kF32, {2})));
  EXPECT_EQ(checked->num_outputs(), 2u);
}

TEST(ProgramTest, TheFingerprintIsOfWhatIsComputed) {
  const std::string text = kAdd;
  const auto replaced = [&](std::string_view from, std::string_view to) {
    std::string other = text;
    for (std::size_t at; (at = other.find(from)) != std::string::npos;)
      other.replace(at, from.size(), to);
    return ProgramOf(other)->fingerprint();
  };
  const Fingerprint here = ProgramOf(text)->fingerprint();
  EXPECT_EQ(replaced("source_line=7", "source_line=8"), here);
  EXPECT_EQ(replaced("HloModule add", "HloModule sum"), here);
  EXPECT_EQ(replaced("main", "entry"), here);
  EXPECT_EQ(replaced(" p = ", " q = "), here);
  EXPECT_NE(replaced("f32[2]", "f32[4]"), here);
  EXPECT_NE(replaced("add(x", "multiply(x"), here);
  EXPECT_NE(replaced("s32[]", "u32[]"), here);
  // The same in every process: this is a constant.
  EXPECT_EQ(here.ToString(), "e032f67a5196fae87f3ba6115a33dde9");
  ProgramCheck check{.message = {"double", "value ", " is above 11"}, .function = {}};
  const ProgramPtr doubling = CheckedDoubling();
  EXPECT_NE(Program(doubling->shared_module(), {check}).fingerprint(), doubling->fingerprint());
}

TEST(ProgramTest, AGradientFitsOrIsRefused) {
  const ProgramPtr program = ProgramOf(kAdd);
  const auto derived = program->gradient();
  ASSERT_TRUE(derived.ok()) << derived.status();
  EXPECT_EQ((*derived)->parameters().size(), 4u);
  const ProgramPtr gradient = ProgramOf(
      "HloModule gradient\n"
      "ENTRY main { x = f32[2] parameter(0) n = s32[] parameter(1) z = f32[3] parameter(2)\n"
      "  dy = f32[2] parameter(3) dx = f32[2] add(dy, dy)\n"
      "  ROOT r = (f32[2], f32[3]) tuple(dx, z) }\n");
  const auto with = program->WithGradient(gradient);
  ASSERT_TRUE(with.ok()) << with.status();
  EXPECT_EQ((*with)->gradient().value(), gradient);
  EXPECT_EQ((*with)->fingerprint(), program->fingerprint());
  EXPECT_EQ(program->WithGradient(program).status().message(),
            "the gradient has 3 parameters, not 4");
  const ProgramPtr wrong = ProgramOf(
      "HloModule gradient\n"
      "ENTRY main { x = f32[2] parameter(0) n = s32[] parameter(1) z = f32[3] parameter(2)\n"
      "  dy = f32[2] parameter(3) ROOT r = (f32[3], f32[3]) tuple(z, z) }\n");
  EXPECT_EQ(program->WithGradient(wrong).status().message(),
            "the gradient's result 0 is f32[3], not f32[2]");
}

}  // namespace
}  // namespace lazuli::lazy
