#include "lazy/execution/capture.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

#include "lazy/execution/sync.h"
#include "lazy/tensor/outside.h"
#include "lazy/tensor/tape.h"
#include "lazy/tensor/watch.h"

namespace lazuli::lazy {
namespace {

const DataHandle* DataOf(const Node& leaf) {
  return static_cast<const DataNode&>(leaf).data().get();
}

// Data that has none: an error in the place of elements.
DataPtr WithoutElements(const Shape& shape, backend::Device device, std::string_view what) {
  auto data = MakeIntrusive<DataHandle>(shape, device);
  data->Set(MakeIntrusive<Fault>(
      FailedPrecondition(what, " that is being traced has no elements to read")));
  return data;
}

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

std::vector<ProgramCheck> ChecksOf(
    std::vector<lowering::EmittedCheck>& emitted, const Trace& trace,
    const absl::flat_hash_map<const Node*, FunctionName>& functions) {
  std::vector<ProgramCheck> checks;
  for (lowering::EmittedCheck& check : emitted) {
    const Node* const node = trace.nodes[check.node];
    const auto known = functions.find(node);
    std::string function;
    if (known != functions.end()) function = std::string_view(known->second);
    checks.push_back({std::move(check.message), std::move(function), node->site()});
  }
  return checks;
}

}  // namespace

// The program's parameters so far, and which of them data is.
struct Capture::Parameters {
  std::vector<Shape> shapes;
  absl::flat_hash_map<const DataHandle*, int64_t> positions;
  std::optional<std::size_t> first_number;  // none: numbers are constants

  void Add(const DataHandle& data) {
    positions.emplace(&data, static_cast<int64_t>(shapes.size()));
    shapes.push_back(data.shape());
  }
  bool Has(const DataHandle& data) const { return positions.contains(&data); }
};

namespace {

Edge EdgeOutside(const Tensor& tensor) {
  const AutogradMeta* const meta = tensor.impl()->autograd();
  if (meta == nullptr) return {};
  if (meta->grad_fn) return {meta->grad_fn, nullptr, meta->output};
  return meta->requires_grad ? Edge{nullptr, tensor.ptr(), 0} : Edge();
}

// Whether the traced function made a leaf of the tensor, whose elements are from outside.
bool IsLeafOf(const Context& trace, const Tensor& tensor) {
  const AutogradMeta* const meta = tensor.defined() ? tensor.impl()->autograd() : nullptr;
  return meta != nullptr && meta->leaf_of_trace == trace.id();
}

}  // namespace

// The leaves of tensors from outside. Two that share elements are one leaf if they have one history.
class Capture::Lifted final : public Outside {
 public:
  // `around`: of the trace that this one is in, or null.
  Lifted(bool may_write, Outside* around) : may_write_(may_write), around_(around) {}

  Value LeafFor(const Tensor& tensor, SiteId site) override {
    const Edge edge = EdgeOutside(tensor);
    if (!edge) {  // a constant of a program is one of this program
      Value leaf = Context::Peek(tensor.storage()).leaf;
      if (leaf && leaf.node->kind() == NodeKind::kOp) return leaf;
    }
    return {LeafOf(KeyOf(tensor, edge), tensor, site), 0};
  }
  Edge EdgeOf(const Tensor& result, Edge edge) override {
    if (!ends_histories_ || ends_.contains(edge.node.get())) return edge;
    IntrusivePtr<GradNode>& end = ends_of_[KeyOf(result, edge)];
    if (!end) {
      LeafOf(KeyOf(result, edge), result, edge.node->site());  // which keeps the tensor
      end = EndOfHistory(edge, edge.node->site());
      ends_.emplace(end.get(), KeyOf(result, edge));
    }
    return {end, nullptr, 0};
  }
  // A trace without a state of its own, such as that of a batch, draws from the one of a trace around it.
  bool draws_from_parameter() const override {
    return has_state() || (around_ != nullptr && around_->draws_from_parameter());
  }
  std::optional<Draw> DrawOf(PhiloxState begin, PhiloxState end) override {
    if (!has_state()) return around_->DrawOf(begin, end);
    if (begin.seed != first_.seed || begin.offset < first_.offset) return std::nullopt;
    blocks_ = std::max(blocks_, end.offset - first_.offset);
    return Draw{state_, begin.offset - first_.offset};
  }
  bool may_write() const override { return may_write_; }

  void EndHistories() { ends_histories_ = true; }
  bool has_state() const { return state_.defined(); }
  void DrawFrom(Tensor state, DataPtr data) {
    first_ = DefaultGenerator().state();
    state_ = std::move(state);
    tensors_.emplace_back();
    data_.push_back(std::move(data));
  }
  int64_t blocks() const { return static_cast<int64_t>(blocks_); }
  PhiloxState next_draw() const { return {first_.seed, first_.offset + blocks_}; }
  // In order of first use: the tensors, the state of draws as an undefined one, and the data of
  // their leaves.
  const Tensors& tensors() const { return tensors_; }
  absl::Span<const DataPtr> data() const { return data_; }

