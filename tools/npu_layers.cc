// npu-layers: cycles, utilisation and traffic of a network's layers on the simulated array.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "backend/npu/sim/config.h"
#include "backend/npu/sim/layers.h"
#include "ir/support/status.h"
#include "tools/npu_tool.h"
#include "tools/tool.h"

namespace lazuli::tools {
namespace {

constexpr std::string_view kUsage = R"(usage: npu-layers --topology=FILE.csv [options]
Prints, as CSV, what each layer of a topology file of SCALE-Sim costs: lines `name,M,N,K,`, or
`name,image height,width,filter height,width,channels,filters,stride,`, below a heading. Words are of one byte.

)";

constexpr std::string_view kColumns = R"(
Columns: cycles (of the array; its data lie in the scratchpad), cycles_incl_prefetch (from the first byte asked of the
DRAM to the last one there), stall (of these, waiting for the DRAM), overall_util, map_eff, comp_util (percent),
accesses of SRAM and of DRAM for inputs, weights and results. --set=compat.scalesim=true counts as SCALE-Sim 3.0.0 does.
)";

absl::Status Run(const std::vector<std::string_view>& arguments) {
  NpuOptions machine;
  std::string topology;
  for (const std::string_view argument : arguments) {
    if (argument == "--help") {
      std::fputs(ir::Str(kUsage, kNpuOptionsHelp,
                         "  --topology=FILE.csv     the layers; - is standard input\n", kColumns)
                     .c_str(),
                 stdout);
      return absl::OkStatus();
    }
    if (argument == "--help-config") {
      std::fputs(npu::ConfigHelp().c_str(), stdout);
      return absl::OkStatus();
    }
    if (machine.Take(argument) || TakeValue(argument, "--topology", &topology)) continue;
    return ir::InvalidArgument("unknown option ", argument, "; --help lists them");
  }
  if (topology.empty())
    return ir::InvalidArgument("--topology=FILE.csv is missing; --help lists the options");
  LAZULI_ASSIGN_OR_RETURN(const npu::Config config, machine.Read());
  LAZULI_ASSIGN_OR_RETURN(const std::string text, ReadAll(topology));
  LAZULI_ASSIGN_OR_RETURN(const auto layers, npu::ParseTopology(text, topology));
  std::fputs(npu::LayersCsv(layers, config).c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace
}  // namespace lazuli::tools

int main(int argc, char** argv) {
  return lazuli::tools::ToolMain("npu-layers", lazuli::tools::Run, argc, argv);
}
