#include "ir/hlo/dump/module_dump.h"

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ir/hlo/proto/proto.h"
#include "ir/hlo/text/parser.h"
#include "ir/hlo/text/printer.h"
#include "ir/support/flags.h"
#include "ir/support/runtime.h"
#include "ir/support/str.h"

namespace lazuli::hlo {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::internal::CaptureStderr;
using ::testing::internal::GetCapturedStderr;

constexpr std::string_view kModule = R"(HloModule adds

ENTRY main {
  p = f32[4] parameter(0), metadata={op_name="weight"}
  c = f32[12] constant({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12})
  s = f32[4] slice(c), slice={[0:4]}
  ROOT a = f32[4] add(p, s)
}
)";

// A folder that is dumped into, and flags that go back to what they were.
class ModuleDumpTest : public testing::Test {
 protected:
  ModuleDumpTest() {
    fs::remove_all(folder_);
    Set("--xla_dump_to", folder_.string());
  }
  ~ModuleDumpTest() override {
    for (const auto& [flag, value] : before_) EXPECT_TRUE(ir::SetFlag(flag, value).ok());
    fs::remove_all(folder_);
  }

  void Set(const std::string& flag, std::string_view value) {
    for (const ir::FlagRow& row : ir::FlagRows())
      if (row.name == flag) before_.emplace_back(flag, ir::FlagText(row));
    ASSERT_TRUE(ir::SetFlag(flag, value).ok());
  }
  static std::unique_ptr<Module> Parse() { return *ParseModule(kModule); }
  std::set<std::string> Files() const {
    std::set<std::string> names;
    std::error_code ignored;
    for (const auto& file : fs::directory_iterator(folder_, ignored))
      names.insert(file.path().filename());
    return names;
  }
  std::string Read(const std::string& name) const {
    std::ifstream in(folder_ / name);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  // A compile that changes nothing.
  static void Compile(const Module& module) {
    ModuleDump dump(module, "cpu");
    dump.After(module);
  }

  const ir::Runtime::Scope scope_;  // compiles count from 1
  const fs::path folder_ = testing::TempDir() + ir::Str("/module_dump.", getpid());
  std::vector<std::pair<std::string, std::string>> before_;
};

TEST_F(ModuleDumpTest, WritesTheModuleBeforeAndAfter) {
  const auto module = Parse();
  Compile(*module);
  Compile(*module);
  EXPECT_THAT(Files(), ElementsAre("module_0001.adds.before_optimizations.txt",
                                   "module_0001.adds.cpu_after_optimizations.txt",
                                   "module_0001.adds.debug_options",
                                   "module_0002.adds.before_optimizations.txt",
                                   "module_0002.adds.cpu_after_optimizations.txt",
                                   "module_0002.adds.debug_options"));
  EXPECT_EQ(Read("module_0001.adds.before_optimizations.txt"), ToString(*module));
  EXPECT_THAT(Read("module_0001.adds.debug_options"),
              HasSubstr(ir::Str("--xla_dump_to=", folder_.string(), "\n")));
}

TEST_F(ModuleDumpTest, OtherFormsInPlaceOfText) {
  Set("--xla_dump_hlo_as_proto", "true");
  Set("--xla_dump_hlo_as_dot", "true");
  const auto module = Parse();
  Compile(*module);
  EXPECT_THAT(Files(), ElementsAre("module_0001.adds.before_optimizations.dot",
                                   "module_0001.adds.before_optimizations.hlo.pb",
                                   "module_0001.adds.cpu_after_optimizations.dot",
                                   "module_0001.adds.cpu_after_optimizations.hlo.pb",
                                   "module_0001.adds.debug_options"));
  const auto read = ParseModuleProto(Read("module_0001.adds.before_optimizations.hlo.pb"));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(Equal(**read, *module));
  EXPECT_THAT(Read("module_0001.adds.before_optimizations.dot"), HasSubstr("digraph"));
}

TEST_F(ModuleDumpTest, TextBesideOtherFormsAndStamps) {
  Set("--xla_dump_hlo_as_proto", "true");
  Set("--xla_dump_hlo_as_text", "true");
  Set("--xla_dump_include_timestamp", "true");
  Compile(*Parse());
  const std::set<std::string> files = Files();
  EXPECT_EQ(files.size(), 5u);
  for (const std::string& file : files)
    EXPECT_THAT(file, testing::MatchesRegex("[0-9]{16}\\.module_0001\\.adds\\..*"));
}

TEST_F(ModuleDumpTest, TextWithoutLinesAndLargeConstants) {
  Set("--xla_dump_disable_metadata", "true");
  Set("--xla_dump_large_constants", "false");
  Compile(*Parse());
  const std::string text = Read("module_0001.adds.before_optimizations.txt");
  EXPECT_THAT(text, HasSubstr("constant({...})"));
  EXPECT_EQ(text.find("metadata"), std::string::npos) << text;
}

TEST_F(ModuleDumpTest, ModulesAreChosenAndTheOthersCount) {
  Set("--xla_dump_hlo_module_re", "^mul|dd");
  const auto module = Parse();
  module->set_name("other");
  Compile(*module);
  EXPECT_EQ(ModuleDump::Current(), nullptr);
  module->set_name("adds");
  Compile(*module);
  EXPECT_TRUE(Files().contains("module_0002.adds.before_optimizations.txt"));
  EXPECT_EQ(Files().size(), 3u);
}

TEST_F(ModuleDumpTest, AtMostSoManyModules) {
  Set("--xla_dump_max_hlo_modules", "1");
  const auto module = Parse();
  Compile(*module);
  Compile(*module);
  EXPECT_EQ(Files().size(), 3u);
}

TEST_F(ModuleDumpTest, NestedCompilesHaveNumbersOfTheirOwn) {
  const auto module = Parse();
  ModuleDump outer(*module, "npu");
  {
    const ModuleDump inner(*module, "cpu");
    EXPECT_EQ(ModuleDump::Current(), &inner);
  }
  ASSERT_EQ(ModuleDump::Current(), &outer);
  ModuleDump::Current()->File("fused/1.ll", "ir");
  EXPECT_TRUE(Files().contains("module_0002.adds.before_optimizations.txt"));
  EXPECT_EQ(Read("module_0001.adds.fused_1.ll"), "ir");
}

TEST_F(ModuleDumpTest, ACaptureKeepsInMemoryWhatWouldBeWritten) {
  const auto module = Parse();
  {
    CompileCapture capture;
    {
      ModuleDump outer(*module, "npu");
      Compile(*module);
      EXPECT_TRUE(ModuleDump::Current()->is_captured());
      outer.File("a.ll", "one ");
      outer.File("b.ll", "two");
      outer.After(*module);
    }
    EXPECT_EQ(capture.Joined(".ll"), "one two");
    std::vector<std::string> names;
    for (const CompileCapture::File& file : capture.files())
      names.push_back(ir::Str(file.depth, " ", file.name));
    EXPECT_THAT(names, testing::IsSupersetOf({"1 cpu_after_optimizations.txt",
                                              "1 cpu_after_optimizations.dot",
                                              "0 npu_after_optimizations.txt"}));
  }
  EXPECT_THAT(Files(), ElementsAre());
  Compile(*module);
  EXPECT_TRUE(Files().contains("module_0001.adds.before_optimizations.txt"));
}

TEST_F(ModuleDumpTest, StandardOutputHasTitles) {
  Set("--xla_dump_to", "-");
  testing::internal::CaptureStdout();
  Compile(*Parse());
  const std::string text = testing::internal::GetCapturedStdout();
  EXPECT_THAT(text,
              HasSubstr("*** Begin module_0001.adds.before_optimizations.txt ***\nHloModule"));
  EXPECT_THAT(text, HasSubstr("*** End module_0001.adds.cpu_after_optimizations.txt ***\n"));
}

TEST_F(ModuleDumpTest, NothingIsWrittenOver) {
  fs::create_directories(folder_);
  std::ofstream(folder_ / "module_0001.adds.before_optimizations.txt") << "of another";
  Compile(*Parse());
  EXPECT_EQ(Read("module_0001.adds.before_optimizations.txt"), "of another");
  const std::string stem = ir::Str("module_0001.adds.pid", getpid());
  EXPECT_THAT(Files(), testing::IsSupersetOf({stem + ".before_optimizations.txt",
                                              stem + ".cpu_after_optimizations.txt",
                                              stem + ".debug_options"}));
}

TEST_F(ModuleDumpTest, ProcessesAtOneTimeHaveFilesOfTheirOwn) {
  constexpr int kProcesses = 8;
  const auto module = Parse();
  std::vector<pid_t> children;
  for (int i = 0; i < kProcesses; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      Compile(*module);
      _exit(0);
    }
    children.push_back(child);
  }
  for (const pid_t child : children) {
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }
  int texts = 0;
  for (const std::string& name : Files()) {
    EXPECT_FALSE(name.ends_with(".tmp")) << name;
    if (!name.ends_with(".txt")) continue;
    ++texts;
    EXPECT_EQ(Read(name), ToString(*module)) << name;
  }
  EXPECT_EQ(texts, 2 * kProcesses);
}

