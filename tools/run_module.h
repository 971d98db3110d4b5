// Running modules for the command-line tools: inputs by seed, one device or two, how results
// differ.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "backend/client/client.h"
#include "ir/hlo/module.h"
#include "ir/types/literal.h"

namespace lazuli::tools {

// Registers the platforms that the tools offer: cpu and interpreter.
void RegisterPlatforms();

// Values decided by shape, seed and position: floats in [-1, 1), integers in [-8, 8) or [0, 8),
// pred.
ir::Literal RandomInput(const ir::Shape& shape, uint64_t seed, uint64_t position);

// The arrays that a run of the module takes: the leaves of its parameters, row major.
std::vector<ir::Shape> InputShapes(const hlo::Module& module);

struct RunResult {
  std::vector<ir::Literal> outputs;  // leaves of the root, then of what the outfeed was sent
  backend::ExecutableStats stats;
  double compile_ms = 0;
  double run_ms = 0;  // the shortest of all repetitions
};

// Compiles the module and runs it `repeat` times on these inputs (see InputShapes).
absl::StatusOr<RunResult> RunModule(std::unique_ptr<hlo::Module> module, backend::Device device,
                                    const std::vector<ir::Literal>& inputs, int64_t repeat = 1);

// OK if every element of every output is within atol + rtol * |expected| of what is expected, or
// both are NaN; else what differs first, where, and by how much.
absl::Status CompareOutputs(const std::vector<ir::Literal>& expected,
                            const std::vector<ir::Literal>& actual, double rtol, double atol);

}  // namespace lazuli::tools
