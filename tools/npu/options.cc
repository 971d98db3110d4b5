#include "tools/npu/options.h"

#include "ir/support/flags.h"
#include "ir/support/status.h"
#include "tools/tool.h"

namespace lazuli::tools {

bool NpuOptions::Take(std::string_view argument) {
  std::string keys;
  if (TakeValue(argument, "--config", &config)) return true;
  if (!TakeValue(argument, "--set", &keys)) return false;
  set += (set.empty() ? "" : ",") + keys;
  return true;
}

absl::StatusOr<npu::Config> NpuOptions::Read() const {
  const std::string& source = config.empty() ? ir::flags().npu_config() : config;
  LAZULI_ASSIGN_OR_RETURN(npu::Config result, npu::ReadConfig(source, ""));
  LAZULI_RETURN_IF_ERROR(ir::Prefixed(npu::SetKeys(ir::flags().npu_set(), result), "NPU_SET: "));
  LAZULI_RETURN_IF_ERROR(ir::Prefixed(npu::SetKeys(set, result), "--set: "));
  LAZULI_RETURN_IF_ERROR(npu::Check(result));
  return result;
}

}  // namespace lazuli::tools
