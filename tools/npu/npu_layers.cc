// npu-layers: cycles, utilisation and traffic of a network's layers on the simulated array.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "backend/npu/sim/config.h"
#include "ir/support/status.h"
#include "tools/npu/layers.h"
#include "tools/npu/options.h"
#include "tools/tool.h"

namespace lazuli::tools {
namespace {

constexpr std::string_view kUsage = R"(usage: npu-layers --topology=FILE.csv [options]
Prints, as CSV, what each layer of a topology file of SCALE-Sim costs. Below a heading, its lines are
`name,M,N,K,`, or `name,image height,width,filter height,width,channels,filters,stride,`.

  --topology=FILE.csv     the layers; - is standard input
  --columns=NAME,...      only these columns, in this order
  --table                 a table for people instead of CSV
  --total                 a last line with the sums
)";

constexpr std::string_view kColumns = R"(
Words are of one byte. Columns: cycles (of the array; its data lie in the scratchpad),
cycles_incl_prefetch (from the first byte asked of the DRAM to the last one there), stall (of these,
waiting for the DRAM), overall_util, map_eff, comp_util (percent), accesses of SRAM and of DRAM for
inputs, weights and results; on request energy_uj (microjoules by the energy table in its heading).
--set=compat.scalesim=true counts as SCALE-Sim 3.0.0 does.
)";

absl::Status Run(const std::vector<std::string_view>& arguments) {
  NpuOptions machine;
  std::string topology;
  npu::LayersFormat format;
  for (const std::string_view argument : arguments) {
    if (argument == "--help") {
      std::fputs(ir::Str(kUsage, kNpuOptionsHelp, kColumns).c_str(), stdout);
      return absl::OkStatus();
    }
    if (argument == "--help-config") {
      std::fputs(npu::ConfigHelp().c_str(), stdout);
      return absl::OkStatus();
    }
    if (argument == "--table") {
      format.aligned = true;
    } else if (argument == "--total") {
      format.total = true;
    } else if (!machine.Take(argument) && !TakeValue(argument, "--topology", &topology) &&
               !TakeValue(argument, "--columns", &format.columns)) {
      return ir::InvalidArgument("unknown option ", argument, "; --help lists them");
    }
  }
  if (topology.empty())
    return ir::InvalidArgument("--topology=FILE.csv is missing; --help lists the options");
  LAZULI_ASSIGN_OR_RETURN(const npu::Config config, machine.Read());
  LAZULI_ASSIGN_OR_RETURN(const std::string text, ReadAll(topology));
  LAZULI_ASSIGN_OR_RETURN(const auto layers, npu::ParseTopology(text, topology));
  LAZULI_ASSIGN_OR_RETURN(const std::string printed, npu::LayersText(layers, config, format));
  std::fputs(printed.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace
}  // namespace lazuli::tools

int main(int argc, char** argv) {
  return lazuli::tools::ToolMain("npu-layers", lazuli::tools::Run, argc, argv);
}
