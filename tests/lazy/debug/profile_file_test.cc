// LAZULI_PROFILE in processes of their own: programs that know nothing of it.
#include "lazy/debug/profile_file.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "ir/support/flags.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

using testing::HasSubstr;

std::string ReadFile(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Ends the process, after a step.
[[noreturn]] void ProfiledProgram(const std::string& value) {
  ir::SetFlag("LAZULI_PROFILE", value).IgnoreError();
  InitializeProfileFile();
  const Tensor sum = Floats({1, 2, 3, 4, 5}) + Floats({5, 4, 3, 2, 1});
  if (!Sync().ok()) std::_Exit(1);
  std::fputs("the program ended", stderr);
  std::exit(0);
}

class ProfileFileDeathTest : public testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};

TEST_F(ProfileFileDeathTest, AFileWithTheTracksOfHostAndDevice) {
  const std::string path = std::filesystem::path(testing::TempDir()) / "profile.json";
  EXPECT_EXIT(ProfiledProgram(path), testing::ExitedWithCode(0), "^the program ended$");
  const std::string trace = ReadFile(path);
  for (const char* name : {"record", "sync", "trace", "compile", "queue", "SyncTensorsGraph.1"})
    EXPECT_THAT(trace, HasSubstr(Str("\"name\":\"", name, "\""))) << name;
  EXPECT_THAT(trace, HasSubstr("\"args\":{\"name\":\"interpreter:0\"}"));
}

TEST_F(ProfileFileDeathTest, ATableOnStandardError) {
  EXPECT_EXIT(ProfiledProgram("-"), testing::ExitedWithCode(0),
              "the program endedprofile: 1 runs; milliseconds: devices ");
}

TEST_F(ProfileFileDeathTest, AFileThatCannotBeWrittenIsSaidAndTheProgramGoesOn) {
  EXPECT_EXIT(ProfiledProgram("/dev/null/profile.json"), testing::ExitedWithCode(0),
              "^lazuli: LAZULI_PROFILE: cannot make the folder /dev/null: Not a directory\n"
              "the program ended$");
}

}  // namespace
}  // namespace lazuli::lazy
