// The modules of tests/backend/corpus, by name: "scan", "xla_convolutions/Minimal".
#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace lazuli {

std::vector<std::string> CorpusNames();  // sorted
std::string CorpusText(const std::string& name);

// The name as one of a test.
std::string CorpusTestName(const testing::TestParamInfo<std::string>& info);

}  // namespace lazuli
