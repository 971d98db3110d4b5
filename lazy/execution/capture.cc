#include "lazy/execution/capture.h"

#include <cstring>
#include <optional>
#include <utility>

#include "absl/container/flat_hash_map.h"

#include "lazy/execution/sync.h"

namespace lazuli::lazy {
namespace {

absl::StatusOr<Literal> ElementsOf(const Node& leaf) {
  if (leaf.kind() == NodeKind::kData) {
    const DataHandle& data = *static_cast<const DataNode&>(leaf).data();
    LAZULI_ASSIGN_OR_RETURN(const backend::BufferPtr buffer, data.Wait());
    return data.device().client->ToHost(*buffer);
  }
  Literal number = Literal::Uninitialized(leaf.shape());
  const uint64_t cell = static_cast<const ScalarNode&>(leaf).cell();
  std::memcpy(number.mutable_raw(), &cell, static_cast<std::size_t>(number.byte_size()));
  return number;
}

// Where the checks of the trace were recorded, by node.
absl::flat_hash_map<const Node*, FunctionName> FunctionsOf(
    absl::Span<const Context::Checked> checked) {
  absl::flat_hash_map<const Node*, FunctionName> functions;
  for (const Context::Checked& c : checked) functions.try_emplace(c.node.get(), c.function);
  return functions;
}

}  // namespace

// A graph of parameters, which have no data, cannot be cut by a sync.
Capture::Capture() : context_(Context::CreateEndless()), outer_(Context::Exchange(context_)) {
  context_->set_journal(&journal_);
}

Capture::~Capture() {
  context_->set_journal(nullptr);
  Context::Exchange(std::move(outer_));
  journal_.Undo(*context_);
  GraphOutcomePtr outcome;
  {
    const Context::Lock lock(*context_);
    outcome = context_->TakeOutcome();
  }
  if (!outcome) return;
  outcome->SetNotTaken();
  outcome->RestoreGenerators();
}

Tensor Capture::Parameter(const Shape& shape, backend::Device device) {
  auto data = MakeIntrusive<DataHandle>(shape, device);
  data->Set(MakeIntrusive<Fault>(
      FailedPrecondition("parameter ", parameters_.size(),
                         " of a program that is being traced has no elements to read")));
  parameters_.push_back(data);
  return Tensor(context_->NewStorage(std::move(data)));
}

absl::StatusOr<lowering::EmitSignature> Capture::SignatureOf(const Trace& trace) const {
  lowering::EmitSignature signature;
  absl::flat_hash_map<const DataHandle*, int64_t> numbers;
  for (const DataPtr& parameter : parameters_) {
    numbers.emplace(parameter.get(), static_cast<int64_t>(signature.parameters.size()));
    signature.parameters.push_back(parameter->shape());
  }
  for (const Node* leaf : trace.data) {
    const auto number = numbers.find(static_cast<const DataNode*>(leaf)->data().get());
    if (number != numbers.end()) {
      signature.leaves.emplace_back(number->second);
      continue;
    }
    LAZULI_ASSIGN_OR_RETURN(Literal elements, ElementsOf(*leaf));
    signature.leaves.emplace_back(std::move(elements));
  }
  for (const Node* leaf : trace.scalars) {
    LAZULI_ASSIGN_OR_RETURN(Literal number, ElementsOf(*leaf));
    signature.leaves.emplace_back(std::move(number));
  }
  return signature;
}

absl::StatusOr<ProgramPtr> Capture::Finish(absl::Span<const Tensor> results, std::string name,
                                           std::vector<hlo::Alias> aliases) {
  std::vector<Storage*> storages;
  for (const Tensor& result : results) storages.push_back(&result.storage());
  for (const JournalEntry& written : journal_.taken()) {
    if (!written.data) continue;  // a number, or nothing that was computed
    aliases.push_back({.output_index = {static_cast<int64_t>(storages.size())},
                       .parameter_number = static_cast<int64_t>(parameters_.size()),
                       .parameter_index = {}});
    storages.push_back(written.storage.get());
    parameters_.push_back(written.data);
  }
  Trace trace;
  trace.roots.resize(storages.size());
  std::optional<Context::Lock> lock;
  context_->LockWithValues(lock, storages, kNoSite, absl::MakeSpan(trace.roots));
  for (const Context::Checked& checked : context_->checked()) trace.checked.push_back(checked.node);
  TraceGraph(trace);
  LAZULI_ASSIGN_OR_RETURN(lowering::EmitSignature signature, SignatureOf(trace));
  LAZULI_ASSIGN_OR_RETURN(
      lowering::EmittedModule emitted,
      EmitTrace(trace, std::move(name), std::move(aliases), std::move(signature)));
  const auto functions = FunctionsOf(context_->checked());
  std::vector<ProgramCheck> checks;
  for (lowering::EmittedCheck& check : emitted.checks) {
    const Node* const node = trace.nodes[check.node];
    const auto function = functions.find(node);
    checks.push_back({std::move(check.message),
                      function == functions.end() ? std::string()
                                                  : std::string(std::string_view(function->second)),
                      node->site()});
  }
  return std::make_shared<Program>(std::move(emitted.module), std::move(checks));
}

}  // namespace lazuli::lazy