TEST_F(ModuleDumpTest, AFolderThatCannotBeWrittenIsSaidOnce) {
  Set("--xla_dump_to", "/proc/lazuli");
  const auto module = Parse();
  CaptureStderr();
  Compile(*module);
  Compile(*module);
  EXPECT_THAT(GetCapturedStderr(),
              testing::MatchesRegex("lazuli: XLA_FLAGS: --xla_dump_to: cannot make the folder "
                                    "/proc/lazuli: [^\n]*; no more dumps are written\n"));
}

TEST_F(ModuleDumpTest, AFullDiskLeavesNoTornFile) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small{250, before.rlim_max};  // of the sentence, too, but not of the module
  void (*const handler)(int) = std::signal(SIGXFSZ, SIG_IGN);
  const auto module = Parse();
  CaptureStderr();
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Compile(*module);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  const std::string said = GetCapturedStderr();
  std::signal(SIGXFSZ, handler);
  EXPECT_EQ(said, ir::Str("lazuli: XLA_FLAGS: --xla_dump_to: cannot write ", folder_.string(),
                          "/module_0001.adds.before_optimizations.txt: File too large; no more "
                          "dumps are written\n"));
  EXPECT_THAT(Files(), ElementsAre());
}

TEST_F(ModuleDumpTest, ABadRegularExpressionIsSaidOnceAndMatchesNothing) {
  Set("--xla_dump_hlo_module_re", "a(b");
  const auto module = Parse();
  CaptureStderr();
  Compile(*module);
  Compile(*module);
  const std::string said = GetCapturedStderr();
  EXPECT_THAT(said, HasSubstr("lazuli: XLA_FLAGS: --xla_dump_hlo_module_re='a(b' is not a regular "
                              "expression; nothing is dumped for it\n"));
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_THAT(Files(), ElementsAre());
}

TEST_F(ModuleDumpTest, OffUnlessAskedFor) {
  Set("--xla_enable_dumping", "false");
  Compile(*Parse());
  Set("--xla_enable_dumping", "true");
  Set("--xla_dump_to", "");
  Compile(*Parse());
  EXPECT_THAT(Files(), ElementsAre());
}

}  // namespace
}  // namespace lazuli::hlo
