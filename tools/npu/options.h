// What the tools of the simulated NPU share: the options that say which machine it is.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

#include "backend/npu/sim/config.h"

namespace lazuli::tools {

inline constexpr std::string_view kNpuOptionsHelp =
    R"(  --config=PRESET|FILE    npu1-edge, npu1-server or a file in TOML; without it, what NPU_CONFIG says
  --set=KEY=VALUE,...     keys of the configuration, after those of NPU_SET; may be given several times
  --help-config           print the keys
  --help                  print this
)";

struct NpuOptions {
  std::string config, set;

  // Whether the argument is one of these; then it is taken.
  bool Take(std::string_view argument);
  absl::StatusOr<npu::Config> Read() const;
};

}  // namespace lazuli::tools
