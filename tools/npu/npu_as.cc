// npu-as: assembly to a program file.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "backend/npu/sim/assembler.h"
#include "ir/support/status.h"
#include "ir/support/text_file.h"
#include "tools/tool.h"

namespace lazuli::tools {
namespace {

constexpr std::string_view kUsage = R"(usage: npu-as FILE.s [-o FILE.npux]
Assembles a program of the simulated NPU. docs/npu.md has the instructions and directives. Without -o it is FILE.npux.
)";

absl::Status Run(const std::vector<std::string_view>& arguments) {
  std::string input, output;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    if (argument == "--help") {
      std::fputs(std::string(kUsage).c_str(), stdout);
      return absl::OkStatus();
    }
    if (argument == "-o" && i + 1 < arguments.size()) {
      output = arguments[++i];
    } else if ((argument.starts_with('-') && argument != "-") || !input.empty()) {
      return ir::InvalidArgument("unexpected ", argument, "; see --help");
    } else {
      input = argument;
    }
  }
  if (input.empty()) return ir::InvalidArgument("no file; see --help");
  LAZULI_ASSIGN_OR_RETURN(const std::string text, ReadAll(input));
  LAZULI_ASSIGN_OR_RETURN(const npu::Program program, npu::Assemble(text, input));
  if (output.empty())
    output = (input.ends_with(".s") ? input.substr(0, input.size() - 2) : input) + ".npux";
  return ir::WriteTextFile(output, npu::ToFile(program));
}

}  // namespace
}  // namespace lazuli::tools

int main(int argc, char** argv) {
  return lazuli::tools::ToolMain("npu-as", lazuli::tools::Run, argc, argv);
}
