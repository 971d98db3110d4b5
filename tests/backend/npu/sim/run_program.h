// Helpers of the tests of the machine: text or a file of examples/npu to a run with inputs and
// outputs.
#pragma once

#include <cstddef>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "backend/npu/sim/assembler.h"
#include "backend/npu/sim/machine.h"

namespace lazuli::npu {

using Bytes = std::vector<std::byte>;

template <class T>
Bytes BytesOf(const std::vector<T>& values) {
  Bytes bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}
template <class T>
std::vector<T> ValuesOf(const Bytes& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

inline std::string ExampleText(std::string_view name) {
  std::ifstream file("examples/npu/" + std::string(name));
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

inline Program MustAssemble(std::string_view text) {
  auto program = Assemble(text, "test");
  EXPECT_TRUE(program.ok()) << program.status();
  return program.ok() ? *std::move(program) : Program{};
}

// By device, then by name.
using Arrays = std::vector<std::map<std::string, Bytes>>;

struct Outcome {
  std::optional<Fault> fault;
  int64_t cycles = 0;
  std::vector<Counters> counters;
  Arrays arrays;  // of all symbols, afterwards
  std::string FaultText() const { return fault ? fault->ToString() : ""; }
  std::string_view Error() const {
    return fault ? ErrorName(fault->code) : std::string_view("none");
  }
};

inline Outcome RunProgram(const Program& program, std::string_view overrides = "",
                          const Arrays& inputs = {}, const RunOptions& options = {}) {
  Outcome outcome;
  auto config = ReadConfig(program.config_name, program.config_overrides);
  EXPECT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(SetKeys(overrides, *config).ok()) << overrides;
  auto machine = Machine::Create(*config);
  EXPECT_TRUE(machine.ok()) << machine.status();
  outcome.fault = (*machine)->Load(program);
  if (outcome.fault) return outcome;
  for (std::size_t d = 0; d < inputs.size(); ++d) {
    for (const auto& [name, bytes] : inputs[d]) {
      const auto status = (*machine)->WriteSymbol(static_cast<int>(d), name, bytes);
      EXPECT_TRUE(status.ok()) << status;
    }
  }
  outcome.fault = (*machine)->Run(options);
  outcome.cycles = (*machine)->cycles();
  for (int d = 0; d < config->devices; ++d) {
    outcome.counters.push_back((*machine)->counters(d));
    outcome.arrays.emplace_back();
    for (const Symbol& s : program.symbols)
      outcome.arrays.back()[s.name] = *(*machine)->ReadSymbol(d, s.name);
  }
  return outcome;
}

}  // namespace lazuli::npu
