// Texts for the tests of ir/hlo: the files of testdata, and modules read from them.
#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "ir/hlo/text/parser.h"

namespace lazuli::hlo {

inline std::string ReadText(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// Modules as jaxlib prints them, by file name.
inline std::vector<std::pair<std::string, std::string>> SampleTexts() {
  std::vector<std::pair<std::string, std::string>> samples;
  for (const auto& entry : std::filesystem::directory_iterator("tests/ir/hlo/testdata")) {
    if (entry.path().extension() == ".hlo")
      samples.emplace_back(entry.path().filename(), ReadText(entry.path()));
  }
  return samples;
}

// One module for each entry of a file, by the entry's name: computations that all share, then
// "=== NAME" and the instructions of an entry computation, and so on.
inline std::vector<std::pair<std::string, std::string>> TextsOfUses(
    const std::filesystem::path& path) {
  std::vector<std::pair<std::string, std::string>> texts;
  std::istringstream lines(ReadText(path));
  std::string preamble, line;
  while (std::getline(lines, line)) {
    if (line.starts_with("=== ")) {
      texts.emplace_back(line.substr(4), preamble + "ENTRY e {\n");
    } else {
      (texts.empty() ? preamble : texts.back().second) += line + "\n";
    }
  }
  for (auto& [name, text] : texts) text.insert(0, "HloModule m\n").append("}\n");
  return texts;
}

// One module for each use of an opcode, by the use's name.
inline std::vector<std::pair<std::string, std::string>> OpcodeTexts() {
  return TextsOfUses("tests/ir/hlo/testdata/opcodes.txt");
}

inline std::unique_ptr<Module> Parse(std::string_view text) {
  auto module = ParseModule(text);
  EXPECT_TRUE(module.ok()) << module.status() << "\n" << text;
  return module.ok() ? *std::move(module) : std::make_unique<Module>("failed");
}

inline std::string ErrorOf(const absl::Status& status) {
  return {status.message().data(), status.message().size()};
}

}  // namespace lazuli::hlo
