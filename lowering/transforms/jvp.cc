#include "lowering/transforms/jvp.h"

#include <utility>

#include "ir/support/status.h"
#include "lowering/transforms/derivation.h"
#include "lowering/transforms/tangents.h"

namespace lazuli::lowering {

absl::StatusOr<std::unique_ptr<hlo::Module>> Jvp(const hlo::Module& module,
                                                 const ActiveLeaves& active, std::size_t trailing) {
  LAZULI_ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> made, PrepareToDerive(module));
  LAZULI_ASSIGN_OR_RETURN(const DerivedEntry derived, DeriveEntry(*made, active));
  Builder b(made.get(), module.entry()->name());
  const std::vector<Op> parameters = ParametersLike(b, *derived.computation);
  const std::vector<Op> results = PartsOf(b, b.Call(derived.computation, parameters));
  const std::vector<Shape> shapes = PartsOf(module.entry()->root()->shape());
  std::vector<Op> all, last;
  std::size_t next = shapes.size();
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    if (shapes[k].IsArray()) (k + trailing < shapes.size() ? all : last).push_back(results[k]);
  }
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    if (!HasTangents(shapes[k])) continue;
    all.push_back(derived.active[k] ? results[next++] : b.Full(shapes[k].WithDefaultLayout(), 0));
  }
  all.insert(all.end(), last.begin(), last.end());
  LAZULI_ASSIGN_OR_RETURN(hlo::Computation* const entry, b.Finish(b.Tuple(all)));
  return Tidied(std::move(made), entry);
}

}  // namespace lazuli::lowering
