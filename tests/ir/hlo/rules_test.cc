// What breaks a rule is refused by a sentence that names it, and every rule has something that
// breaks it: the rows of testdata/broken.txt, and the tables of the tests of shapes and verifier.

#include <filesystem>
#include <regex>

#include <gtest/gtest.h>

#include "ir/hlo/opcode.h"
#include "ir/support/str.h"
#include "tests/ir/hlo/hlo_text.h"

namespace lazuli::hlo {
namespace {

// (message, module): the name of a use is what its module is refused with.
std::vector<std::pair<std::string, std::string>> BrokenTexts() {
  return TextsOfUses("tests/ir/hlo/testdata/broken.txt");
}

TEST(RulesTest, BrokenModulesAreRefusedWithTheirMessage) {
  for (const auto& [message, text] : BrokenTexts()) {
    const auto module = ParseModule(text);
    const std::string error = module.ok() ? "no error" : ErrorOf(module.status());
    const std::size_t start = error.find(": ") + 2;
    EXPECT_EQ(error.substr(start, error.find('\n') - start), message) << text;
    EXPECT_NE(error.find("ROOT r = "), std::string::npos) << "the line is not shown: " << error;
  }
}

// The text with string literals that go on in the next line joined.
std::string Joined(const std::string& text) {
  return std::regex_replace(text, std::regex("\"\\s*\n\\s*\""), "");
}

std::string TestTexts() {
  std::string all;
  for (const char* file :
       {"shapes/shape_inference_test.cc", "verifier_test.cc", "testdata/broken.txt"})
    all += Joined(ReadText(std::filesystem::path("tests/ir/hlo") / file));
  return all;
}

// Every call that makes an error message, by the longest literal piece of it.
std::vector<std::string> MessagePieces(const std::string& source) {
  static const std::regex call(R"(\b(Error|Broken|Internal)\(([^;]*);)");
  static const std::regex literal("\"((?:[^\"\\\\]|\\\\.)*)\"");
  std::vector<std::string> pieces;
  const std::string text = Joined(source);
  for (std::sregex_iterator i(text.begin(), text.end(), call), end; i != end; ++i) {
    const std::string body = (*i)[2];
    std::string longest;
    for (std::sregex_iterator k(body.begin(), body.end(), literal); k != end; ++k) {
      if ((*k)[1].length() > static_cast<std::ptrdiff_t>(longest.size())) longest = (*k)[1];
    }
    const std::size_t first = longest.find_first_not_of(" :,(");
    if (first == std::string::npos) continue;
    pieces.push_back(longest.substr(first, longest.find_last_not_of(' ') + 1 - first));
  }
  return pieces;
}

TEST(RulesTest, EveryRuleHasSomethingThatBreaksIt) {
  const std::string tests = TestTexts();
  int count = 0;
  std::string missing;
  for (const auto& entry : std::filesystem::recursive_directory_iterator("ir/hlo")) {
    const std::string name = entry.path().filename();
    const bool rules = name.starts_with("shape_inference") || name.starts_with("verifier");
    if (!rules || !name.ends_with(".cc")) continue;
    for (const std::string& piece : MessagePieces(ReadText(entry.path()))) {
      ++count;
      if (tests.find(piece) == std::string::npos) missing += Str(name, ": ", piece, "\n");
    }
  }
  EXPECT_GE(count, 100);
  EXPECT_EQ(missing, "");
}

// Elementwise opcodes share their rules, which shape_inference_test.cc tries for all of them.
TEST(RulesTest, EveryOpcodeHasSomethingThatBreaksIt) {
  const std::string tests = TestTexts();
  std::string missing;
  for (int i = 0; i < NumOpcodes(); ++i) {
    const auto opcode = static_cast<Opcode>(i);
    if (Traits(opcode).elementwise || opcode == Opcode::kParameter) continue;
    if (tests.find(Str(OpcodeText(opcode), ": ")) == std::string::npos)
      missing += Str(OpcodeText(opcode), " ");
  }
  EXPECT_EQ(missing, "");
}

}  // namespace
}  // namespace lazuli::hlo
