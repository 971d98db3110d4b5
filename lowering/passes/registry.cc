#include "lowering/passes/registry.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>

#include "ir/support/fork.h"
#include "ir/support/runtime.h"
#include "ir/support/status.h"
#include "lowering/passes/cse.h"
#include "lowering/passes/dce.h"
#include "lowering/passes/drop_layouts.h"
#include "lowering/passes/expand_scans.h"
#include "lowering/passes/fold_constants.h"
#include "lowering/passes/fold_transposes.h"
#include "lowering/passes/inline_calls.h"
#include "lowering/passes/jitter.h"
#include "lowering/passes/join_async.h"
#include "lowering/passes/pipelines.h"
#include "lowering/passes/reduce_vector_products.h"
#include "lowering/passes/simplify.h"
#include "lowering/passes/split_complex_products.h"
#include "lowering/passes/unroll_reductions.h"
#include "lowering/passes/widen_products.h"

namespace lazuli::lowering {
namespace {

template <class P>
std::unique_ptr<Pass> Make() {
  return std::make_unique<P>();
}

std::unique_ptr<Pass> MakePipeline() {
  auto pipeline = std::make_unique<PassPipeline>("pipeline");
  AddSimplificationPipeline(*pipeline);
  return pipeline;
}

struct Added {
  std::atomic<bool> any_for_programs{false};
  ir::ForkMutex mutex;
  std::vector<AddedPass> passes;
};
Added& TheAdded() { return ir::Runtime::Get().Of<Added>(); }

constexpr PassRow kPasses[] = {
    {"cse", "Merge equal instructions.", Make<Cse>},
    {"dce", "Remove what nothing needs.", Make<Dce>},
    {"drop_layouts", "Make every array row major.", Make<DropLayouts>},
    {"expand_scans", "Write scans as loops.", Make<ExpandScans>},
    {"fold_constants", "Evaluate instructions on constants.", Make<FoldConstants>},
    {"fold_transposes", "Fold transposes into dots and convolutions.", Make<FoldTransposes>},
    {"inline_calls", "Replace calls by what they call.", Make<InlineCalls>},
    {"jitter", "Multiply floats by random factors near 1 (LAZULI_JITTER).", Make<Jitter>},
    {"join_async", "Make one instruction of what begins and ends as two.", Make<JoinAsync>},
    {"pipeline", "All target-independent passes, as backends run them.", MakePipeline},
    {"reduce_vector_products",
     "Make reductions of inner products of vectors, multiplications of outer ones.",
     Make<ReduceVectorProducts>},
    {"simplify", "Apply the algebraic rules.", Make<Simplify>},
    {"split_complex_products", "Make products of complex numbers of real ones.",
     Make<SplitComplexProducts>},
    {"unroll_reductions", "Write reductions and dots of few elements out.", Make<UnrollReductions>},
    {"widen_products", "Let products of narrow floats run in f32.", Make<WidenProducts>},
};

}  // namespace

absl::Span<const PassRow> RegisteredPasses() { return kPasses; }

absl::Status AddPass(AddedPass pass) {
  if (pass.name.empty() || pass.name.find_first_of(", ") != std::string::npos)
    return InvalidArgument("a pass cannot be called \"", pass.name, "\"");
  Added& added = TheAdded();
  std::lock_guard lock(added.mutex);
  const auto same = [&pass](const auto& other) { return other.name == pass.name; };
  if (std::any_of(std::begin(kPasses), std::end(kPasses), same) ||
      std::any_of(added.passes.begin(), added.passes.end(), same))
    return FailedPrecondition("there is a pass ", pass.name, " already");
  if (pass.every_program) added.any_for_programs = true;
  added.passes.push_back(std::move(pass));
  return absl::OkStatus();
}

absl::Status RemovePass(std::string_view name) {
  Added& added = TheAdded();
  std::lock_guard lock(added.mutex);
  const auto erased = std::erase_if(
      added.passes, [name](const AddedPass& pass) { return pass.removable && pass.name == name; });
  if (erased == 0) return NotFound("no pass ", name, " was registered");
  return absl::OkStatus();
}

std::string ProgramPasses() {
  std::string names;
  if (!TheAdded().any_for_programs) return names;
  for (const AddedPass& pass : AddedPasses()) {
    if (pass.every_program) names += Str(names.empty() ? "" : ",", pass.name);
  }
  return names;
}

std::vector<AddedPass> AddedPasses() {
  Added& added = TheAdded();
  std::lock_guard lock(added.mutex);
  return added.passes;
}

absl::StatusOr<std::unique_ptr<Pass>> MakePass(std::string_view name) {
  std::string names;
  for (const PassRow& row : kPasses) {
    if (row.name == name) return row.make();
    names += Str(names.empty() ? "" : ", ", row.name);
  }
  for (const AddedPass& pass : AddedPasses()) {
    if (pass.name == name) return pass.make();
    names += Str(", ", pass.name);
  }
  return NotFound("there is no pass ", name, "; there are ", names);
}

}  // namespace lazuli::lowering
