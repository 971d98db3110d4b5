#include "lazy/debug/reproduction.h"

#include <filesystem>
#include <fstream>
#include <iterator>

#include <unistd.h>

#include "ir/hlo/text/parser.h"
#include "ir/support/flags.h"
#include "tests/lazy/execution/failing_client.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

backend::FailingClient& ReproductionClient() {
  static auto* client = new backend::FailingClient;
  return *client;
}

class ReproductionTest : public testing::Test {
 protected:
  ReproductionTest() {
    TestDevice();
    InitializeReproductions();
    fs::remove_all(folder_);
    Set("LAZULI_REPRODUCTION_DIR", folder_.string());
    Set("LAZULI_REPRODUCTIONS", "1000");  // more than all tests of the process write
  }
  ~ReproductionTest() override {
    for (const auto& [flag, value] : before_) EXPECT_TRUE(ir::SetFlag(flag, value).ok());
    fs::remove_all(folder_);
    ReproductionClient().fail_compile = ReproductionClient().fail_run = false;
    (void)Context::Current().TakeFailure();
    GetProgramCache().Clear();
  }
  void Set(const std::string& flag, const std::string& value) {
    for (const ir::FlagRow& row : ir::FlagRows())
      if (row.name == flag) before_.emplace_back(flag, ir::FlagText(row));
    ASSERT_TRUE(ir::SetFlag(flag, value).ok());
  }

  static absl::Status FailToCompile() {
    const Tensor x =
        FromLiteral(Literal::FromValues<float>({2}, {1, 2}), ReproductionClient().device());
    ReproductionClient().fail_compile = true;
    const SiteScope site(ir::InternSite("train.cc", "int main()", 8));
    const Tensor y = x + x;
    return Sync();
  }
  static absl::Status FailToRun() {
    const Tensor x =
        FromLiteral(Literal::FromValues<float>({2}, {1, 2}), ReproductionClient().device());
    ReproductionClient().fail_run = true;
    const SiteScope site(ir::InternSite("train.cc", "int main()", 8));
    const Tensor y = x * x;
    return Sync();
  }
  std::vector<std::string> Folders() const {
    std::vector<std::string> names;
    std::error_code ignored;
    for (const auto& entry : fs::directory_iterator(folder_, ignored))
      names.push_back(entry.path().string());
    return names;
  }
  static std::string Read(const std::string& path) {
    std::ifstream in(path);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  const fs::path folder_ = testing::TempDir() + Str("/reproductions.", getpid());
  std::vector<std::pair<std::string, std::string>> before_;
};

TEST_F(ReproductionTest, AFailedCompileNamesAFolderWithEverything) {
  Set("LAZULI_DISABLE_RULES", "add-zero");
  const absl::Status failed = FailToCompile();
  ASSERT_EQ(Folders().size(), 1u);
  const std::string folder = Folders()[0];
  EXPECT_EQ(Message(failed),
            Str("the compiler gave up (train.cc:8); lazuli-run ", folder, " repeats it"));
  EXPECT_EQ(Read(folder + "/error.txt"), "the compiler gave up (train.cc:8)\n");
  const auto module = hlo::ParseModule(Read(folder + "/module.hlo"));
  ASSERT_TRUE(module.ok()) << module.status();
  EXPECT_THAT(Read(folder + "/graph.txt"),
              HasSubstr("aten::add(%0, %0), location=main@train.cc:8, ROOT=0\n"));
  const std::string text = Read(folder + "/reproduction.txt");
  for (const std::string_view line :
       {"failed: compile\n", "device: failing", "seed: 0\n", "site: train.cc:8\n",
        "input: p0 f32[2]", "flag: LAZULI_DISABLE_RULES=add-zero\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST_F(ReproductionTest, AFailedRunDoesToo) {
  const absl::Status failed = FailToRun();
  ASSERT_EQ(Folders().size(), 1u);
  EXPECT_EQ(Message(failed),
            Str("the device caught fire (train.cc:8); lazuli-run ", Folders()[0], " repeats it"));
  EXPECT_THAT(Read(Folders()[0] + "/reproduction.txt"), HasSubstr("failed: run\n"));
}

// One compile serves all devices of a platform.
TEST_F(ReproductionTest, AFailedRunNamesTheDeviceThatRan) {
  const auto run_on = [](std::size_t ordinal) {
    const Tensor x =
        FromLiteral(Literal::FromValues<float>({2}, {1, 2}), ReproductionClient().device(ordinal));
    const Tensor y = x - x;
    return Sync();
  };
  ASSERT_TRUE(run_on(0).ok());
  ReproductionClient().fail_run = true;
  ASSERT_FALSE(run_on(1).ok());
  ASSERT_EQ(Folders().size(), 1u);
  const std::string device = ReproductionClient().device(1).ToString();
  EXPECT_THAT(Read(Folders()[0] + "/reproduction.txt"), HasSubstr(Str("device: ", device, "\n")));
}

TEST_F(ReproductionTest, ABoundedNumberOfFolders) {
  Set("LAZULI_REPRODUCTIONS", "0");
  EXPECT_EQ(Message(FailToCompile()), "the compiler gave up (train.cc:8)");
  EXPECT_TRUE(Folders().empty());
}

TEST_F(ReproductionTest, AFolderThatCannotBeMadeIsSaidAndTheErrorIsWhatItWas) {
  Set("LAZULI_REPRODUCTION_DIR", "/proc/lazuli");
  testing::internal::CaptureStderr();
  EXPECT_EQ(Message(FailToCompile()), "the compiler gave up (train.cc:8)");
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              MatchesRegex("lazuli: LAZULI_REPRODUCTIONS: cannot make the folder /proc/lazuli: "
                           "[^\n]*\n"));
}

TEST_F(ReproductionTest, TorchXlasVariables) {
  const std::string file = folder_.string() + "/failed.hlo";
  Set("XLA_SAVE_HLO_FILE", file);
  Set("XLA_DUMP_HLO_GRAPH", "true");
  Set("LAZULI_REPRODUCTIONS", "0");
  const std::string message(Message(FailToCompile()));
  const std::string hlo = Read(file);
  EXPECT_TRUE(hlo::ParseModule(hlo).ok()) << hlo;
  EXPECT_EQ(message, Str("the compiler gave up (train.cc:8)\n>>> Dumping Computation 0\n", hlo));
}

TEST_F(ReproductionTest, MemoryThatIsNotThereAndChecksAreNoFailuresOfOurs) {
  const Tensor x = Floats({1, 2});
  ASSERT_TRUE(ir::SetFlag("LAZULI_MEMORY_LIMIT", "1").ok());
  const Tensor y = x + x;
  const absl::Status refused = Sync();
  ASSERT_TRUE(ir::SetFlag("LAZULI_MEMORY_LIMIT", "0").ok());
  EXPECT_FALSE(refused.ok());
  EXPECT_THAT(std::string(Message(refused)), Not(HasSubstr("lazuli-run")));
  EXPECT_TRUE(Folders().empty());
  ASSERT_TRUE(Sync().ok());
}

}  // namespace
}  // namespace lazuli::lazy
