// A training run with everything switched on that leaves files: it computes what it computes without,
// and what it leaves can be read.
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>

#include <unistd.h>

#include "backend/cpu/cpu_client.h"
#include "ir/graph/stack.h"
#include "ir/hlo/proto/proto.h"
#include "ir/hlo/text/parser.h"
#include "ir/support/flags.h"
#include "ir/support/span_collector.h"
#include "lazy/autograd/backward.h"
#include "lazy/debug/debug_level.h"
#include "lazy/debug/graph_analysis.h"
#include "lazy/debug/metrics_file.h"
#include "lazy/debug/profile.h"
#include "lazy/debug/save_tensors.h"
#include "lazy/graphs/graph_page.h"
#include "lazy/graphs/saved_graph.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class EveryDumpTest : public testing::TestWithParam<std::string> {
 protected:
  EveryDumpTest() : before_(TestClient()) {
    cpu::RegisterCpu();
    TestClient() = *backend::FindClient(GetParam());
    GetProgramCache().Clear();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~EveryDumpTest() override {
    for (const auto& [flag, value] : flags_) EXPECT_TRUE(ir::SetFlag(flag, value).ok());
    ir::SetIrDebug(false);
    GetProgramCache().Clear();
    TestClient() = before_;
    fs::remove_all(folder_);
  }
  void Set(const std::string& flag, const std::string& value) {
    for (const ir::FlagRow& row : ir::FlagRows())
      if (row.name == flag) flags_.emplace(flag, ir::FlagText(row));
    ASSERT_TRUE(ir::SetFlag(flag, value).ok()) << flag;
  }
  std::string Path(std::string_view name) const { return Str(folder_.string(), "/", name); }
  static std::string Read(const fs::path& path) {
    std::ifstream in(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  // Two linear layers on the same batch; the losses.
  static std::vector<float> Train() {
    const Tensor x = Of<float>({3, 2}, {1, 2, -1, 0.5f, 0.25f, -2});
    const Tensor target = Of<float>({3, 1}, {1, 0, -1});
    Tensor w = Of<float>({2, 4}, {0.1f, -0.2f, 0.3f, 0.4f, -0.5f, 0.6f, 0.7f, -0.8f});
    Tensor v = Of<float>({4, 1}, {0.3f, 0.1f, -0.2f, 0.5f});
    std::vector<float> losses;
    for (int step = 0; step < 3; ++step) {
      w = WithGrad(Detach(w));
      v = WithGrad(Detach(v));
      const Tensor error = Matmul(Tanh(Matmul(x, w)), v) - target;
      const Tensor loss = Sum(error * error);
      Backward(loss, {}, {});
      w = Detach(w) - GradOf(w) * Floats({0.1f});
      v = Detach(v) - GradOf(v) * Floats({0.1f});
      EXPECT_TRUE(Sync(/*wait=*/false).ok());
      losses.push_back(Values(loss)[0]);
    }
    return losses;
  }

  const fs::path folder_ = testing::TempDir() + Str("/every_dump.", getpid());
  std::map<std::string, std::string> flags_;
  backend::ComputationClient* const before_;
};

TEST_P(EveryDumpTest, ATrainingRunLeavesThemAllAndComputesTheSame) {
  const std::vector<float> expected = Train();
  EXPECT_LT(expected[2], expected[0]);
  GetProgramCache().Clear();

  Set("--xla_dump_to", Path("xla"));
  for (const std::string form : {"text", "proto", "dot", "html"})
    Set("--xla_dump_hlo_as_" + form, "true");
  Set("--xla_dump_hlo_pass_re", ".*");
  Set("LAZULI_DUMP_DIR", Path("passes"));
  Set("LAZULI_DEBUG", "5,simplify=5");
  Set("LAZULI_DEBUG_FILE", Path("debug.txt"));
  Set("XLA_SAVE_TENSORS_FILE", Path("graphs"));
  Set("XLA_SAVE_TENSORS_FMT", "hlo");
  Set("XLA_DUMP_POST_OPTIMIZATIONS", "true");
  Set("XLA_METRICS_FILE", Path("metrics.txt"));
  Set("XLA_FNTRACKER_FILE", Path("fallbacks.txt"));
  Set("PT_XLA_DEBUG_LEVEL", "100");
  Set("PT_XLA_DEBUG_FILE", Path("analysis.txt"));
  InitializeDebugLevel();
  InitializeGraphAnalysis();
  InitializeMetricsFile();
  InitializeSaveTensors();
  InstallModulePages();
  ir::SetIrDebug(true);
  const std::unique_ptr<ir::SpanCollector> spans = std::make_unique<ir::SpanCollector>();
  EXPECT_EQ(Train(), expected);
  ASSERT_TRUE(Sync().ok());
  const Profile profile(spans->Spans());
  for (const std::string_view name : {"profile.json", "profile.html", "tensorboard/"})
    EXPECT_TRUE(profile.Save(Path(name)).ok()) << name;

  std::map<std::string, int> kinds;
  for (const auto& file : fs::directory_iterator(folder_ / "xla")) {
    const std::string name = file.path().filename();
    const std::string contents = Read(file.path());
    EXPECT_FALSE(contents.empty()) << name;
    ++kinds[file.path().extension()];
    if (name.ends_with(".hlo.pb")) {
      EXPECT_TRUE(hlo::ParseModuleProto(contents).ok()) << name;
    }
    if (name.ends_with("_optimizations.txt")) {
      EXPECT_TRUE(hlo::ParseModule(contents).ok()) << name;
    }
  }
  for (const std::string kind : {".txt", ".pb", ".dot", ".html", ".debug_options"})
    EXPECT_GT(kinds[kind], 0) << kind;
  EXPECT_THAT(Read(Path("debug.txt")), HasSubstr("lazuli: compiled SyncTensorsGraph."));
  const absl::StatusOr<SavedFile> graphs = ParseSaved(Path("graphs.0"), Read(Path("graphs.0")));
  ASSERT_TRUE(graphs.ok() && graphs->torn.ok());
  EXPECT_EQ(graphs->records.size(), 3u);
  for (const SavedRecord& record : graphs->records) {
    const absl::StatusOr<SavedGraph> graph = ReadGraph(record, graphs->path);
    EXPECT_TRUE(graph.ok()) << Message(graph.status());
  }
  EXPECT_THAT(Read(Path("profile.json")), HasSubstr("\"traceEvents\""));
  EXPECT_THAT(Read(Path("profile.html")), HasSubstr("traceEvents"));
  EXPECT_THAT(Read(Path("metrics.txt")), HasSubstr("[MetricsData; step="));
  EXPECT_THAT(Read(Path("analysis.txt")), HasSubstr("Compilation Analysis: "));
  if (GetParam() == "cpu") {
    EXPECT_FALSE(fs::is_empty(folder_ / "passes"));
    EXPECT_THAT(Read(Path("debug.txt")), HasSubstr("lazuli: simplify changed "));
  }
}

INSTANTIATE_TEST_SUITE_P(OnEachDevice, EveryDumpTest, testing::Values("cpu", "interpreter"),
                         [](const auto& info) { return info.param; });

}  // namespace
}  // namespace lazuli::lazy
