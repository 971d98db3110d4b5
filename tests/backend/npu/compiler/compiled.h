// Runs compiled programs: the evaluator against the simulator.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "backend/npu/compiler/compile.h"
#include "backend/npu/sim/machine.h"
#include "ir/hlo/module.h"
#include "ir/types/literal.h"
#include "tests/support/hlo_test.h"

namespace lazuli::npu {

// As devices compile what a program recorded: simplified first.
absl::StatusOr<Program> CompileSimplified(const hlo::Module& module, const Config& config,
                                          CompileReport* report = nullptr);

// Compiles a module and runs it in strict mode, with its cycles if `cycles` is given.
absl::StatusOr<Literal> RunCompiled(const hlo::Module& module,
                                    absl::Span<const Literal* const> arguments,
                                    const Config& config, const RunOptions& options = {},
                                    int64_t* cycles = nullptr);

struct Expectation {
  double rtol = 0, atol = 0;  // 0: bit for bit
  Config config = {};
  RandomValues values = RandomValues::kTame;
};
// Adds a failure unless the program computes what the evaluator does. It runs with its cycles and
// with delays at random, which must agree to the bit.
void ExpectCompiled(const hlo::Module& module, const Expectation& expectation = {});
void ExpectCompiled(std::string_view hlo, const Expectation& expectation = {});

}  // namespace lazuli::npu
