// npu-dbg: the debugger of the simulated NPU.
#include <cstdio>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <unistd.h>

#include "ir/support/status.h"
#include "tools/npu/debugger.h"
#include "tools/npu/program.h"
#include "tools/tool.h"

namespace lazuli::tools {
namespace {

using ir::Str;

constexpr std::string_view kUsage = R"(usage: npu-dbg FILE [options]
Runs a program of the simulated NPU step by step, forwards and backwards. Commands come from standard input; help lists them.

  --inputs=IN.npz         the program's inputs by name; x@2 is for device 2 alone
  --seed=N                draw the inputs that no file has
)";

absl::Status Run(const std::vector<std::string_view>& arguments) {
  std::string file, value;
  NpuOptions options;
  InputSource inputs;
  for (const std::string_view argument : arguments) {
    if (options.Take(argument) || TakeValue(argument, "--inputs", &inputs.npz)) continue;
    if (TakeValue(argument, "--seed", &value)) {
      LAZULI_ASSIGN_OR_RETURN(const int64_t seed, ParseInteger("--seed", value));
      inputs.seed = static_cast<uint64_t>(seed);
    } else if (argument == "--help" || argument == "--help-config") {
      std::fputs(
          argument == "--help" ? Str(kUsage, kNpuOptionsHelp).c_str() : npu::ConfigHelp().c_str(),
          stdout);
      return absl::OkStatus();
    } else if (argument.starts_with('-') || !file.empty()) {
      return ir::InvalidArgument("unexpected ", argument, "; see --help");
    } else {
      file = argument;
    }
  }
  if (file.empty()) return ir::InvalidArgument("no file; see --help");
  LAZULI_ASSIGN_OR_RETURN(const npu::Program program, LoadProgram(file));
  LAZULI_ASSIGN_OR_RETURN(const npu::Config config, ConfigFor(program, options));
  auto maker = [&]() -> absl::StatusOr<std::unique_ptr<npu::Machine>> {
    LAZULI_ASSIGN_OR_RETURN(auto machine, npu::Machine::Create(config));
    if (const auto fault = machine->Load(program)) return npu::ToStatus(*fault);
    LAZULI_RETURN_IF_ERROR(WriteInputs(*machine, inputs));
    return machine;
  };
  LAZULI_ASSIGN_OR_RETURN(const auto debugger, npu::Debugger::Create(maker));
  const bool terminal = isatty(STDIN_FILENO) != 0;
  std::string line, before = "step";
  while (!debugger->quits()) {
    if (terminal) std::fputs("(npu) ", stdout);
    std::fflush(stdout);
    if (!std::getline(std::cin, line)) break;
    // As in other debuggers, an empty line does again what the one before did.
    if (line.empty() && terminal) line = before;
    before = line;
    std::fputs(debugger->Execute(line).c_str(), stdout);
  }
  return absl::OkStatus();
}

}  // namespace
}  // namespace lazuli::tools

int main(int argc, char** argv) {
  return lazuli::tools::ToolMain("npu-dbg", lazuli::tools::Run, argc, argv);
}
