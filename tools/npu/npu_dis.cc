// npu-dis: a program file to assembly.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "backend/npu/sim/assembler.h"
#include "ir/support/status.h"
#include "tools/npu/program.h"
#include "tools/tool.h"

namespace lazuli::tools {
namespace {

constexpr std::string_view kUsage = R"(usage: npu-dis FILE.npux
Prints a program of the simulated NPU as text that npu-as assembles to the same bytes.
)";

absl::Status Run(const std::vector<std::string_view>& arguments) {
  if (arguments.size() != 1) return ir::InvalidArgument("one file; see --help");
  if (arguments[0] == "--help") {
    std::fputs(std::string(kUsage).c_str(), stdout);
    return absl::OkStatus();
  }
  LAZULI_ASSIGN_OR_RETURN(const npu::Program program, LoadProgram(std::string(arguments[0])));
  std::fputs(npu::Disassemble(program).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace
}  // namespace lazuli::tools

int main(int argc, char** argv) {
  return lazuli::tools::ToolMain("npu-dis", lazuli::tools::Run, argc, argv);
}
