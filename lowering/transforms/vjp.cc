#include "lowering/transforms/vjp.h"

#include <utility>

#include "ir/support/status.h"
#include "lowering/transforms/derivation.h"
#include "lowering/transforms/formula.h"
#include "lowering/transforms/split.h"
#include "lowering/transforms/transpose.h"

namespace lazuli::lowering {
namespace {

// The halves of the derivative of a module's entry.
struct Halves {
  std::unique_ptr<hlo::Module> module;
  DerivedEntry derived;
  SplitComputation split;
  hlo::Computation* back = nullptr;  // takes residuals, then cotangents of active results
  std::vector<Shape> results{};      // parts of the module's result
};

absl::StatusOr<Halves> Halve(const hlo::Module& module, const ActiveLeaves& active) {
  LAZULI_ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> made, PrepareToDerive(module));
  LAZULI_ASSIGN_OR_RETURN(DerivedEntry derived, DeriveEntry(*made, active));
  Mask tangents, linear_results;
  for (const hlo::Instruction* parameter : derived.computation->parameters())
    tangents.resize(tangents.size() + PartCount(parameter->shape()), false);
  const std::vector<Shape> results = PartsOf(module.entry()->root()->shape());
  std::size_t linear_count = 0;
  for (const bool given : derived.given) linear_count += given ? 1 : 0;
  for (std::size_t k = tangents.size() - linear_count; k < tangents.size(); ++k) tangents[k] = true;
  linear_results.assign(PartCount(derived.computation->root()->shape()), true);
  for (std::size_t k = 0; k < results.size(); ++k) linear_results[k] = false;
  LAZULI_ASSIGN_OR_RETURN(SplitComputation split,
                          Split(*made, *derived.computation, tangents, linear_results));
  Mask inputs(linear_count + split.residuals.size(), false);
  for (std::size_t k = 0; k < linear_count; ++k) inputs[k] = true;
  const Mask outputs(linear_results.size() - results.size(), true);
  LAZULI_ASSIGN_OR_RETURN(hlo::Computation* const back,
                          Transpose(*made, *split.linear, inputs, outputs));
  return Halves{std::move(made), std::move(derived), std::move(split), back, results};
}

// The results and the residuals for the parts of the module's parameters.
struct ForwardValues {
  std::vector<Op> results, residuals;
};
ForwardValues AddForward(Builder& b, const Halves& halves, absl::Span<const Op> parameters) {
  std::vector<Op> parts;
  for (const Op parameter : parameters) {
    for (const Op part : PartsOf(b, parameter)) parts.push_back(part);
  }
  const std::vector<Op> made = PartsOf(b, b.Call(halves.split.known, parts));
  if (!b.status().ok()) return {};
  ForwardValues values;
  values.results.assign(made.begin(),
                        made.begin() + static_cast<std::ptrdiff_t>(halves.results.size()));
  std::size_t next = halves.results.size();
  for (const std::optional<std::size_t> part : halves.split.parameter_of)
    values.residuals.push_back(part ? parts[*part] : made[next++]);
  return values;
}

// Parameters, numbered from `number`, for the cotangents of results.
std::vector<Op> CotangentParameters(Builder& b, const Halves& halves, int64_t number) {
  std::vector<Op> given;
  for (const Shape& result : halves.results) {
    if (HasTangents(result)) given.push_back(b.Parameter(number++, result.WithDefaultLayout()));
  }
  return given;
}

// The cotangents of active parameters for residuals, and those of all results that can have one.
std::vector<Op> AddBackward(Builder& b, const Halves& halves, std::vector<Op> residuals,
                            absl::Span<const Op> given) {
  std::size_t next = 0;
  for (std::size_t k = 0; k < halves.results.size(); ++k) {
    if (!HasTangents(halves.results[k])) continue;
    const Op ct = given[next++];
    if (halves.derived.active[k]) residuals.push_back(Conj(ct).op);
  }
  std::vector<Op> cotangents = PartsOf(b, b.Call(halves.back, residuals));
  for (Op& ct : cotangents) ct = Conj(ct).op;
  return cotangents;
}

// The module with this entry; the halves keep theirs.
absl::StatusOr<std::unique_ptr<hlo::Module>> Copied(const Halves& halves, hlo::Computation* entry) {
  halves.module->set_entry(entry);
  std::unique_ptr<hlo::Module> copy = halves.module->Clone();
  return Tidied(std::move(copy), copy->entry());
}

}  // namespace

