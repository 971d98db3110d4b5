// A traced lazy graph becomes an HLO module: parameters, constants, outputs, aliases, run-time
// checks.
//
// Parameters are the data leaves in order of first visit, then the numbers, unless there is a
// signature. The root is always a
// tuple: the graph's roots, then one s64 scalar per run-time check (lowering::RuntimeCheck). Sites
// become metadata. Iterative over the depth of the graph.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/graph/post_order.h"
#include "ir/hlo/module.h"
#include "ir/types/literal.h"
#include "lowering/builder/lowering_context.h"

namespace lazuli::lowering {

// A check that a run of the module makes: its value is output `roots + i`.
struct EmittedCheck {
  uint32_t node = 0;  // position in the trace; its name and site are looked up at every run
  CheckMessage message;
};

// A value of floats, with an s64 output that is above 0 if it has a NaN.
struct EmittedNaN {
  uint32_t node = 0;  // position in the trace
  std::string name;   // of the op; empty: a leaf
  Shape shape;
  std::vector<uint32_t> operands{};  // those of floats, as positions among the values
};

struct EmittedModule {
  std::unique_ptr<hlo::Module> module;
  std::vector<EmittedCheck> checks;
  // With find_nans: the values, of data and of each node in the order of the trace, that have a flag for
  // NaN, a further output: what comes behind the checks.
  std::vector<EmittedNaN> nans;
  // By root: whether it is computed from what is not written where a check fails (GuardUpdates).
  std::vector<uint8_t> after_guard;
};

// Dtypes that programs compute with instead of those that tensors have, as XLA_USE_32BIT_LONG,
// XLA_USE_BF16 and XLA_DOWNCAST_BF16 ask for it.
//
// An op gets its operands in these, and so computes in them. Where that makes no sense (random
// numbers, whose seeds have 64 bits; bits that are looked at as another dtype) it computes as
// recorded, and its results are converted. Parameters and outputs keep their dtypes.
struct Narrowing {
  enum Floats : uint8_t { kKept, kAllBf16, kDowncast };  // kDowncast: f32 to bf16, f64 to f32
  bool longs = false;                                    // s64 to s32, u64 to u32
  Floats floats = kKept;
  bool any() const { return longs || floats != kKept; }
  DType Of(DType dtype) const;
};

// Of a program that is called instead of synced: its parameters, used or not, and what each leaf of
// the trace is, data before numbers: one of them, or a constant.
struct EmitSignature {
  std::vector<Shape> parameters;
  std::vector<std::variant<int64_t, ir::Literal>> leaves;
  // Calls of programs that are made again beside others, which have their effects: only functions of
  // the host whose results are used run again.
  std::vector<const ir::Node*> repeated = {};
};

struct EmitOptions {
  std::string name = "SyncTensorsGraph";
  Narrowing narrowing = {};
  // Output i updates data leaf j and may take its memory.
  std::vector<hlo::Alias> aliases;
  // Names of data leaves ("conv1.weight"), by slot; may be shorter or hold empty ones.
  std::vector<std::string> parameter_names;
  std::optional<EmitSignature> signature = {};
  bool find_nans = false;
};

absl::StatusOr<EmittedModule> EmitModule(const ir::Trace& trace, const EmitOptions& options);

// One node alone, as EmitModule would lower it: its operands are the parameters, its results and
// checks the elements of the root.
absl::StatusOr<std::unique_ptr<hlo::Module>> EmitNode(const ir::Node& node,
                                                      const Narrowing& narrowing);

}  // namespace lazuli::lowering
