#include "lowering/transforms/derivation.h"

#include <utility>

#include "ir/support/status.h"
#include "lowering/passes/dce.h"
#include "lowering/passes/drop_layouts.h"
#include "lowering/passes/expand_scans.h"
#include "lowering/passes/inline_calls.h"
#include "lowering/passes/join_async.h"
#include "lowering/passes/pipelines.h"
#include "lowering/transforms/tangents.h"

namespace lazuli::lowering {
namespace {

absl::Status Run(hlo::Module& module, PassPipeline& pipeline) {
  return pipeline.Run(module).status();
}

// Flags for the parts of the entry's parameters: those of arrays as they are wanted.
absl::StatusOr<ActiveLeaves> ActiveParts(absl::Span<const Shape> parts,
                                         const ActiveLeaves& active) {
  ActiveLeaves all;
  std::size_t leaf = 0;
  for (const Shape& part : parts) {
    if (!part.IsArray()) {
      all.push_back(false);
      continue;
    }
    const bool wanted = active.empty() ? HasTangents(part) : leaf < active.size() && active[leaf];
    if (wanted && !HasTangents(part))
      return InvalidArgument("argument ", leaf, " is ", part,
                             ": only floats and complex numbers have derivatives");
    all.push_back(wanted);
    ++leaf;
  }
  if (!active.empty() && active.size() != leaf)
    return InvalidArgument(active.size(), " flags for ", leaf, " arguments");
  return all;
}

}  // namespace

absl::StatusOr<std::unique_ptr<hlo::Module>> PrepareToDerive(const hlo::Module& module) {
  std::unique_ptr<hlo::Module> copy = module.Clone();
  PassPipeline passes("prepare_to_derive", 1, PassOptions{});
  passes.Add<Dce>();
  passes.Add<JoinAsync>();
  passes.Add<DropLayouts>();
  passes.Add<ExpandScans>();
  passes.Add<InlineCalls>();
  passes.Add<Dce>();
  LAZULI_RETURN_IF_ERROR(Run(*copy, passes));
  copy->aliases().clear();
  copy->set_is_scheduled(false);
  return copy;
}

std::vector<Op> ParametersLike(Builder& b, const hlo::Computation& computation) {
  std::vector<Op> parameters;
  for (const hlo::Instruction* parameter : computation.parameters()) {
    const Builder::MetadataScope scope(b, parameter->metadata());
    parameters.push_back(
        b.Parameter(parameter->parameter_number(), parameter->shape(), parameter->name()));
  }
  return parameters;
}

absl::StatusOr<DerivedEntry> DeriveEntry(hlo::Module& module, const ActiveLeaves& active) {
  const hlo::Computation& entry = *module.entry();
  Builder b(&module, entry.name());
  std::vector<Op> values;
  for (const Op parameter : ParametersLike(b, entry)) {
    for (const Op part : PartsOf(b, parameter)) values.push_back(part);
  }
  std::vector<Shape> shapes;
  for (const Op value : values) shapes.push_back(value.shape());
  LAZULI_ASSIGN_OR_RETURN(ActiveLeaves given, ActiveParts(shapes, active));
  Duals duals;
  auto number = static_cast<int64_t>(entry.parameters().size());
  for (std::size_t k = 0; k < values.size(); ++k)
    duals.push_back({values[k], given[k] ? b.Parameter(number++, shapes[k]) : Op()});
  std::vector<Op> results;
  std::vector<bool> has_tangent;
  const Duals derived = Differentiate(b, entry, duals);
  for (const Dual& part : derived) results.push_back(part.x);
  for (const Dual& part : derived) {
    has_tangent.push_back(part.active());
    if (part.active()) results.push_back(part.t);
  }
  LAZULI_ASSIGN_OR_RETURN(hlo::Computation* const made, b.Finish(b.Tuple(results)));
  return DerivedEntry{made, std::move(given), std::move(has_tangent)};
}

absl::StatusOr<std::unique_ptr<hlo::Module>> Tidied(std::unique_ptr<hlo::Module> module,
                                                    hlo::Computation* entry) {
  module->set_entry(entry);
  PassPipeline passes("tidy_derivative", 1, PassOptions{});
  AddSimplificationPipeline(passes);
  LAZULI_RETURN_IF_ERROR(Run(*module, passes));
  return module;
}

}  // namespace lazuli::lowering
