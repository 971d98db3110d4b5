// Rules that users give for their custom calls, by target: what the column of kCustomCall (rules.def) asks for
// a target that no built-in rule knows.
//
// A rule makes a module for one instruction, of which it sees shapes and attributes. Operands and results
// are arrays, those of a tuple one by one.
#pragma once

#include <functional>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "ir/evaluator/custom_calls.h"
#include "ir/hlo/module.h"
#include "lowering/builder/builder.h"

namespace lazuli::lowering {

struct CustomCallRules {
  using Module = absl::StatusOr<std::shared_ptr<const hlo::Module>>;
  // Takes the operands, the results, and a tangent for each operand of floats or complex numbers; gives one
  // for each such result.
  std::function<Module(const hlo::Instruction&)> tangent;
  // Takes the operands, the results, and a cotangent for each result of floats or complex numbers; gives one for
  // each such operand. Cotangents of complex numbers are torch's, the conjugates of JAX's.
  std::function<Module(const hlo::Instruction&)> cotangent;
  // Takes the operands, those that are batched with a batch dim of this size in front, and gives the results,
  // all of them with one.
  std::function<Module(const hlo::Instruction&, const std::vector<bool>& batched, int64_t size)>
      batch;
};

// A function that instructions carry, with rules.
struct RuledFunction : hlo::HostFunction {
  RuledFunction(hlo::CustomCall function, CustomCallRules of_it)
      : HostFunction(std::move(function)), rules(std::move(of_it)) {}
  const CustomCallRules rules;
};

// Thread-safe. Rules of a target that has some replace them.
void RegisterCustomCallRules(std::string_view target, CustomCallRules rules);
// Those that the instruction carries, or those of its target. Null if there are none.
std::shared_ptr<const CustomCallRules> FindCustomCallRules(const hlo::CustomCallAttrs& attrs);

// Whether calls of the target only say how an array is laid out on devices.
bool IsAnnotation(std::string_view target);

// The cotangents of the operands that have one, by the cotangent rule. An error goes to b.
std::vector<Op> CustomCotangents(Builder& b, const hlo::Instruction& i,
                                 const CustomCallRules& rules, absl::Span<const Op> operands,
                                 absl::Span<const Op> results, absl::Span<const Op> cotangents);

// The tangents of the results that have one, for these operands, results and tangents of the operands that
// have one; by the cotangent rule, transposed, where there is no other. An error goes to b.
std::vector<Op> CustomTangents(Builder& b, const hlo::Instruction& i, const CustomCallRules& rules,
                               absl::Span<const Op> operands, absl::Span<const Op> results,
                               absl::Span<const Op> tangents);

}  // namespace lazuli::lowering
