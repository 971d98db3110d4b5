#include "lowering/passes/flat_module.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "ir/types/leaves.h"

namespace lazuli::lowering {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool IsAllArrays(const Shape& shape) {
  if (!shape.IsTuple()) return shape.IsArray();
  return std::all_of(shape.tuple().begin(), shape.tuple().end(), IsAllArrays);
}

// The leaf among those of all parameters.
std::optional<int64_t> ParameterLeaf(const Computation& entry, const hlo::Alias& alias) {
  int64_t before = 0;
  for (int64_t n = 0; n < alias.parameter_number; ++n)
    before += LeafCount(entry.parameters()[static_cast<std::size_t>(n)]->shape());
  const Instruction& parameter =
      *entry.parameters()[static_cast<std::size_t>(alias.parameter_number)];
  const std::optional<int64_t> leaf = LeafAt(parameter.shape(), alias.parameter_index);
  if (!leaf) return std::nullopt;
  return before + *leaf;
}

// What the computation reaches, callees first, itself last.
std::vector<const Computation*> Reached(const Computation& computation) {
  std::unordered_set<const Computation*> reached = {&computation};
  std::vector<const Computation*> pending = {&computation};
  while (!pending.empty()) {
    const Computation* const c = pending.back();
    pending.pop_back();
    for (const auto& i : c->instructions()) {
      for (const Computation* callee : i->called()) {
        if (reached.insert(callee).second) pending.push_back(callee);
      }
    }
  }
  std::vector<const Computation*> order;
  for (const Computation* c : computation.parent()->PostOrder()) {
    if (reached.contains(c)) order.push_back(c);
  }
  return order;
}

using Copies = std::unordered_map<const Computation*, Computation*>;

void CopyInstructions(const Computation& source, const Copies& computations, Computation* target) {
  target->set_is_fusion(source.IsFusion());
  std::unordered_map<const Instruction*, Instruction*> copies;
  for (const Instruction* i : source.PostOrder()) {
    std::vector<Instruction*> operands;
    std::vector<Computation*> called;
    for (const Instruction* operand : i->operands()) operands.push_back(copies.at(operand));
    for (const Computation* callee : i->called()) called.push_back(computations.at(callee));
    Instruction* copy =
        target->Add(i->opcode(), i->shape(), operands, i->attrs(), called, i->name());
    copy->set_metadata(i->metadata());
    copy->mutable_extra_attrs() = i->extra_attrs();
    for (const Instruction* before : i->control_predecessors())
      copy->AddControlPredecessor(copies.at(before));
    copies[i] = copy;
  }
  target->set_root(copies.at(source.root()));
}

// A parameter for each leaf, and the value of this shape that they make.
Instruction* AddParameters(const Shape& shape, Computation* entry) {
  if (shape.IsArray())
    return entry->AddParameter(static_cast<int64_t>(entry->parameters().size()), shape);
  std::vector<Instruction*> elements;
  for (const Shape& element : shape.tuple()) elements.push_back(AddParameters(element, entry));
  return entry->Add(Opcode::kTuple, shape, elements);
}

void AddLeaves(Instruction* value, Computation* entry, std::vector<Instruction*>& leaves) {
  if (value->shape().IsArray()) {
    leaves.push_back(value);
    return;
  }
  const auto count = static_cast<int64_t>(value->shape().tuple().size());
  for (int64_t k = 0; k < count; ++k) {
    const Shape& element = value->shape().tuple()[static_cast<std::size_t>(k)];
    AddLeaves(entry->Add(Opcode::kGetTupleElement, element, {value}, hlo::TupleIndexAttrs{k}),
              entry, leaves);
  }
}

}  // namespace

bool CanFlatten(const Computation& computation) {
  const auto& parameters = computation.parameters();
  return IsAllArrays(computation.root()->shape()) &&
         std::all_of(parameters.begin(), parameters.end(),
                     [](const Instruction* p) { return IsAllArrays(p->shape()); });
}

std::unique_ptr<hlo::Module> FlatModule(const Computation& computation) {
  auto module = std::make_unique<hlo::Module>(computation.name());
  Copies computations;
  for (const Computation* c : Reached(computation)) {
    computations[c] = module->AddComputation(c->name());
    CopyInstructions(*c, computations, computations[c]);
  }
  Computation* const entry = module->AddComputation("main");
  std::vector<Instruction*> arguments, leaves;
  for (const Instruction* parameter : computation.parameters())
    arguments.push_back(AddParameters(parameter->shape(), entry));
  Instruction* result = entry->Add(Opcode::kCall, computation.root()->shape(), arguments,
                                   hlo::NoAttrs{}, {computations[&computation]});
  AddLeaves(result, entry, leaves);
  std::vector<Shape> shapes;
  for (const Instruction* leaf : leaves) shapes.push_back(leaf->shape());
  entry->set_root(entry->Add(Opcode::kTuple, Shape::Tuple(std::move(shapes)), leaves));
  module->set_entry(entry);
  return module;
}

bool TakesTuples(const hlo::Module& module) {
  const auto& parameters = module.entry()->parameters();
  return std::any_of(parameters.begin(), parameters.end(),
                     [](const Instruction* p) { return p->shape().IsTuple(); });
}

std::unique_ptr<hlo::Module> FlatEntry(const hlo::Module& module) {
  const Computation& entry = *module.entry();
  auto flat = FlatModule(entry);
  flat->set_name(module.name());
  for (const auto& attribute : module.extra_attrs()) {  // what collectives ask for
    if (attribute.first == "replica_count" || attribute.first == "num_partitions")
      flat->extra_attrs().push_back(attribute);
  }
  for (const hlo::Alias& alias : module.aliases()) {
    const auto output = LeafAt(entry.root()->shape(), alias.output_index);
    const auto parameter = ParameterLeaf(entry, alias);
    if (!output || !parameter) continue;
    flat->aliases().push_back({.output_index = {*output},
                               .parameter_number = *parameter,
                               .parameter_index = {},
                               .must = alias.must});
  }
  return flat;
}

}  // namespace lazuli::lowering
