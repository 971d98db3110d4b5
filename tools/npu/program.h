// What npu-as, npu-dis, npu-run and npu-dbg share: programs from files, machines, arrays from .npz
// files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

#include "backend/npu/sim/machine.h"
#include "backend/npu/sim/program.h"
#include "tools/npu/options.h"

namespace lazuli::tools {

// A program file, or one of assembly if its name ends in .s. Errors name the file.
absl::StatusOr<npu::Program> LoadProgram(const std::string& file);

// The machine that the options say; where they say nothing, the one that the program is made for.
absl::StatusOr<npu::Config> ConfigFor(const npu::Program& program, const NpuOptions& options);

// What the program reads, from where the user says.
struct InputSource {
  std::string npz;               // arrays by name, `x@2` for device 2 alone; empty: none
  std::optional<uint64_t> seed;  // draws those that the file lacks
};
absl::Status WriteInputs(npu::Machine& machine, const InputSource& source);
// The arrays that the program writes; of several devices `x@d`.
absl::Status WriteOutputs(const npu::Machine& machine, const std::string& npz);

}  // namespace lazuli::tools