 private:
  using Key = std::tuple<const Storage*, const GradNode*, const TensorImpl*, uint32_t>;
  Key KeyOf(const Tensor& tensor, const Edge& edge) const {
    const auto end = ends_.find(edge.node.get());
    if (end != ends_.end()) return end->second;
    return {&tensor.storage(), edge.node.get(), edge.leaf.get(), edge.index};
  }
  const IntrusivePtr<DataNode>& LeafOf(const Key& key, const Tensor& tensor, SiteId site) {
    IntrusivePtr<DataNode>& leaf = leaves_[key];
    if (leaf) return leaf;
    leaf = MakeIntrusive<DataNode>(
        WithoutElements(tensor.shape(), tensor.device(), "a tensor from outside of a function"),
        tensor.storage().name(), site);
    tensors_.push_back(tensor);
    data_.push_back(leaf->data());
    return leaf;
  }

  bool may_write_, ends_histories_ = false;
  Outside* around_;
  Tensors tensors_;  // which keep alive what the keys point to
  std::vector<DataPtr> data_;
  absl::flat_hash_map<Key, IntrusivePtr<DataNode>> leaves_;
  absl::flat_hash_map<Key, IntrusivePtr<GradNode>> ends_of_;
  absl::flat_hash_map<const GradNode*, Key> ends_;
  Tensor state_;  // undefined: draws are numbers
  PhiloxState first_;
  uint64_t blocks_ = 0;
};

// A graph of parameters, which have no data, cannot be cut by a sync.
Capture::Capture(FromOutside from_outside)
    : context_(Context::CreateEndless()),
      lifted_(from_outside == FromOutside::kConstants
                  ? nullptr
                  : std::make_unique<Lifted>(from_outside == FromOutside::kParameters,
                                             Outside::Of(Context::Current()))),
      journal_(lifted_.get()) {
  if (lifted_) (void)Context::Current();  // makes it: what is outside is recorded there
  if (Watch* const watch = Watch::Current(); watch != nullptr && !lifted_) [[unlikely]]
    watch->Refuse("traces a program with the elements of tensors");
  context_->set_journal(&journal_);
  outer_ = Context::Exchange(context_);
  if (lifted_) no_pack_hook_.emplace(nullptr);
}

Capture::~Capture() {
  context_->set_journal(nullptr);
  if (is_active_) Context::Exchange(std::move(outer_));
  journal_.Undo(*context_);
  Leave();
}

// Gives back what was drawn.
void Capture::Leave() {
  GraphOutcomePtr outcome;
  {
    const Context::Lock lock(*context_);
    outcome = context_->TakeOutcome();
  }
  if (!outcome) return;
  outcome->SetNotTaken();
  if (!keeps_draws_) outcome->RestoreGenerators();
}

void Capture::Suspend() {
  no_pack_hook_.reset();
  Context::Exchange(std::move(outer_));
  is_active_ = false;
  if (!own_checks_) own_checks_ = context_->checked().size();
  Leave();
  replay_.reset();
}

void Capture::Resume(OwnEffects effects) {
  own_effects_ = effects;
  (void)Context::Current();  // makes it, as the constructor does
  first_check_ = context_->checked().size();
  if (lifted_ && lifted_->has_state()) replay_.emplace(DefaultGenerator(), lifted_->next_draw());
  outer_ = Context::Exchange(context_);
  if (lifted_) no_pack_hook_.emplace(nullptr);
  is_active_ = true;
}

void Capture::EndHistoriesOutside() { lifted_->EndHistories(); }

void Capture::DrawFromParameter(backend::Device device) {
  DataPtr data = WithoutElements(Shape(DType::kU32, {4}), device, "the state of a generator");
  Tensor state(context_->NewStorage(data));
  lifted_->DrawFrom(std::move(state), std::move(data));
}

Tensor Capture::Parameter(const Shape& shape, backend::Device device) {
  parameters_.push_back(
      WithoutElements(shape, device, Str("parameter ", parameters_.size(), " of a program")));
  Tensor parameter(context_->NewStorage(parameters_.back()));
  made_.emplace_back(parameter.impl()->storage(), parameters_.back());
  return parameter;
}

void Capture::UseParameters(absl::Span<const Tensor> parameters) {
  parameters_.clear();
  for (const Tensor& parameter : parameters) {
    const auto made = std::find_if(made_.begin(), made_.end(), [&](const auto& pair) {
      return pair.first == parameter.impl()->storage();
    });
    LAZULI_CHECK(made != made_.end(), "a parameter of another capture");
    parameters_.push_back(made->second);
  }
}

// Those that the program uses of the tensors from outside, and what the function made, behind the
// parameters that there are.
void Capture::AddOutside(const Trace& trace, backend::Device device, Parameters& parameters) {
  absl::flat_hash_set<const DataHandle*> used;
  for (const Node* leaf : trace.data) used.insert(DataOf(*leaf));
  for (std::size_t i = 0; i < lifted_->data().size(); ++i) {
    if (!used.contains(lifted_->data()[i].get())) continue;
    parameters.Add(*lifted_->data()[i]);
    if (!lifted_->tensors()[i].defined()) draws_ = Draws{outside_.size(), lifted_->blocks()};
    const Tensor& tensor = lifted_->tensors()[i];
    outside_.push_back(IsLeafOf(*context_, tensor) ? Detach(tensor) : tensor);
  }
  for (const Node* leaf : trace.data) {
    const DataPtr& data = static_cast<const DataNode*>(leaf)->data();
    const auto is_it = [&](const DataPtr& written) { return written == data; };
    if (parameters.Has(*data) || std::any_of(written_.begin(), written_.end(), is_it)) continue;
    parameters.Add(*data);
    outside_.emplace_back(outer_->NewStorage(data));
  }
  parameters.first_number = parameters.shapes.size();
  for (const Node* leaf : trace.scalars) {
    parameters.shapes.push_back(leaf->shape());
    outside_.emplace_back(outer_->NewStorage({leaf->CopyWithoutOperands(), 0}, device));
  }
}

absl::StatusOr<lowering::EmitSignature> Capture::SignatureOf(const Trace& trace,
                                                             backend::Device device) {
  Parameters parameters;
  for (const DataPtr& parameter : parameters_) parameters.Add(*parameter);
  if (lifted_) AddOutside(trace, device, parameters);
  for (const DataPtr& written : written_) parameters.Add(*written);
  lowering::EmitSignature signature;
  for (const Node* leaf : trace.data) {
    if (parameters.Has(*DataOf(*leaf))) {
      signature.leaves.emplace_back(parameters.positions.at(DataOf(*leaf)));
      continue;
    }
    LAZULI_ASSIGN_OR_RETURN(Literal elements, ElementsOf(*leaf));
    signature.leaves.emplace_back(std::move(elements));
  }
  for (std::size_t i = 0; i < trace.scalars.size(); ++i) {
    if (parameters.first_number) {
      signature.leaves.emplace_back(static_cast<int64_t>(*parameters.first_number + i));
      continue;
    }
    LAZULI_ASSIGN_OR_RETURN(Literal elements, ElementsOf(*trace.scalars[i]));
    signature.leaves.emplace_back(std::move(elements));
  }
  signature.parameters = std::move(parameters.shapes);
  return signature;
}

absl::StatusOr<ProgramPtr> Capture::Finish(absl::Span<const Tensor> results, std::string name,
                                           std::vector<hlo::Alias> aliases) {
  outside_.clear();
  written_.clear();
  draws_.reset();
  std::vector<Storage*> storages;
  std::vector<const Tensor*> tensors;
  for (const Tensor& result : results) {
    storages.push_back(&result.storage());
    tensors.push_back(&result);
  }
  for (const JournalEntry& written : journal_.taken()) {
    if (!written.data) continue;  // a number, or nothing that was computed
    storages.push_back(written.storage.get());
    written_.push_back(written.data);
  }
  Trace trace;
  trace.roots.resize(storages.size());
  std::optional<Context::Lock> lock;
  {
    const Outside::Operands operands(lifted_.get(), tensors);
    context_->LockWithValues(lock, storages, kNoSite, absl::MakeSpan(trace.roots));
  }
  std::vector<const Node*> repeated;
  const auto& all_checks = context_->checked();
  for (std::size_t i = 0; i < all_checks.size(); ++i) {
    const bool is_own = i < own_checks_.value_or(0), is_effect = all_checks[i].is_effect;
    if (!is_own && i < first_check_) continue;
    if (is_own && is_effect && own_effects_ == OwnEffects::kNot) {
      repeated.push_back(all_checks[i].node.get());
      continue;
    }
    (is_effect ? trace.effects : trace.checked).push_back(all_checks[i].node);
  }
  const auto functions = FunctionsOf(context_->checked());
  lock.reset();
  TraceGraph(trace);
  const backend::Device device = storages.empty() ? backend::Device() : storages[0]->device();
  LAZULI_ASSIGN_OR_RETURN(lowering::EmitSignature signature, SignatureOf(trace, device));
  signature.repeated = std::move(repeated);
  for (std::size_t i = 0; i < written_.size(); ++i) {
    const std::size_t number = signature.parameters.size() - written_.size() + i;
    aliases.push_back({.output_index = {static_cast<int64_t>(results.size() + i)},
                       .parameter_number = static_cast<int64_t>(number),
                       .parameter_index = {}});
  }
  LAZULI_ASSIGN_OR_RETURN(
      lowering::EmittedModule emitted,
      EmitTrace(trace, std::move(name), std::move(aliases), std::move(signature)));
  std::vector<ProgramCheck> checks = ChecksOf(emitted.checks, trace, functions);
  return std::make_shared<Program>(std::move(emitted.module), std::move(checks));
}

}  // namespace lazuli::lazy
