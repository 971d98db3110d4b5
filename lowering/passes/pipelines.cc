#include "lowering/passes/pipelines.h"

#include "lowering/passes/cse.h"
#include "lowering/passes/dce.h"
#include "lowering/passes/drop_layouts.h"
#include "lowering/passes/expand_scans.h"
#include "lowering/passes/fold_constants.h"
#include "lowering/passes/fold_transposes.h"
#include "lowering/passes/inline_calls.h"
#include "lowering/passes/registry.h"
#include "lowering/passes/simplify.h"

namespace lazuli::lowering {

void AddSimplificationPipeline(PassPipeline& pipeline) {
  for (const AddedPass& added : AddedPasses()) {
    if (added.every_program) pipeline.Add(added.make());  // sees the program as it was written
  }
  pipeline.Add<Dce>();  // first, so that nothing below spends time on, or is kept from a rewrite
                        // by, what is unused
  pipeline.Add<DropLayouts>();  // before rules move values about: layouts are chosen afterwards
  pipeline.Add<ExpandScans>();  // before what is done to loops and their bodies
  auto& loop = pipeline.Add<PassPipeline>("simplification", 4);
  loop.Add<InlineCalls>();  // callers see through calls; inside the loop because a known branch
                            // becomes a call
  loop.Add<Simplify>();  // brings constants together for folding and equal values into equal forms
                         // for cse
  loop.Add<FoldConstants>();  // before cse: it makes equal constants
  loop.Add<Cse>();
  loop.Add<FoldTransposes>();  // after cse: a value shared by two transposes counts as one
  loop.Add<Dce>();  // callees that were inlined, and instructions whose only users merged
}

}  // namespace lazuli::lowering