absl::StatusOr<VjpModules> Vjp(const hlo::Module& module, const ActiveLeaves& active) {
  LAZULI_ASSIGN_OR_RETURN(const Halves halves, Halve(module, active));
  hlo::Module& made = *halves.module;
  Builder forward(&made, Str(module.entry()->name(), "_forward"));
  const ForwardValues values =
      AddForward(forward, halves, ParametersLike(forward, *module.entry()));
  std::vector<Op> all = values.results;
  all.insert(all.end(), values.residuals.begin(), values.residuals.end());
  LAZULI_ASSIGN_OR_RETURN(hlo::Computation* const ahead, forward.Finish(forward.Tuple(all)));
  Builder backward(&made, Str(module.entry()->name(), "_backward"));
  std::vector<Op> residuals;
  for (const Shape& shape : halves.split.residuals)
    residuals.push_back(backward.Parameter(static_cast<int64_t>(residuals.size()), shape));
  const std::vector<Op> given =
      CotangentParameters(backward, halves, static_cast<int64_t>(residuals.size()));
  const std::vector<Op> cotangents = AddBackward(backward, halves, std::move(residuals), given);
  LAZULI_ASSIGN_OR_RETURN(hlo::Computation* const back,
                          backward.Finish(backward.Tuple(cotangents)));
  VjpModules modules;
  modules.residual_count = halves.split.residuals.size();
  LAZULI_ASSIGN_OR_RETURN(modules.forward, Copied(halves, ahead));
  LAZULI_ASSIGN_OR_RETURN(modules.backward, Copied(halves, back));
  return modules;
}

absl::StatusOr<std::unique_ptr<hlo::Module>> Gradient(const hlo::Module& module,
                                                      const ActiveLeaves& active) {
  LAZULI_ASSIGN_OR_RETURN(Halves halves, Halve(module, active));
  Builder b(halves.module.get(), Str(module.entry()->name(), "_gradient"));
  const std::vector<Op> parameters = ParametersLike(b, *module.entry());
  ForwardValues values = AddForward(b, halves, parameters);
  const std::vector<Op> given =
      CotangentParameters(b, halves, static_cast<int64_t>(parameters.size()));
  const std::vector<Op> cotangents = AddBackward(b, halves, std::move(values.residuals), given);
  LAZULI_ASSIGN_OR_RETURN(hlo::Computation* const entry, b.Finish(b.Tuple(cotangents)));
  return Tidied(std::move(halves.module), entry);
}

absl::StatusOr<std::unique_ptr<hlo::Module>> ScalarGradient(const hlo::Module& module,
                                                            const ScalarGradientOptions& options) {
  const std::vector<Shape> shapes = PartsOf(module.entry()->root()->shape());
  if (shapes.empty() || !shapes[0].IsScalar() || !ir::IsFloat(shapes[0].dtype()))
    return InvalidArgument("grad: the first result must be one real number, not ",
                           shapes.empty() ? Shape() : shapes[0]);
  LAZULI_ASSIGN_OR_RETURN(Halves halves, Halve(module, options.active));
  Builder b(halves.module.get(), Str(module.entry()->name(), "_gradient"));
  ForwardValues values = AddForward(b, halves, ParametersLike(b, *module.entry()));
  LAZULI_RETURN_IF_ERROR(b.status());
  std::vector<Op> given, all, last;
  for (const Shape& shape : shapes) {
    if (HasTangents(shape)) given.push_back(b.Full(shape.WithDefaultLayout(), given.empty()));
  }
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    if (!shapes[k].IsArray()) continue;
    const bool is_last = k + options.trailing >= shapes.size();
    if (is_last || options.with_values) (is_last ? last : all).push_back(values.results[k]);
  }
  for (const Op ct : AddBackward(b, halves, std::move(values.residuals), given)) all.push_back(ct);
  all.insert(all.end(), last.begin(), last.end());
  LAZULI_ASSIGN_OR_RETURN(hlo::Computation* const entry, b.Finish(b.Tuple(all)));
  return Tidied(std::move(halves.module), entry);
}

}  // namespace lazuli::lowering
