// Where the time of a compiled module goes: compiles HLO text for the CPU, runs it on random
// arguments, and prints the median of each thunk, slowest first.
//
//   profile_thunks FILE.hlo [RUNS]
//
// LAZULI_DUMP_DIR of a program that trains writes such files ("00.before.hlo").
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <map>
#include <sstream>
#include <vector>

#include "backend/client/registry.h"
#include "backend/cpu/cpu_client.h"
#include "ir/hlo/text/parser.h"
#include "ir/support/span.h"
#include "ir/support/status.h"

namespace lazuli {
namespace {

using backend::BufferPtr;

// Small positive numbers: indices that are in range, and no overflow after many runs.
absl::StatusOr<BufferPtr> Argument(const ir::Shape& shape, backend::Device device) {
  ir::Literal literal(shape);
  for (int64_t i = 0; i < shape.num_elements(); ++i) {
    literal.SetFromDouble(i, ir::IsIntegral(shape.dtype()) ? static_cast<double>(i % 10)
                                                           : static_cast<double>(i % 97) / 4096);
  }
  return device.client->FromHost({literal.raw(), &literal.shape()}, {}, device);
}

// What follows "thunks:" in the text of an executable, by the name of the instruction.
std::map<std::string, std::string> ThunkLines(const std::string& text) {
  std::map<std::string, std::string> result;
  std::istringstream lines(text.substr(text.find("\nthunks:") + 1));
  std::string line, number, kind, name;
  std::getline(lines, line);
  std::cout << line << "\n";
  while (std::getline(lines, line)) {
    std::istringstream words(line);
    if (words >> number >> kind >> name) result[name] = line;
  }
  return result;
}

absl::Status Profile(const std::string& text, int runs) {
  cpu::RegisterCpu();
  LAZULI_ASSIGN_OR_RETURN(const backend::Device device, backend::FindDevice("cpu"));
  LAZULI_ASSIGN_OR_RETURN(auto module, hlo::ParseModule(text));
  std::vector<BufferPtr> arguments;
  for (const auto* parameter : module->entry()->parameters()) {
    LAZULI_ASSIGN_OR_RETURN(BufferPtr argument, Argument(parameter->shape(), device));
    arguments.push_back(std::move(argument));
  }
  LAZULI_ASSIGN_OR_RETURN(backend::CompileOptions options, backend::CompileOptions::FromFlags());
  options.device = device.ordinal;
  LAZULI_ASSIGN_OR_RETURN(auto executable, device.client->Compile(std::move(module), options));
  std::map<std::string, std::vector<double>> times;  // milliseconds, by thunk; "" is a whole run
  for (int run = -3; run < runs; ++run) {            // three to warm up
    ir::SetTracing(run >= 0);
    const auto start = std::chrono::steady_clock::now();
    LAZULI_RETURN_IF_ERROR(
        executable->Execute({.buffers = arguments, .scalars = {}, .donated = {}}).status());
    const std::chrono::duration<double, std::milli> elapsed =
        std::chrono::steady_clock::now() - start;
    if (run >= 0) times[""].push_back(elapsed.count());
    for (const auto& span : ir::TakeSpans())
      times[span.label->name].push_back(static_cast<double>(span.duration_ns) / 1e6);
  }
  const auto lines = ThunkLines(executable->ToString());
  std::vector<std::pair<double, std::string>> medians;
  for (auto& [name, values] : times) {
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    const auto line = lines.find(name);
    medians.emplace_back(values[values.size() / 2], line != lines.end() ? line->second
                                                    : name.empty()      ? "  a run"
                                                                        : name);
  }
  std::sort(medians.rbegin(), medians.rend());
  for (const auto& [ms, line] : medians) std::printf("%8.3f ms %s\n", ms, line.c_str());
  return absl::OkStatus();
}

}  // namespace
}  // namespace lazuli

int main(int argc, char** argv) {
  std::ifstream file(argc > 1 ? argv[1] : "");
  if (!file) {
    std::cerr << "usage: profile_thunks FILE.hlo [RUNS]\n";
    return 2;
  }
  std::stringstream text;
  text << file.rdbuf();
  const absl::Status status = lazuli::Profile(text.str(), argc > 2 ? std::atoi(argv[2]) : 50);
  if (!status.ok()) std::cerr << lazuli::ir::Message(status) << "\n";
  return status.ok() ? 0 : 1;
}
