// npu-doc: parts of docs/npu.md that derive from tables, as Markdown. tools/npu/docs.py puts them
// in.
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "backend/npu/sim/config.h"
#include "backend/npu/sim/energy.h"
#include "backend/npu/sim/fault.h"
#include "backend/npu/sim/isa.h"
#include "ir/support/status.h"
#include "tools/npu/area.h"
#include "tools/tool.h"

namespace lazuli::tools {
namespace {

struct Part {
  std::string_view name;
  std::string (*text)();
};
constexpr Part kParts[] = {
    {"area", npu::AreaPage},    {"config", npu::ConfigPage},   {"energy", npu::EnergyPage},
    {"errors", npu::ErrorPage}, {"isa", npu::InstructionPage},
};

absl::Status Run(const std::vector<std::string_view>& arguments) {
  for (const Part& part : kParts) {
    if (arguments.size() != 1 || arguments[0] != part.name) continue;
    std::fputs(part.text().c_str(), stdout);
    return absl::OkStatus();
  }
  std::string names;
  for (const Part& part : kParts) names += ir::Str(names.empty() ? "" : "|", part.name);
  return ir::InvalidArgument("usage: npu-doc ", names);
}

}  // namespace
}  // namespace lazuli::tools

int main(int argc, char** argv) {
  return lazuli::tools::ToolMain("npu-doc", lazuli::tools::Run, argc, argv);
}
