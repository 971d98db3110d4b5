#include "ir/hlo/verifier.h"

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

#include "ir/hlo/dense_map.h"
#include "ir/hlo/shapes/shape_inference.h"
#include "ir/types/leaves.h"

namespace lazuli::hlo {
namespace {

template <class... T>
absl::Status Broken(const Instruction& i, const T&... parts) {
  return Internal(i.name(), " in ", i.parent()->name(), ": ", parts...);
}

// --- one computation

absl::Status CheckParameters(const Computation& computation) {
  for (const auto& i : computation.instructions()) {
    if (i->opcode() != Opcode::kParameter) continue;
    const auto number = static_cast<std::size_t>(i->parameter_number());
    if (number >= computation.parameters().size() || computation.parameters()[number] != i.get()) {
      return Broken(*i, "parameter number ", number, " is not the one it was added with");
    }
  }
  for (std::size_t n = 0; n < computation.parameters().size(); ++n) {
    if (computation.parameters()[n] == nullptr) {
      return Internal("computation ", computation.name(), ": parameter ", n, " of ",
                      computation.parameters().size(), " is missing");
    }
  }
  return absl::OkStatus();
}

// Operands lie in this computation and before their users.
absl::Status CheckWiring(const Computation& computation) {
  DenseMap<int64_t> position(computation);
  const auto order = computation.PostOrder();
  for (std::size_t n = 0; n < order.size(); ++n) position[order[n]] = static_cast<int64_t>(n) + 1;
  for (const Instruction* i : order) {
    for (int64_t k = 0; k < i->operand_count(); ++k) {
      const Instruction* operand = i->operand(k);
      if (operand->parent() != &computation) {
        return Broken(*i, "operand ", operand->name(), " is in another computation");
      }
      if (position[operand] >= position[i])
        return Broken(*i, "depends on itself through ", operand->name());
    }
    for (const Instruction* predecessor : i->control_predecessors()) {
      if (predecessor->parent() != &computation || position[predecessor] >= position[i]) {
        return Broken(*i, "control predecessor ", predecessor->name(), " does not come before it");
      }
    }
  }
  for (const Instruction* i : order) {
    for (const Instruction* user : i->users()) {
      if (user->parent() != &computation)
        return Broken(*i, "is used by ", user->name(), " of another computation");
    }
  }
  return absl::OkStatus();
}

// How many computations the instruction calls; -1 for any number.
int64_t Regions(const Instruction& i) {
  if (i.opcode() == Opcode::kConditional) return i.operand_count() - 1;  // one for each argument
  return i.opcode() == Opcode::kAsyncStart ? 1 : int64_t{Traits(i.opcode()).regions};
}

absl::Status CheckShapes(const Instruction& i) {
  absl::InlinedVector<const Shape*, 8> operands;
  for (const Instruction* operand : i.operands()) operands.push_back(&operand->shape());
  const auto shape = InferShape(i.opcode(), operands, i.attrs(), i.called(), &i.shape());
  if (!shape.ok()) return Broken(i, Message(shape.status()));
  const int64_t regions = Regions(i);
  if (regions >= 0 && i.called().size() != static_cast<std::size_t>(regions)) {
    return Broken(i, OpcodeText(i.opcode()), " calls ", regions, " computations, not ",
                  i.called().size());
  }
  return absl::OkStatus();
}

absl::Status CheckComputation(const Computation& computation) {
  if (computation.root() == nullptr)
    return Internal("computation ", computation.name(), " has no root");
  if (computation.root()->parent() != &computation) {
    return Internal("computation ", computation.name(), ": its root is in another computation");
  }
  LAZULI_RETURN_IF_ERROR(CheckParameters(computation));
  LAZULI_RETURN_IF_ERROR(CheckWiring(computation));
  for (const auto& i : computation.instructions()) LAZULI_RETURN_IF_ERROR(CheckShapes(*i));
  return absl::OkStatus();
}

// --- the module

// Calls stay in the module and no computation calls itself, however indirectly.
absl::Status CheckCalls(const Module& module) {
  absl::flat_hash_map<const Computation*, int64_t> callers;
  for (const auto& computation : module.computations()) callers[computation.get()] = 0;
  for (const auto& computation : module.computations()) {
    for (const auto& i : computation->instructions()) {
      for (const Computation* callee : i->called()) {
        auto it = callers.find(callee);
        if (it == callers.end()) return Broken(*i, "calls a computation of another module");
        if (callee == module.entry()) return Broken(*i, "calls the entry computation");
        ++it->second;
      }
    }
  }
  // Take computations without callers away until none is left; what stays is in or below a cycle.
  std::vector<const Computation*> ready;
  for (const auto& [computation, count] : callers) {
    if (count == 0) ready.push_back(computation);
  }
  std::size_t taken = 0;
  while (!ready.empty()) {
    const Computation* computation = ready.back();
    ready.pop_back();
    ++taken;
    for (const auto& i : computation->instructions()) {
      for (const Computation* callee : i->called()) {
        if (--callers[callee] == 0) ready.push_back(callee);
      }
    }
  }
  if (taken == module.computations().size()) return absl::OkStatus();
  for (const auto& computation : module.computations()) {
    if (callers[computation.get()] > 0)
      return Internal("computation ", computation->name(), " calls itself");
  }
  return absl::OkStatus();
}

absl::Status CheckAliases(const Module& module) {
  const Computation& entry = *module.entry();
  const Shape& result = entry.root()->shape();
  absl::flat_hash_set<std::string> aliased;
  for (const Alias& alias : module.aliases()) {
    const std::string output_name = Str("{", Join(alias.output_index, ","), "}");
    const std::string parameter_name =
        Str(alias.parameter_number, ", {", Join(alias.parameter_index, ","), "}");
    const Shape* output = PartAt(result, alias.output_index);
    if (output == nullptr)
      return Internal("alias of output ", output_name, ": the result is ", result);
    if (alias.parameter_number < 0 ||
        alias.parameter_number >= static_cast<int64_t>(entry.parameters().size())) {
      return Internal("alias of parameter ", alias.parameter_number, ": the entry has ",
                      entry.parameters().size());
    }
    const Shape& whole =
        entry.parameters()[static_cast<std::size_t>(alias.parameter_number)]->shape();
    const Shape* parameter = PartAt(whole, alias.parameter_index);
    if (parameter == nullptr)
      return Internal("alias of parameter ", parameter_name, ": the parameter is ", whole);
    if (output->byte_size() != parameter->byte_size()) {
      return Internal("alias of output ", *output, " and parameter ", *parameter,
                      ": they differ in size");
    }
    if (!aliased.insert(output_name).second || !aliased.insert(parameter_name).second) {
      return Internal("output ", output_name, " or parameter ", parameter_name,
                      " is aliased twice");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status Verify(const Module& module) {
  if (module.entry() == nullptr)
    return Internal("module ", module.name(), " has no entry computation");
  for (const auto& computation : module.computations())
    LAZULI_RETURN_IF_ERROR(CheckComputation(*computation));
  LAZULI_RETURN_IF_ERROR(CheckCalls(module));
  return CheckAliases(module);
}

}  // namespace lazuli::hlo
