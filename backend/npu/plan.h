// Plan: a module as programs of the device and of the host, in order, with the arrays that pass
// between them.
#pragma once

#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

#include "backend/client/client.h"
#include "backend/npu/sim/checked_program.h"
#include "backend/npu/sim/config.h"
#include "backend/runtime/partition.h"

namespace lazuli::npu {

// A program of the device. Where each of its symbols is in a run.
struct DeviceProgram {
  struct Where {
    enum class Kind : uint8_t { kValue, kConstant, kTemporary };
    Kind kind;
    int32_t value = 0;    // of the plan
    uint64_t offset = 0;  // in the block of constants or of temporaries
  };
  std::shared_ptr<const CheckedProgram> program;
  std::vector<Where> symbols;
  // A parameter's memory, which the program updates: it becomes the value's.
  struct UpdatedParameter {
    int32_t value, parameter;
  };
  std::vector<UpdatedParameter> updates;
  uint64_t constant_bytes = 0, temporary_bytes = 0;
  // A collective: of each device, who runs it together with it. Empty: the program is one device's.
  std::vector<std::vector<int>> meetings;
  std::string what;  // the collective, for errors
  std::vector<const hlo::Instruction*>
      origins;  // of the program's, in the region's module; or null
};

// A program of the host: the client's that compiles for the host's processor, or the module itself,
// for the evaluator.
struct HostProgram {
  ExecutablePtr executable;  // null: the evaluator
};

struct PlanStep {
  const Region* region = nullptr;
  std::variant<DeviceProgram, HostProgram> program;
};

// An op that runs on the host, and why: a row of the summary at exit.
struct HostOp {
  std::string op, code;
  std::string sentence;  // of the first one
  int64_t count = 0;
};

struct Plan {
  std::unique_ptr<hlo::Module> module;  // simplified
  Partition partition;
  std::vector<PlanStep> steps;
  std::vector<HostOp> host_ops;
  std::string placement;  // text
};

// Who compiles and runs the host's programs: the platform "cpu" if there is one, else "interpreter".
absl::StatusOr<ComputationClient*> HostClient();

// An error if the NPU lacks something of the module.
absl::Status CheckPlacement(std::unique_ptr<hlo::Module> module, const Config& config,
                            const backend::CompileOptions& options);

absl::StatusOr<Plan> MakePlan(std::unique_ptr<hlo::Module> module, const Config& config,
                              const backend::CompileOptions& options);

}  // namespace lazuli::npu
