#include "lowering/passes/pipelines.h"

#include "ir/support/name_list.h"
#include "lowering/passes/cse.h"
#include "lowering/passes/dce.h"
#include "lowering/passes/drop_layouts.h"
#include "lowering/passes/expand_scans.h"
#include "lowering/passes/fold_constants.h"
#include "lowering/passes/fold_transposes.h"
#include "lowering/passes/jitter.h"
#include "lowering/passes/join_async.h"
#include "lowering/passes/registry.h"
#include "lowering/passes/simplify.h"

namespace lazuli::lowering {

void AddSimplificationPipeline(PassPipeline& pipeline, const CallFilter& stays) {
  for (const std::string_view name : SplitNames(pipeline.options().program_passes)) {
    // Sees the program as it was written. A name that there is not is the pipeline's error.
    if (absl::StatusOr<std::unique_ptr<Pass>> pass = MakePass(name); pass.ok())
      pipeline.Add(*std::move(pass));
  }
  // Of the program as it was written: what is merged later has one factor.
  if (const PassOptions& options = pipeline.options(); !options.jitter.empty())
    pipeline.Add<Jitter>(options.jitter, options.jitter_seed);
  // First, so that nothing below spends time on what is unused, or is kept from a rewrite by it.
  pipeline.Add<Dce>();
  // Before rules, which do not see through the halves.
  pipeline.Add<JoinAsync>();
  // Before rules move values about: layouts are chosen afterwards.
  pipeline.Add<DropLayouts>();
  // Before what is done to loops and their bodies.
  pipeline.Add<ExpandScans>();

  auto& loop = pipeline.Add<PassPipeline>("simplification", 4, pipeline.options());
  // Callers see through calls. Inside the loop, because a branch that becomes known becomes a call.
  loop.Add<InlineCalls>(stays);
  // Brings constants together for folding, and equal values into equal forms for cse.
  loop.Add<Simplify>(AllRules(), pipeline.options().disabled_rules);
  // Before cse, because it makes equal constants.
  loop.Add<FoldConstants>();
  loop.Add<Cse>();
  // After cse: a value shared by two transposes then counts as one.
  loop.Add<FoldTransposes>();
  // Callees that were inlined, and instructions whose only users were merged.
  loop.Add<Dce>();
}

}  // namespace lazuli::lowering
