#include "lowering/transforms/custom_rules.h"

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "ir/evaluator/evaluator.h"
#include "ir/hlo/clone.h"
#include "ir/support/runtime.h"
#include "ir/support/status.h"
#include "lowering/transforms/derivation.h"
#include "lowering/transforms/formula.h"
#include "lowering/transforms/parts.h"
#include "lowering/transforms/transpose.h"

namespace lazuli::lowering {
namespace {

struct CustomRuleTable {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const CustomCallRules>, std::less<>> rules;
};
CustomRuleTable& TheRules() { return ir::Runtime::Get().Of<CustomRuleTable>(); }

std::vector<Op> Conjugated(absl::Span<const Op> values) {
  std::vector<Op> all;
  for (const Op value : values) all.push_back(Conj(value).op);
  return all;
}

// What the module computes of these arrays, written into b.
absl::StatusOr<std::vector<Op>> Inlined(Builder& b, const hlo::Module& module,
                                        absl::Span<const Op> arguments) {
  LAZULI_ASSIGN_OR_RETURN(const std::unique_ptr<hlo::Module> plain, PrepareToDerive(module));
  return CopyInto(b, *hlo::AddCopy(*plain, *b.module()), arguments);
}

// J t from the rule for c -> J^H c: the transposed rule takes conj(t) to conj(J t).
absl::StatusOr<std::vector<Op>> ByCotangentRule(Builder& b, const hlo::Module& module,
                                                absl::Span<const Op> known,
                                                absl::Span<const Op> tangents) {
  LAZULI_ASSIGN_OR_RETURN(const std::unique_ptr<hlo::Module> plain, PrepareToDerive(module));
  const hlo::Computation& rule = *hlo::AddCopy(*plain, *b.module());
  Mask linear(rule.parameters().size(), true);
  for (std::size_t k = 0; k < known.size() && k < linear.size(); ++k) linear[k] = false;
  const Mask results(PartCount(rule.root()->shape()), true);
  LAZULI_ASSIGN_OR_RETURN(hlo::Computation* const turned,
                          Transpose(*b.module(), rule, linear, results));
  std::vector<Op> arguments(known.begin(), known.end());
  for (const Op t : Conjugated(tangents)) arguments.push_back(t);
  return Conjugated(CopyInto(b, *turned, arguments));
}

absl::StatusOr<std::vector<Op>> Tangents(Builder& b, const hlo::Instruction& i,
                                         const CustomCallRules& rules,
                                         absl::Span<const Op> operands,
                                         absl::Span<const Op> results,
                                         absl::Span<const Op> tangents) {
  std::vector<Op> known(operands.begin(), operands.end());
  known.insert(known.end(), results.begin(), results.end());
  if (rules.tangent) {
    LAZULI_ASSIGN_OR_RETURN(const auto module, rules.tangent(i));
    known.insert(known.end(), tangents.begin(), tangents.end());
    return Inlined(b, *module, known);
  }
  LAZULI_ASSIGN_OR_RETURN(const auto module, rules.cotangent(i));
  return ByCotangentRule(b, *module, known, tangents);
}

}  // namespace

void RegisterCustomCallRules(std::string_view target, CustomCallRules rules) {
  CustomRuleTable& table = TheRules();
  const std::lock_guard lock(table.mutex);
  table.rules.insert_or_assign(std::string(target),
                               std::make_shared<const CustomCallRules>(std::move(rules)));
}

std::shared_ptr<const CustomCallRules> FindCustomCallRules(const hlo::CustomCallAttrs& attrs) {
  if (attrs.host != nullptr) {
    const auto ruled = std::dynamic_pointer_cast<const RuledFunction>(attrs.host);
    return ruled == nullptr ? nullptr
                            : std::shared_ptr<const CustomCallRules>(ruled, &ruled->rules);
  }
  CustomRuleTable& table = TheRules();
  const std::lock_guard lock(table.mutex);
  const auto found = table.rules.find(attrs.custom_call_target);
  return found == table.rules.end() ? nullptr : found->second;
}

bool IsAnnotation(std::string_view target) {
  return target == "Sharding" || target == "SPMDFullToShardShape" ||
         target == "SPMDShardToFullShape" || target == "LayoutConstraint" ||
         target == "annotate_device_placement";
}

std::vector<Op> CustomCotangents(Builder& b, const hlo::Instruction& i,
                                 const CustomCallRules& rules, absl::Span<const Op> operands,
                                 absl::Span<const Op> results, absl::Span<const Op> cotangents) {
  std::vector<Op> all(operands.begin(), operands.end());
  all.insert(all.end(), results.begin(), results.end());
  all.insert(all.end(), cotangents.begin(), cotangents.end());
  const auto module = rules.cotangent(i);
  if (!module.ok()) return {b.Error(hlo::AtInstruction(module.status(), i))};
  absl::StatusOr<std::vector<Op>> made = Inlined(b, **module, all);
  if (made.ok()) return *std::move(made);
  return {b.Error(hlo::AtInstruction(made.status(), i))};
}

std::vector<Op> CustomTangents(Builder& b, const hlo::Instruction& i, const CustomCallRules& rules,
                               absl::Span<const Op> operands, absl::Span<const Op> results,
                               absl::Span<const Op> tangents) {
  absl::StatusOr<std::vector<Op>> made = Tangents(b, i, rules, operands, results, tangents);
  if (made.ok()) return *std::move(made);
  return {b.Error(hlo::AtInstruction(made.status(), i))};
}

}  // namespace lazuli::lowering
