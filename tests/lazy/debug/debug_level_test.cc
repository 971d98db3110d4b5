#include "lazy/debug/debug_level.h"

#include <optional>

#include "ir/support/str.h"
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
