// A traced lazy graph becomes an HLO module: parameters, constants, outputs, aliases, run-time
// checks.
//
// Parameters are the data leaves in order of first visit, then the numbers. The root is always a
// tuple: the graph's roots, then one s64 scalar per run-time check (lowering::RuntimeCheck). Sites
// become metadata. Iterative over the depth of the graph.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/graph/post_order.h"
#include "ir/hlo/module.h"
#include "lowering/builder/lowering_context.h"

namespace lazuli::lowering {

// A check that a run of the module makes: its value is output `roots + i`.
struct EmittedCheck {
  uint32_t node = 0;  // position in the trace; its name and site are looked up at every run
  CheckMessage message;
};

struct EmittedModule {
  std::unique_ptr<hlo::Module> module;
  std::vector<EmittedCheck> checks;
};

struct EmitOptions {
  std::string name = "SyncTensorsGraph";
  // Output i updates data leaf j and may take its memory.
  std::vector<hlo::Alias> aliases;
  // Names of data leaves ("conv1.weight"), by slot; may be shorter or hold empty ones.
  std::vector<std::string> parameter_names;
};

absl::StatusOr<EmittedModule> EmitModule(const ir::Trace& trace, const EmitOptions& options);

}  // namespace lazuli::lowering
