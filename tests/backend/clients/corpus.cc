#include "tests/backend/clients/corpus.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace lazuli {
namespace {

namespace fs = std::filesystem;

constexpr char kFolder[] = "tests/backend/corpus";

}  // namespace

std::vector<std::string> CorpusNames() {
  std::vector<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(kFolder)) {
    if (entry.path().extension() == ".hlo")
      names.push_back(fs::relative(entry.path(), kFolder).replace_extension());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string CorpusText(const std::string& name) {
  std::ifstream file(fs::path(kFolder) / (name + ".hlo"));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

std::string CorpusTestName(const testing::TestParamInfo<std::string>& info) {
  std::string name = info.param;
  std::replace(name.begin(), name.end(), '/', '_');
  return name;
}

}  // namespace lazuli
