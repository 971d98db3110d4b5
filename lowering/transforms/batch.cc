#include "lowering/transforms/batch.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "ir/evaluator/evaluator.h"
#include "ir/hlo/verifier.h"
#include "ir/types/leaves.h"
#include "lowering/passes/dce.h"
#include "lowering/passes/drop_layouts.h"
#include "lowering/passes/join_async.h"
#include "lowering/transforms/batch_rules.h"
#include "lowering/transforms/parts.h"

namespace lazuli::lowering {
namespace {

using hlo::Computation;
using hlo::Instruction;

bool Draws(const Instruction& i) {
  if (i.opcode() == Opcode::kRng || i.opcode() == Opcode::kRngBitGenerator) return true;
  return std::any_of(i.called().begin(), i.called().end(), [](const Computation* callee) {
    return std::any_of(callee->instructions().begin(), callee->instructions().end(),
                       [](const auto& inner) { return Draws(*inner); });
  });
}

// Writes the instructions of one computation, operands first.
class Batcher {
 public:
  Batcher(BatchScope& scope, const Computation& source) : s_(scope), source_(source) {}

  absl::StatusOr<BatchValue> Run(BatchValues parameters) {
    for (const Instruction* i : source_.PostOrder()) {
      const Builder::MetadataScope metadata(s_.b, i->metadata());
      values_[i] = Write(*i, parameters);
      if (!s_.b.status().ok()) return s_.shared().Located(s_.b.status(), *i);
    }
    return values_[source_.root()];
  }

 private:
  BatchValue Write(const Instruction& i, BatchValues parameters) {
    std::vector<BatchValue> operands;
    for (const Instruction* operand : i.operands()) operands.push_back(values_[operand]);
    switch (i.opcode()) {
      case Opcode::kParameter:
        return parameters[static_cast<std::size_t>(i.parameter_number())];
      case Opcode::kTuple:
        return {.is_tuple = true, .elements = std::move(operands)};
      case Opcode::kGetTupleElement:
        return operands[0]
            .elements[static_cast<std::size_t>(i.attrs_as<hlo::TupleIndexAttrs>().index)];
      default:
        return WithControl(i, Result(i, operands));
    }
  }

  BatchValue Result(const Instruction& i, BatchValues operands) {
    const bool batched = std::any_of(operands.begin(), operands.end(),
                                     [](const BatchValue& value) { return value.AnyBatched(); });
    if (!batched && !(s_.shared().draws_differ() && Draws(i))) {
      std::vector<Op> plain;
      for (const BatchValue& operand : operands) plain.push_back(s_.Join(operand));
      return s_.AddPlain(i, plain);
    }
    const BatchRule rule = BatchRuleOf(i.opcode());
    if (rule == nullptr)
      return s_.Error(
          Unimplemented("vmap: ", hlo::OpcodeText(i.opcode()), " has no rule for batches"));
    return rule(s_, i, operands);
  }

  // Order that the source states stays between the instructions that were made.
  BatchValue WithControl(const Instruction& i, BatchValue value) {
    Instruction* const made = value.op.valid() ? value.op.instruction() : nullptr;
    if (made == nullptr) return value;
    made_[&i] = made;
    for (const Instruction* before : i.control_predecessors()) {
      const auto found = made_.find(before);
      if (found != made_.end()) made->AddControlPredecessor(found->second);
    }
    return value;
  }

