// Round trips of modules as real tools print them, in every print mode.

#include <gtest/gtest.h>

#include "ir/hlo/text/printer.h"
#include "ir/hlo/verifier.h"
#include "tests/ir/hlo/hlo_text.h"

namespace lazuli::hlo {
namespace {

void ExpectRoundTrips(const std::string& text) {
  const auto module = Parse(text);
  EXPECT_TRUE(Verify(*module).ok()) << Verify(*module);
  for (const PrintOptions& options :
       {PrintOptions{}, PrintOptions::Short(), PrintOptions{.operand_shapes = true},
        PrintOptions{.canonical_names = true},
        PrintOptions{.percent = false, .program_shapes = false}}) {
    const std::string printed = ToString(*module, options);
    const auto again = Parse(printed);
    EXPECT_TRUE(Equal(*module, *again)) << printed;
    EXPECT_EQ(ToString(*again, options), printed);
  }
}

TEST(SamplesTest, JaxlibsModulesRoundTrip) {
  const auto samples = SampleTexts();
  EXPECT_GE(samples.size(), 16u);
  for (const auto& [name, text] : samples) {
    SCOPED_TRACE(name);
    ExpectRoundTrips(text);
  }
}

TEST(SamplesTest, JaxlibsModulesPrintAsTheyWere) {
  for (const auto& [name, text] : SampleTexts()) {
    SCOPED_TRACE(name);
    // jaxlib counts the elements of long lists in comments.
    std::string expected = text;
    for (std::size_t at; (at = expected.find("/*index=")) != std::string::npos;) {
      expected.erase(at, expected.find("*/", at) + 2 - at);
    }
    while (expected.ends_with("\n")) expected.pop_back();
    std::string printed = ToString(*Parse(text), {.percent = false, .program_shapes = false});
    while (printed.ends_with("\n")) printed.pop_back();
    EXPECT_EQ(printed, expected);
  }
}

TEST(SamplesTest, EveryUseOfAnOpcodeRoundTrips) {
  const auto texts = OpcodeTexts();
  EXPECT_GE(texts.size(), 150u);
  for (const auto& [name, text] : texts) {
    SCOPED_TRACE(name);
    ExpectRoundTrips(text);
  }
}

TEST(SamplesTest, EveryOpcodeIsAmongThem) {
  std::string all;
  for (const auto& [name, text] : OpcodeTexts()) all += Parse(text)->ToString();
  std::string missing;
  for (int i = 0; i < NumOpcodes(); ++i) {
    const std::string_view text = OpcodeText(static_cast<Opcode>(i));
    if (all.find(Str(" ", text, "(")) == std::string::npos) missing += Str(text, " ");
  }
  EXPECT_EQ(missing, "");
}

}  // namespace
}  // namespace lazuli::hlo
