#include "lazy/debug/debug_level.h"

#include <cstdio>
#include <fstream>
#include <optional>
#include <sstream>

#include <unistd.h>

#include "ir/support/flags.h"
#include "ir/support/str.h"
#include "ir/support/text_file.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

// What each level shows of one compile.
std::vector<std::string> TextsOfLevels() {
  TestDevice();
  GetProgramCache().Clear();
  std::vector<std::string> texts;
  SetCompileObserver([&](const CompileEvent& event) {
    for (int64_t level = 0; level <= 5; ++level) texts.push_back(CompileText(event, level));
  });
  {
    const SiteScope site(ir::InternSite("train.cc", "int main()", 9));
    const Tensor cubes = Floats({1, 2, 3}) * Floats({1, 2, 3}) * Floats({1, 2, 3});
    EXPECT_TRUE(Sync().ok());
  }
  SetCompileObserver({});
  return texts;
}

TEST(DebugLevelTest, EachLevelShowsMore) {
  const std::vector<std::string> texts = TextsOfLevels();
  ASSERT_EQ(texts.size(), 6u);
  EXPECT_EQ(texts[0], "");
  EXPECT_EQ(texts[1], "");
  EXPECT_THAT(texts[2], MatchesRegex("lazuli: compiled SyncTensorsGraph\\.[0-9]+ for interpreter:0 "
                                     "in [0-9]+ ms: .*\\(train\\.cc:9\\)\n"));
  EXPECT_THAT(texts[3], AllOf(StartsWith(texts[2]), HasSubstr("ENTRY"), HasSubstr("multiply(")));
  EXPECT_THAT(texts[4], StartsWith(texts[3]));
  EXPECT_GT(texts[4].size(), texts[3].size());
  EXPECT_EQ(texts[5], texts[4]);  // LLVM IR is printed by the code generator
}

TEST(DebugLevelTest, WhatIsShownMayGoToAFile) {
  const std::string path = Str(testing::TempDir(), "/debug.", getpid(), ".txt");
  std::remove(path.c_str());
  ASSERT_TRUE(ir::SetFlag("LAZULI_DEBUG_FILE", testing::TempDir() + "/debug.%p.txt").ok());
  testing::internal::CaptureStderr();
  ir::ShowDebug("one\n");
  ir::ShowDebug("two\n");
  ASSERT_TRUE(ir::SetFlag("LAZULI_DEBUG_FILE", "/proc/lazuli/debug.txt").ok());
  ir::ShowDebug("three\n");
  ir::ShowDebug("four\n");
  ASSERT_TRUE(ir::SetFlag("LAZULI_DEBUG_FILE", "").ok());
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              MatchesRegex("lazuli: LAZULI_DEBUG_FILE: cannot open /proc/lazuli/debug.txt: "
                           "[^\n]*\n"));
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), "one\ntwo\n");
  std::remove(path.c_str());
}

TEST(DebugLevelTest, ASecondCompileSaysWhy) {
  TestDevice();
  GetProgramCache().Clear();
  std::vector<std::string> texts;
  SetCompileObserver([&](const CompileEvent& event) { texts.push_back(CompileText(event, 2)); });
  for (const double exponent : {3.0, 5.0}) {
    const SiteScope site(ir::InternSite("train.cc", "int main()", 9));
    const Tensor power = PowNumber(Floats({1, 2, 3}), Number(exponent));
    EXPECT_TRUE(Sync().ok());
  }
  SetCompileObserver({});
  ASSERT_EQ(texts.size(), 2u);
  EXPECT_THAT(texts[0], Not(HasSubstr("recompiled")));
  EXPECT_THAT(texts[1],
              HasSubstr("\nlazuli:   recompiled: exponent of aten::pow 3 -> 5 at train.cc:9: "));
}

}  // namespace
}  // namespace lazuli::lazy
