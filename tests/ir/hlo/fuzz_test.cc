// Damaged text never crashes, hangs or takes much memory: it is parsed or refused with a sentence.

#include <gtest/gtest.h>

#include "ir/hlo/text/printer.h"
#include "ir/hlo/verifier.h"
#include "tests/ir/hlo/damage.h"
#include "tests/ir/hlo/hlo_text.h"

namespace lazuli::hlo {
namespace {

// What parses must be a valid module that prints and reads back.
void Try(const std::string& text) {
  const auto module = ParseModule(text);
  if (!module.ok()) {
    EXPECT_FALSE(module.status().message().empty());
    return;
  }
  EXPECT_TRUE(Verify(**module).ok()) << text;
  const auto again = ParseModule(ToString(**module));
  ASSERT_TRUE(again.ok()) << again.status() << "\n" << text;
  EXPECT_TRUE(Equal(**module, **again)) << text;
}

TEST(FuzzTest, DamagedUsesOfOpcodes) {
  Random random(1);
  for (const auto& [name, text] : OpcodeTexts()) {
    for (int i = 0; i < FuzzRounds(); ++i) Try(Damaged(text, random));
  }
}

TEST(FuzzTest, DamagedSamples) {
  Random random(2);
  for (const auto& [name, text] : SampleTexts()) {
    for (int i = 0; i < FuzzRounds(); ++i) Try(Damaged(text, random));
  }
}

TEST(FuzzTest, EveryPrefixOfASmallModule) {
  const std::string text = R"(HloModule m, input_output_alias={ {0}: (0, {}, may-alias) }
%f (a: f32[], b: f32[]) -> f32[] { %a = f32[] parameter(0) %b = f32[] parameter(1) ROOT %r = f32[] add(%a, %b) }
ENTRY %e { %p = f32[2,3]{1,0:T(8)} parameter(0), metadata={op_name="x\"y"}
%c = f32[] constant(-nan(0x7)) %d = c64[1] constant({(1, 2)})
ROOT %r = (f32[2]) tuple(f32[2] reduce(%p, %c)), dimensions={1}, to_apply=%f })";
  for (std::size_t n = 0; n <= text.size(); ++n) Try(text.substr(0, n));
}

TEST(FuzzTest, EveryByteAtTheStart) {
  for (int c = 0; c < 256; ++c) {
    Try(std::string(1, static_cast<char>(c)));
    Try(std::string(3, static_cast<char>(c)));
    Try(std::string("ENTRY e { ROOT p = ") + static_cast<char>(c));
    Try(std::string("ENTRY e { ROOT p = f32[] parameter(0), x=") + static_cast<char>(c));
  }
}

TEST(FuzzTest, LiteralsAndShapes) {
  Random random(3);
  const std::string literal =
      "{ { /*i0=0*/ { 1, -2.5 }, { nan, inf } }, { { 1e30, -0.0 }, { 5, nan(0x3) } } }";
  const std::string shape = "(f32[2,3]{0,1:T(8,128)S(1)}, (pred[], s4[<=7]), token[])";
  const Shape cube(DType::kF32, {2, 2, 2});
  for (int i = 0; i < 2000; ++i) {
    (void)ParseLiteral(Damaged(literal, random), cube);
    (void)ParseShape(Damaged(shape, random));
  }
}

}  // namespace
}  // namespace lazuli::hlo