  BatchScope& s_;
  const Computation& source_;
  std::unordered_map<const Instruction*, BatchValue> values_;
  std::unordered_map<const Instruction*, Instruction*> made_;
};

// One check for all samples.
void JoinChecks(Builder& b, int64_t checks, BatchValue& root) {
  const auto count = static_cast<int64_t>(root.elements.size());
  for (int64_t k = std::max<int64_t>(count - checks, 0); k < count; ++k) {
    BatchValue& check = root.elements[static_cast<std::size_t>(k)];
    if (check.batched) check = BatchScope::Array(b.Reduce(Opcode::kMaximum, check.op, {0}), false);
  }
}

// Writes `source` into the builder's computation. `flags` are of all parameters' leaves; `wanted` says
// which results are batched anyway, and becomes which are.
absl::StatusOr<Computation*> Write(BatchModule& shared, Builder& b, const Computation& source,
                                   const std::vector<bool>& flags, int64_t checks,
                                   std::vector<bool>* wanted,
                                   std::vector<bool>* depends = nullptr) {
  BatchScope scope(shared, b);
  std::vector<BatchValue> parameters;
  std::size_t next = 0;
  for (const Instruction* parameter : source.parameters()) {
    const auto count = static_cast<std::size_t>(ir::LeafCount(parameter->shape()));
    const auto first = flags.begin() + static_cast<std::ptrdiff_t>(next);
    const std::vector<bool> own(first, first + static_cast<std::ptrdiff_t>(count));
    next += count;
    const Builder::MetadataScope metadata(b, parameter->metadata());
    const Op op = b.Parameter(parameter->parameter_number(), scope.Batched(parameter->shape(), own),
                              parameter->name());
    parameters.push_back(scope.Split(op, own));
  }
  LAZULI_ASSIGN_OR_RETURN(BatchValue root, Batcher(scope, source).Run(parameters));
  JoinChecks(b, checks, root);
  std::vector<bool> results;
  root.AppendFlags(results);
  if (depends != nullptr) *depends = results;
  results = Union(std::move(results), *wanted);
  *wanted = results;
  root = scope.Broadcast(root, results);
  return b.Finish(scope.Join(root));
}

// What a result may overwrite has its shape, with a batch dim or without one.
void AddAliases(const hlo::Module& from, hlo::Module& to) {
  for (const hlo::Alias& alias : from.aliases()) {
    const Instruction* const parameter =
        to.entry()->parameters()[static_cast<std::size_t>(alias.parameter_number)];
    if (Compatible(*ir::PartAt(to.entry()->root()->shape(), alias.output_index),
                   *ir::PartAt(parameter->shape(), alias.parameter_index)))
      to.aliases().push_back(alias);
  }
}

}  // namespace

std::vector<Computation*> BatchModule::CopiesOf(absl::Span<Computation* const> sources) {
  std::vector<Computation*> copies;
  for (const Computation* source : sources) {
    Computation*& copy = copies_[source];
    if (copy == nullptr) copy = hlo::AddClones({source}, module_).at(source);
    copies.push_back(copy);
  }
  return copies;
}

absl::StatusOr<BatchModule::Body> BatchModule::BodyOf(const Computation& source,
                                                      const std::vector<bool>& parameters,
                                                      const std::vector<bool>& wanted) {
  const Key key{&source, {parameters, wanted}};
  const auto found = bodies_.find(key);
  if (found != bodies_.end()) return found->second;
  Body body{.results = wanted};
  Builder b(&module_, source.name());
  LAZULI_ASSIGN_OR_RETURN(body.computation, Write(*this, b, source, parameters, 0, &body.results));
  return bodies_[key] = body;
}

absl::Status BatchModule::Located(const absl::Status& status, const Instruction& i) {
  if (located_) return status;
  located_ = true;
  return hlo::AtInstruction(status, i);
}

absl::StatusOr<BatchedModule> Batch(const hlo::Module& module, const std::vector<bool>& parameters,
                                    int64_t size, const BatchOptions& options) {
  if (size < 0) return InvalidArgument("a batch of ", size, " samples");
  const std::unique_ptr<hlo::Module> source = module.Clone();
  LAZULI_RETURN_IF_ERROR(JoinAsync().Run(*source).status());
  LAZULI_RETURN_IF_ERROR(DropLayouts().Run(*source).status());
  int64_t leaves = 0;
  for (const Instruction* parameter : source->entry()->parameters())
    leaves += ir::LeafCount(parameter->shape());
  if (leaves != static_cast<int64_t>(parameters.size())) {
    return InvalidArgument(module.name(), " has ", leaves, " parameters; which of ",
                           parameters.size(), " are batched is given");
  }
  BatchedModule batched{.module = std::make_unique<hlo::Module>(module.name())};
  hlo::Module& target = *batched.module;
  target.set_device_counts(module.replica_count(), module.num_partitions());
  target.stack_frames() = module.stack_frames();
  BatchModule shared(target, size, options);
  if (options.broadcast_results)
    batched.results.assign(
        static_cast<std::size_t>(ir::LeafCount(source->entry()->root()->shape()) - options.checks),
        true);
  Builder b(&target, source->entry()->name());
  LAZULI_ASSIGN_OR_RETURN(Computation* const entry,
                          Write(shared, b, *source->entry(), parameters, options.checks,
                                &batched.results, &batched.depends));
  target.set_entry(entry);
  // Nothing calls what the first tries for a loop's state left.
  LAZULI_RETURN_IF_ERROR(Dce().Run(target).status());
  AddAliases(module, target);
  LAZULI_RETURN_IF_ERROR(hlo::Verify(target));
  return batched;
}

}  // namespace lazuli::lowering
