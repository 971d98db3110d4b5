#include "ir/support/flags.h"

#include <cstdlib>
#include <set>

#include <gtest/gtest.h>

#include "ir/support/status.h"

namespace lazuli::ir {
namespace {

// Flags are read once, so the environment of this process is set before anything asks.
const bool kEnvironment = [] {
  setenv("XLA_SAVE_TENSORS_FMT", "hlo", 1);
  setenv("LAZULI_DEBUG", "three", 1);
  setenv("LAZULI_COMPILATION_CACHE_BYTES", "64M", 1);
  return true;
}();

TEST(FlagsTest, EnvironmentSetsValues) {
  EXPECT_TRUE(kEnvironment);
  EXPECT_EQ(flags().save_tensors_fmt(), "hlo");
  EXPECT_EQ(flags().compilation_cache_bytes(), 64 << 20);
}

TEST(FlagsTest, ValueThatDoesNotParseIsAnErrorAndLeavesTheDefault) {
  EXPECT_EQ(flags().debug(), 0);
  EXPECT_EQ(
      Message(FlagErrors()),
      "LAZULI_DEBUG='three' is not a whole number, or one with those of single names behind it: "
      "2,cpu_fuse=5");
}

TEST(FlagsTest, LevelsOfSingleNames) {
  ASSERT_TRUE(SetFlag("LAZULI_DEBUG", "2, cpu_fuse=5,kernels=4").ok());
  EXPECT_EQ(flags().debug(), 2);
  EXPECT_EQ(LevelOf("LAZULI_DEBUG", "cpu_fuse"), 5);
  EXPECT_EQ(LevelOf("LAZULI_DEBUG", "cse"), -1);
  EXPECT_EQ(LevelNames("LAZULI_DEBUG"), (std::vector<std::string>{"cpu_fuse", "kernels"}));
  EXPECT_FALSE(SetFlag("LAZULI_DEBUG", "2,=5").ok());
  EXPECT_FALSE(SetFlag("LAZULI_DEBUG", "2,cse=much").ok());
  ASSERT_TRUE(SetFlag("LAZULI_DEBUG", "cse=5").ok());
  EXPECT_EQ(flags().debug(), 0);
  ASSERT_TRUE(SetFlag("LAZULI_DEBUG", "0").ok());
}

// But of one whose default is negative.
TEST(FlagsTest, NegativeNumbersAreRefusedWithTheFlagsName) {
  int refused = 0;
  for (const FlagRow& row : FlagRows()) {
    if (row.type != FlagType::kInt && row.type != FlagType::kBytes && row.type != FlagType::kLevels)
      continue;
    const std::string before = FlagText(row);
    const absl::Status status = SetFlag(row.name, "-5");
    if (row.default_text.starts_with('-')) {
      EXPECT_TRUE(status.ok()) << row.name;
      ASSERT_TRUE(SetFlag(row.name, before).ok());
      continue;
    }
    ++refused;
    EXPECT_TRUE(Message(status).starts_with(Str(row.name, "='-5' is not a "))) << row.name;
    EXPECT_EQ(FlagText(row), before);
  }
  EXPECT_GT(refused, 15);
  EXPECT_EQ(Message(SetFlag("LAZULI_NUM_THREADS", "-1")),
            "LAZULI_NUM_THREADS='-1' is not a whole number that is not negative");
}

TEST(FlagsTest, SetFlagReplacesTheValue) {
  const std::string& before = flags().disable_rules();
  ASSERT_TRUE(SetFlag("LAZULI_DISABLE_RULES", "add-zero").ok());
  EXPECT_EQ(flags().disable_rules(), "add-zero");
  EXPECT_EQ(before, "");  // a reference that a reader still holds
  ASSERT_TRUE(SetFlag("LAZULI_DISABLE_RULES", "").ok());
  EXPECT_EQ(flags().disable_rules(), "");
}

TEST(FlagsTest, BooleansHaveEightSpellings) {
  for (const char* yes : {"1", "true", "yes", "on"}) {
    ASSERT_TRUE(SetFlag("LAZULI_FLUSH_SUBNORMALS", yes).ok());
    EXPECT_TRUE(flags().ftz()) << yes;
  }
  for (const char* no : {"0", "false", "no", "off"}) {
    ASSERT_TRUE(SetFlag("LAZULI_FLUSH_SUBNORMALS", no).ok());
    EXPECT_FALSE(flags().ftz()) << no;
  }
  EXPECT_EQ(Message(SetFlag("LAZULI_FLUSH_SUBNORMALS", "maybe")),
            "LAZULI_FLUSH_SUBNORMALS='maybe' is not true, false, 1, 0, yes, no, on or off");
}

TEST(FlagsTest, BytesHaveSuffixes) {
  struct Case {
    const char* text;
    int64_t bytes;
  };
  for (const Case& c :
       {Case{"4096", 4096}, Case{"3k", 3072}, Case{"2G", int64_t{2} << 30}, Case{"0", 0}}) {
    ASSERT_TRUE(SetFlag("LAZULI_COMPILATION_CACHE_BYTES", c.text).ok());
    EXPECT_EQ(flags().compilation_cache_bytes(), c.bytes);
  }
  for (const char* bad : {"", "K", "-1", "1T", "9999999999G", "1 M"}) {
    EXPECT_EQ(Message(SetFlag("LAZULI_COMPILATION_CACHE_BYTES", bad)),
              Str("LAZULI_COMPILATION_CACHE_BYTES='", bad,
                  "' is not a number of bytes such as 4096, 64K, 512M or 2G"));
  }
  ASSERT_TRUE(SetFlag("LAZULI_COMPILATION_CACHE_BYTES", "1G").ok());
}

TEST(FlagsTest, UnknownFlagIsNamed) {
  EXPECT_EQ(Message(SetFlag("LAZULI_NO_SUCH", "1")), "there is no flag LAZULI_NO_SUCH");
}

TEST(FlagsTest, EveryRowIsDocumentedOnce) {
  std::set<std::string_view> names;
  for (const FlagRow& row : FlagRows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_FALSE(row.doc.empty()) << row.name;
  }
}

}  // namespace
}  // namespace lazuli::ir
