#include "lowering/passes/registry.h"

#include <string>

#include "ir/support/status.h"
#include "lowering/passes/cse.h"
#include "lowering/passes/dce.h"
#include "lowering/passes/fold_constants.h"
#include "lowering/passes/fold_transposes.h"
#include "lowering/passes/inline_calls.h"
#include "lowering/passes/pipelines.h"
#include "lowering/passes/simplify.h"

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

constexpr PassRow kPasses[] = {
    {"cse", "Merge equal instructions.", Make<Cse>},
    {"dce", "Remove what nothing needs.", Make<Dce>},
    {"fold_constants", "Evaluate instructions on constants.", Make<FoldConstants>},
    {"fold_transposes", "Fold transposes into dots and convolutions.", Make<FoldTransposes>},
    {"inline_calls", "Replace calls by what they call.", Make<InlineCalls>},
    {"pipeline", "All target-independent passes, as backends run them.", MakePipeline},
    {"simplify", "Apply the algebraic rules.", Make<Simplify>},
};

}  // namespace

absl::Span<const PassRow> RegisteredPasses() { return kPasses; }

absl::StatusOr<std::unique_ptr<Pass>> MakePass(std::string_view name) {
  std::string names;
  for (const PassRow& row : kPasses) {
    if (row.name == name) return row.make();
    names += Str(names.empty() ? "" : ", ", row.name);
  }
  return NotFound("there is no pass ", name, "; there are ", names);
}

}  // namespace lazuli::lowering
