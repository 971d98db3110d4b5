// Every module of the corpus of which the compiler takes all instructions: the evaluator's values.

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backend/npu/compiler/supported.h"
#include "tests/backend/npu/compiler/compiled.h"

namespace lazuli::npu {
namespace {

namespace fs = std::filesystem;

std::vector<fs::path> Modules() {
  std::vector<fs::path> paths;
  for (const auto& entry : fs::recursive_directory_iterator("tests/backend/corpus")) {
    if (entry.path().extension() == ".hlo") paths.push_back(entry.path());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

bool Takes(const hlo::Module& module) {
  for (const hlo::Instruction* i : module.entry()->PostOrder()) {
    if (WhyNot(*i, Config())) return false;
  }
  return true;
}

// The headers of a file ("// tolerance: 1e-4 1e-4", "// values: special"). Sums have another order here.
Expectation ExpectationOf(const std::string& text) {
  Expectation e{.rtol = 2e-5, .atol = 1e-5};
  std::stringstream lines(text);
  for (std::string line; std::getline(lines, line) && line.starts_with("//");) {
    if (line.starts_with("// values: special")) e.values = RandomValues::kSpecial;
    if (!line.starts_with("// tolerance: ")) continue;
    double rtol = 0, atol = 0;
    std::istringstream(line.substr(14)) >> rtol >> atol;
    e.rtol = std::max(e.rtol, rtol);
    e.atol = std::max(e.atol, atol);
  }
  return e;
}

TEST(NpuCorpusTest, CompiledModulesHaveTheEvaluatorsValues) {
  int taken = 0, variants = 0;
  for (const fs::path& path : Modules()) {
    std::stringstream text;
    text << std::ifstream(path).rdbuf();
    const auto module = ParseHlo(text.str());
    if (!Takes(*module)) continue;
    SCOPED_TRACE(path);
    ++taken;
    variants += path.parent_path().filename() == "xla_convolutions" ? 1 : 0;
    ExpectCompiled(*module, ExpectationOf(text.str()));
    if (HasFailure()) return;
  }
  RecordProperty("modules", taken);
  EXPECT_GE(taken, 195);
  EXPECT_EQ(variants, 58);  // all of XLA's convolution_variants_test
}

}  // namespace
}  // namespace lazuli::npu
