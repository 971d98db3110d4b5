#include "lazy/debug/profile.h"

#include <filesystem>
#include <thread>

#include "ir/support/flags.h"
#include "ir/support/span_collector.h"
#include "lazy/execution/executor.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

using ir::SpanKind;
using ir::SpanLabel;
using testing::ElementsAre;
using testing::HasSubstr;

const SpanLabel kSyncing{.kind = SpanKind::kSync, .name = "sync", .source = "train.cc:9"};
const SpanLabel kCompiling{.kind = SpanKind::kCompile, .name = "compile"};
const SpanLabel kRunning{.kind = SpanKind::kRun, .name = "program", .source = "train.cc:9"};
const SpanLabel kProduct{.kind = SpanKind::kThunk,
                         .name = "dot.1",
                         .detail = "matmul",
                         .op = "aten__mm",
                         .scope = "net/fc/aten__mm",
                         .source = "train.cc:4",
                         .flops = 300e3,
                         .bytes = 30e3};
const SpanLabel kRelu{.kind = SpanKind::kThunk,
                      .name = "fusion.2",
                      .detail = "kernel",
                      .op = "aten__relu",
                      .source = "train.cc:4"};

// A sync that compiles, on thread 0, and two runs on thread 1.
Profile Example() {
  return Profile(
      {.spans = {{&kSyncing, 0, 0, 5'000'000},
                 {&kCompiling, 0, 1'000'000, 3'000'000},
                 {&kRunning, 1, 4'500'000, 1'000'000},
                 {&kProduct, 1, 4'600'000, 300'000},
                 {&kRelu, 1, 4'900'000, 500'000},
                 {&kRunning, 1, 6'000'000, 400'000},
                 {&kProduct, 1, 6'000'000, 300'000}},
       .tracks = {{.thread = 0, .name = ""}, {.thread = 1, .name = "cpu:0", .device = true}}});
}

class ProfileTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(ir::SetFlag("LAZULI_PEAK_GFLOPS", "10").ok());
    ASSERT_TRUE(ir::SetFlag("LAZULI_PEAK_GBS", "1").ok());
  }
  void TearDown() override {
    ASSERT_TRUE(ir::SetFlag("LAZULI_PEAK_GFLOPS", "0").ok());
    ASSERT_TRUE(ir::SetFlag("LAZULI_PEAK_GBS", "0").ok());
  }
};

TEST_F(ProfileTest, ASpansOwnTimeIsWithoutThoseInsideIt) {
  const Profile profile = Example();
  EXPECT_THAT(profile.self_ns(),
              ElementsAre(2'000'000, 3'000'000, 200'000, 300'000, 500'000, 100'000, 300'000));
  EXPECT_EQ(profile.sources()[1], "train.cc:9");  // of the sync that it is in
  EXPECT_EQ(profile.sources()[3], "train.cc:4");
}

TEST_F(ProfileTest, TheTableByLine) {
  EXPECT_EQ(Example().Table(ProfileBy::kLine, 10),
            "profile: 2 runs; milliseconds: devices 1.400, compiling 3.000, host 2.000, waiting "
            "0.000\n"
            "    device     %    count    compile      host      wait   Gflop/s     GB/s  of peak  "
            "line\n"
            "     0.300  21.4        0      3.000     2.000     0.000      0.00     0.00    0.0 %  "
            "train.cc:9\n"
            "     1.100  78.6        3      0.000     0.000     0.000      0.55     0.05    5.5 %  "
            "train.cc:4  aten__mm, aten__relu\n");
}

TEST_F(ProfileTest, TheTablesByOpThunkScopeAndStage) {
  const Profile profile = Example();
  const auto names = [&](ProfileBy by) {
    std::vector<std::string> names;
    for (const ProfileRow& row : profile.Rows(by))
      names.push_back(Str(row.name, " ", row.count, " ", row.device_ns));
    return names;
  };
  EXPECT_THAT(names(ProfileBy::kOp), ElementsAre("aten__mm 2 600000", "aten__relu 1 500000"));
  EXPECT_THAT(names(ProfileBy::kThunk),
              ElementsAre("matmul dot.1 2 600000", "kernel fusion.2 1 500000"));
  EXPECT_THAT(names(ProfileBy::kScope), ElementsAre("net/fc 2 600000", "(no scope) 1 500000"));
  EXPECT_THAT(names(ProfileBy::kStage),
              ElementsAre("compile 1 0", "sync 1 0", "thunk 3 1100000", "run 2 300000"));
  EXPECT_TRUE(names(ProfileBy::kPass).empty());
  EXPECT_DOUBLE_EQ(profile.Rows(ProfileBy::kOp)[0].of_peak, 0.1);  // 1 of 10 Gflop/s
}

TEST_F(ProfileTest, RowsThatDoNotFitAreCounted) {
  EXPECT_THAT(Example().Table(ProfileBy::kLine, 1), HasSubstr("  and 1 more rows\n"));
}

TEST_F(ProfileTest, LostSpansAreSaid) {
  EXPECT_THAT(Profile({.spans = {}, .tracks = {{.thread = 2, .name = "", .lost = 12}}})
                  .Table(ProfileBy::kLine, 1),
              HasSubstr("  the first 12 spans of thread 2 are lost; LAZULI_PROFILE_SPANS keeps "
                        "more\n"));
}

TEST_F(ProfileTest, AFileThatCannotBeWrittenIsSaid) {
  EXPECT_EQ(ir::Message(Example().Save("/dev/null/profile.json")),
            "cannot make the folder /dev/null: Not a directory");
}

TEST_F(ProfileTest, AFolderIsLaidOutForTensorBoard) {
  namespace fs = std::filesystem;
  const fs::path folder = fs::path(testing::TempDir()) / "board";
  fs::remove_all(folder);
  ASSERT_TRUE(Example().Save(folder.string() + "/").ok());
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder))
    if (entry.is_regular_file()) files.push_back(fs::relative(entry.path(), folder));
  ASSERT_EQ(files.size(), 1u);
  EXPECT_THAT(files[0], testing::MatchesRegex("plugins/profile/[0-9_]+/.+\\.trace\\.json\\.gz"));
}

// Threads that each run programs of their own, while profiles begin and end.
TEST_F(ProfileTest, ThreadsMayRunWhileProfilesAreTaken) {
  constexpr int kThreads = 3, kSteps = 20;
  TestDevice();
  const ir::SpanCollector whole;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([] {
      for (int i = 0; i < kSteps; ++i) {
        const Tensor sum = Floats({1, 2, 3}) + Floats({4, 5, 6});
        EXPECT_TRUE(Sync().ok());
      }
    });
  }
  for (int i = 0; i < 5; ++i) {
    const ir::SpanCollector part;
    EXPECT_NE(Profile(part.Spans()).Trace(), "");
  }
  for (std::thread& thread : threads) thread.join();
  Executor::WaitForAll(nullptr);
  const Profile profile(whole.Spans());
  std::map<std::string, int64_t> counts;
  for (const ProfileRow& row : profile.Rows(ProfileBy::kStage)) counts[row.name] = row.count;
  for (const char* stage : {"sync", "trace", "key", "lookup", "queue", "run"})
    EXPECT_EQ(counts[stage], kThreads * kSteps) << stage;
  int64_t own = 0, outermost = 0;  // of each thread: where nothing is around it
  std::map<uint32_t, int64_t> end;
  for (std::size_t i = 0; i < profile.spans().size(); ++i) {
    const ir::SpanRecord& span = profile.spans()[i];
    if (ir::RowOf(span.label->kind).place == ir::SpanPlace::kBeside) continue;
    own += profile.self_ns()[i];
    if (span.start_ns < end[span.thread]) continue;
    outermost += span.duration_ns;
    end[span.thread] = span.start_ns + span.duration_ns;
  }
  EXPECT_EQ(own, outermost);
}

}  // namespace
}  // namespace lazuli::lazy
