#include "lazy/debug/graph_analysis.h"

#include <filesystem>
#include <fstream>
#include <regex>
#include <sstream>

#include "ir/support/flags.h"
#include "tests/lazy/lazy_test.h"

namespace lazuli::lazy {
namespace {

using testing::HasSubstr;

const std::string kEquals(80, '=');
const std::string kDashes(80, '-');

// As torch_xla writes it, trailing spaces included; its bundled scripts look for these lines.
TEST(GraphAnalysisTest, ACompileIsABlock) {
  const AnalyzedGraph graph{.reason = SyncReason::kRead,
                            .site = ir::InternSite("src/train.cc", "int main()", 41),
                            .hash = 0x1f0c2ab4e3a95d11,
                            .inputs = 3,
                            .outputs = 1};
  const std::string p = "Compilation Analysis: ";
  EXPECT_EQ(GraphBlock(Analysis::kCompilation, graph, 8),
            "\n" + p + kEquals + "\n" + p + "Compilation Cause\n" + p +
                "  most likely user code trying to access tensor value before torch_xla.sync\n" +
                p + "Graph Info: \n" + p + "  Graph Hash: 1f0c2ab4e3a95d11\n" + p +
                "  Number of Graph Inputs: 3\n" + p + "  Number of Graph Outputs: 1\n" + p +
                "C++ Frame Triggered Execution: \n" + p + "  main (src/train.cc:41)\n" + p +
                kDashes + "\n" + p + kEquals + "\n");
}

TEST(GraphAnalysisTest, ThePlaceIsALineOfPythonOrOfCpp) {
  for (const auto& [file, language] :
       {std::pair("train.py", "Python"), {"<stdin>", "Python"}, {"net.hpp", "C++"}}) {
    const AnalyzedGraph graph{.site = ir::InternSite(file, "f", 1)};
    EXPECT_THAT(GraphBlock(Analysis::kExecution, graph, 1),
                HasSubstr(ir::Str("Execution Analysis: ", language,
                                  " Frame Triggered Execution: \nExecution Analysis:   f (")));
  }
  EXPECT_THAT(GraphBlock(Analysis::kExecution, {}, 1),
              HasSubstr("Python Frame Triggered Execution"));
}

TEST(GraphAnalysisTest, ARunIsABlockAndFramesHaveALimit) {
  const AnalyzedGraph graph{.site = ir::InternSite("src/train.cc", "int main()", 42)};
  const std::string block = GraphBlock(Analysis::kExecution, graph, 0);
  EXPECT_THAT(block, HasSubstr("\nExecution Analysis: Execution Cause\n"
                               "Execution Analysis:   user torch_xla.sync\n"));
  EXPECT_THAT(block, HasSubstr("Triggered Execution: \nExecution Analysis:   ..........\n"
                               "Execution Analysis: ---"));
}

TEST(GraphAnalysisTest, SizesAndWhatChangedFollowACompile) {
  TestDevice();
  GetProgramCache().Clear();
  std::vector<std::string> texts;
  SetCompileObserver([&](const CompileEvent& event) {
    texts.push_back(PostCompilationBlock(event.program) + WhatChangedBlock(event.program));
  });
  for (const double exponent : {3.0, 5.0}) {
    const SiteScope site(ir::InternSite("train.cc", "int main()", 9));
    const Tensor power = PowNumber(Floats({1, 2, 3}), Number(exponent));
    EXPECT_TRUE(Sync().ok());
  }
  SetCompileObserver({});
  ASSERT_EQ(texts.size(), 2u);
  const std::string p = "Post Compilation Analysis: ";
  EXPECT_TRUE(std::regex_match(
      texts[0],
      std::regex(
          "\nComputation hash: [0-9a-f]+\n\n" + p + kEquals + "\n" + p +
          "Graph input size: 0.000000 GB\n" + p + "Graph output size: 0.000000 GB\n" + p +
          "Aliased Input size: 0.000000 GB\n" + p + "Intermediate tensor size: 0.000000 GB\n" + p +
          "Compiled program size: 0.00000[0-9] GB\n" + p + kDashes + "\n" + p + kEquals + "\n")))
      << texts[0];
  const std::string r = "Recompilation Analysis: ";
  EXPECT_THAT(texts[1], HasSubstr("\n\n" + r + kEquals + "\n" + r + "What Changed\n" + r +
                                  "  exponent of aten::pow 3 -> 5 at train.cc:9: "));
  EXPECT_THAT(texts[1], HasSubstr(r + "Compared With: SyncTensorsGraph."));
}

TEST(GraphAnalysisTest, LevelsDecideWhatAFileGets) {
  TestDevice();
  EXPECT_EQ(AnalysisLevel(), 0);
  ASSERT_TRUE(ir::SetFlag("PT_XLA_DEBUG", "true").ok());
  EXPECT_EQ(AnalysisLevel(), 100);
  ASSERT_TRUE(ir::SetFlag("PT_XLA_DEBUG_LEVEL", "1").ok());
  EXPECT_EQ(AnalysisLevel(), 1);
  const std::string path = testing::TempDir() + "/pt_xla_debug";
  std::filesystem::remove(path);
  ASSERT_TRUE(ir::SetFlag("PT_XLA_DEBUG_FILE", path).ok());
  InitializeGraphAnalysis();
  GetProgramCache().Clear();
  const auto text = [&] {
    std::stringstream contents;
    contents << std::ifstream(path).rdbuf();
    return contents.str();
  };
  (void)Values(Floats({1, 2}) * Floats({3, 4}));
  const std::string compiled = text();
  EXPECT_THAT(compiled, HasSubstr("Compilation Analysis: Compilation Cause"));
  EXPECT_EQ(compiled.find("Execution Analysis"), std::string::npos);
  (void)Values(Floats({1, 2}) * Floats({3, 4}));
  EXPECT_EQ(text(), compiled);  // level 1 has no runs
  ASSERT_TRUE(ir::SetFlag("PT_XLA_DEBUG_LEVEL", "2").ok());
  (void)Values(Floats({1, 2}) * Floats({3, 4}));
  EXPECT_THAT(text().substr(compiled.size()), HasSubstr("Execution Analysis: Execution Cause"));
  ASSERT_TRUE(ir::SetFlag("PT_XLA_DEBUG", "0").ok());
  ASSERT_TRUE(ir::SetFlag("PT_XLA_DEBUG_LEVEL", "0").ok());
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace lazuli::lazy
