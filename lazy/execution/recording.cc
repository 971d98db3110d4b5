#include "lazy/execution/recording.h"

#include <algorithm>
#include <utility>

#include "ir/support/str.h"
#include "ir/support/thread_local.h"
#include "lazy/execution/sync.h"
#include "lazy/tensor/leaves.h"
#include "lazy/tensor/status_error.h"

namespace lazuli::lazy {
namespace {

using Place = Recipe::Place;
using Content = Recipe::Content;
using TensorRef = Recipe::TensorRef;

constexpr int kContextBits = 40;  // of a storage's id, below its context's number

template <class T>
int32_t LastOf(const std::vector<T>& list) {
  return static_cast<int32_t>(list.size()) - 1;
}

bool HasHistory(const TensorImpl& impl) {
  const AutogradMeta* const meta = impl.autograd();
  return meta != nullptr && meta->grad_fn;
}

bool RequiresGrad(const TensorImpl& impl) {
  const AutogradMeta* const meta = impl.autograd();
  return meta != nullptr && (meta->requires_grad || meta->grad_fn);
}

IntrusivePtr<TensorImpl> GradOf(const TensorImpl& impl) {
  const AutogradMeta* const meta = impl.autograd();
  return meta == nullptr ? nullptr : meta->grad.ptr();
}

// The first of the arguments before `i` for which `same` holds, else `i`.
template <class F>
int32_t FirstSame(std::size_t i, F same) {
  for (std::size_t j = 0; j < i; ++j) {
    if (same(j)) return static_cast<int32_t>(j);
  }
  return static_cast<int32_t>(i);
}

Recipe::ArgumentGuard Describe(absl::Span<const Tensor> arguments, std::size_t i) {
  const Tensor& x = arguments[i];
  Storage& storage = x.storage();
  Recipe::ArgumentGuard a;
  a.shape = storage.shape();
  a.device = storage.device();
  a.requires_grad = RequiresGrad(*x.impl());
  a.is_inference = x.impl()->is_inference();
  a.base_shape = storage.written().shape();
  if (const View* const view = storage.view()) {
    a.is_view = true;
    a.strides = view->strides();
    a.offset = view->offset();
  }
  a.same_tensor = FirstSame(i, [&](std::size_t j) { return arguments[j].impl() == x.impl(); });
  a.same_storage = FirstSame(i, [&](std::size_t j) { return &arguments[j].storage() == &storage; });
  a.same_base = FirstSame(
      i, [&](std::size_t j) { return &arguments[j].storage().written() == &storage.written(); });
  a.id = storage.id();
  return a;
}

}  // namespace

Recording::Recording(absl::Span<const Tensor> arguments, std::vector<uint64_t> modes)
    : context_(&Context::Current()), arguments_(arguments), recipe_(std::make_unique<Recipe>()) {
  recipe_->modes = std::move(modes);
  const Value number{MakeIntrusive<ScalarNode>(DType::kF32, 0, ir::kNoSite), 0};
  last_old_ = context_->NewStorage(number, backend::Device())->id();
}

absl::StatusOr<std::unique_ptr<Recording>> Recording::Start(absl::Span<const Tensor> arguments,
                                                            std::vector<uint64_t> modes) {
  Context& context = Context::Current();
  LAZULI_RETURN_IF_ERROR(GetEngine().Sync(context, /*wait=*/false, SyncReason::kUser));
  for (const Tensor& x : arguments) {  // a view that is stale is derived anew
    LAZULI_RETURN_IF_ERROR(context.ContentsOf(x.storage()).status());
  }
  std::unique_ptr<Recording> recording(new Recording(arguments, std::move(modes)));
  LAZULI_RETURN_IF_ERROR(recording->AddArguments());
  return recording;
}

absl::Status Recording::AddArguments() {
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    const Tensor& x = arguments_[i];
    recipe_->arguments.push_back(Describe(arguments_, i));
    const auto number = static_cast<int32_t>(i);
    if (GradEnabled() && HasHistory(*x.impl()))
      RefuseAt(Str("argument ", i, " has a history, which a replay does not go on with"),
               CurrentSite());
    if (x.storage().view() != nullptr)
      AddPlace(x.storage().written(), Place::Kind::kBaseOfArgument, number);
    const int32_t place = AddPlace(x.storage(), Place::Kind::kArgument, number);
    if (place >= 0)
      recipe_->arguments.back().is_number =
          recipe_->places[static_cast<std::size_t>(place)].is_number;
  }
  return absl::OkStatus();
}

void Recording::RefuseAt(std::string why, SiteId site) {
  if (!why_.empty() || !IsHere()) return;
  why_ = std::move(why);
  site_ = site;
}

// --- while the function runs

bool Recording::IsOld(const Storage& storage) const {
  return storage.id() >> kContextBits != context_->id() || storage.id() <= last_old_;
}

int32_t Recording::PlaceOf(const Storage& storage) const {
  const auto place = place_of_.find(&storage);
  return place == place_of_.end() ? -1 : place->second;
}

// The state of a storage that becomes a place. None if the recording is refused, because a recipe
// could not find the contents again.
std::optional<Recording::PlaceState> Recording::StateOf(Storage& storage) {
  Context::Contents contents = Context::Peek(storage);
  if (!contents) {
    absl::StatusOr<Context::Contents> there = context_->ContentsOf(storage);
    if (there.ok()) contents = *std::move(there);
  }
  if (!contents || (contents.data && contents.data->has_failed())) {
    RefuseAt("uses a tensor that has failed", CurrentSite());
    return std::nullopt;
  }
  PlaceState state{StoragePtr(&storage), contents.data, {}, storage.version()};
  if (contents.data) return state;
  const Context::Lock lock(*context_);
  if (!context_->Owns(storage)) {
    RefuseAt("uses a number of another thread", CurrentSite());
    return std::nullopt;
  }
  state.number = context_->PendingValue(storage).node;
  if (state.number && state.number->kind() != NodeKind::kScalar) {
    RefuseAt("uses a constant from outside", CurrentSite());
    return std::nullopt;
  }
  return state;
}

// -1 for a view that is stale: its elements are those of its base.
int32_t Recording::AddPlace(Storage& storage, Place::Kind kind, int32_t index) {
  if (const int32_t known = PlaceOf(storage); known >= 0) return known;
  if (!Context::IsCurrent(storage)) return -1;
  std::optional<PlaceState> state = StateOf(storage);
  if (!state) return -1;
  Place place;
  place.kind = kind;
  place.index = index;
  place.is_number = static_cast<bool>(state->number);
  place.shape = storage.shape();
  place.site = CurrentSite();
  if (kind == Place::Kind::kCaptured) place.storage = state->storage;
  const int32_t number = LastOf(recipe_->places) + 1;
  if (state->number) {
    nodes_.push_back(state->number);
    numbers_.emplace(state->number.get(), NumberOrigin{Recipe::Scalar::Kind::kPlace, number, 0});
  }
  recipe_->places.push_back(std::move(place));
  states_.push_back(*std::move(state));
  place_of_.emplace(&storage, number);
  return number;
}

void Recording::Touch(Storage& storage) {
  if (!IsHere() || is_refused() || !IsOld(storage)) return;
  if (storage.view() != nullptr) AddPlace(storage.written(), Place::Kind::kCaptured, -1);
  AddPlace(storage, Place::Kind::kCaptured, -1);
}

void Recording::Touch(const Tensor& tensor) {
  if (!IsHere() || is_refused() || !IsOld(tensor.storage())) return;
  Touch(tensor.storage());
  if (GradEnabled() && HasHistory(*tensor.impl()))
    Refuse("uses a tensor from outside that has a history");
  const int32_t number = PlaceOf(tensor.storage());
  if (number < 0) return;
  Place& place = recipe_->places[static_cast<std::size_t>(number)];
  if (place.kind != Place::Kind::kCaptured) return;
  const auto is_it = [&](const auto& known) { return known.first.get() == tensor.impl(); };
  if (!IsAlias(*tensor.impl()) && std::none_of(place.tensors.begin(), place.tensors.end(), is_it))
    place.tensors.emplace_back(tensor.ptr(), RequiresGrad(*tensor.impl()));
}

void Recording::TouchLocked(Storage& storage) {
  if (!IsHere() || is_refused() || !IsOld(storage)) return;
  Storage& written = storage.written();
  if (PlaceOf(written) >= 0) return;
  const Value value = context_->ValueOf(written, CurrentSite());
  if (!value || value.node->kind() != NodeKind::kData)
    return RefuseAt("overwrites a number from outside", CurrentSite());
  Place place;
  place.storage = StoragePtr(&written);
  place.shape = written.shape();
  place.site = CurrentSite();
  place_of_.emplace(&written, LastOf(recipe_->places) + 1);
  recipe_->places.push_back(std::move(place));
  states_.push_back({StoragePtr(&written),
                     static_cast<const DataNode&>(*value.node).data(),
                     {},
                     written.version()});
}

void Recording::Draw(const Generator& generator, int64_t numbers, absl::Span<const Value> words) {
  if (!IsHere()) return;
  recipe_->draws.push_back({generator, numbers});
  const int32_t draw = LastOf(recipe_->draws);
  for (std::size_t word = 0; word < words.size(); ++word) {
    nodes_.push_back(words[word].node);
    numbers_.emplace(words[word].node.get(),
                     NumberOrigin{Recipe::Scalar::Kind::kDraw, draw, static_cast<int32_t>(word)});
  }
}

int32_t Recording::OwnerOf(TensorImpl& tensor) {
  for (std::size_t i = 0; i < owned_.size(); ++i) {
    if (owned_[i].impl.get() == &tensor) return static_cast<int32_t>(i);
  }
  Recipe::Owner owner;
  for (std::size_t i = 0; i < arguments_.size() && owner.argument < 0; ++i) {
    if (arguments_[i].impl() == &tensor) owner.argument = static_cast<int32_t>(i);
  }
  if (owner.argument < 0) owner.impl = IntrusivePtr<TensorImpl>(&tensor);
  if (const AutogradMeta* const meta = tensor.autograd();
      meta != nullptr && meta->hooks && !meta->hooks->empty())
    Refuse("calls a hook of a gradient");
  const IntrusivePtr<TensorImpl> grad = GradOf(tensor);
  owner.had_grad = static_cast<bool>(grad);
  recipe_->owners.push_back(std::move(owner));
  owned_.push_back({IntrusivePtr<TensorImpl>(&tensor), grad});
  const int32_t number = LastOf(recipe_->owners);
  if (!grad) return number;
  if (grad->storage()->view() != nullptr) {
    Refuse("uses a gradient that is a view");
  } else if (PlaceOf(*grad->storage()) >= 0) {
    Refuse("uses a gradient that is an argument, or is used otherwise, too");
  } else {
    AddPlace(*grad->storage(), Place::Kind::kGradient, number);
  }
  return number;
}

void Recording::NoteGradUse(TensorImpl& tensor) {
  if (!IsHere() || is_refused() || !IsOld(*tensor.storage()) || HasHistory(tensor)) return;
  if (!IsAlias(tensor)) OwnerOf(tensor);
}

void Recording::NoteGrad(TensorImpl& tensor) {
  if (!IsHere() || is_refused() || !IsOld(*tensor.storage()) || IsAlias(tensor)) return;
  if (HasHistory(tensor)) return Refuse("changes a gradient of a result from outside");
  owned_[static_cast<std::size_t>(OwnerOf(tensor))].changes = true;
}

void Recording::NoteAlias(TensorImpl& alias) {
  if (!IsHere() || is_refused() || !IsOld(*alias.storage())) return;
  aliases_.emplace(&alias, false);
  kept_aliases_.emplace_back(&alias);
}

void Recording::NoteChange(TensorImpl& tensor, const char* what) {
  if (!IsHere() || !IsOld(*tensor.storage())) return;
  if (const auto alias = aliases_.find(&tensor); alias != aliases_.end()) {
    alias->second = true;
    return;
  }
  Refuse(Str("changes ", what, " of a tensor from outside"));
}

void Recording::NoteSync(const Context& context) {
  if (&context == context_.get()) Refuse("syncs, or reads what it computes");
}

void Recording::NoteRead() { Refuse("reads the elements of a tensor"); }

void Recording::Numbers(absl::Span<const Value> numbers, uint64_t what) {
  if (!IsHere() || !is_open_) return;
  Recipe::Action& action = recipe_->actions.back();
  const int32_t number = LastOf(recipe_->actions);
  const auto mix = [&](uint64_t more) { action.what = action.what * NumbersOnly::kFactor + more; };
  mix(what);
  for (const Value& value : numbers) {
    const bool is_cell = value.node->kind() == NodeKind::kScalar;
    mix(is_cell ? 1 : 0);
    if (!is_cell) {
      Refuse("has complex numbers of an optimiser");
      continue;
    }
    nodes_.push_back(value.node);
    numbers_.emplace(value.node.get(), NumberOrigin{Recipe::Scalar::Kind::kAction, number,
                                                    static_cast<int32_t>(action.count++)});
  }
}

void Recording::Open(std::shared_ptr<HostAction> action) {
  if (!IsHere()) return Refuse("steps inside of a traced function");
  recipe_->actions.push_back({std::move(action)});
  is_open_ = true;
}

// --- afterwards

void Recording::Runs(const Context& context, const SyncState& state, const Run& run) {
  if (&context != context_.get()) return;
  if (std::exchange(ran_, true)) return RefuseAt("runs on several devices", run.site);
  for (const Context::Checked& checked : context_->checked()) {
    if (checked.was_told) return RefuseAt("is the rest of a step that failed", run.site);
  }
  Recipe& r = *recipe_;
  r.program = run.program;
  r.device = run.device;
  r.site = run.site;
  r.checks = run.checks;
  r.nans = run.nans;
  seen_.inputs = run.inputs;
  seen_.outputs = run.outputs;
  for (std::size_t o = 0; o < state.roots.size(); ++o) {
    const Storage* const root = state.roots[o];
    seen_.roots.push_back(root);
    seen_.replaced.emplace_back(const_cast<DataHandle*>(state.replaced[o]));
    seen_.sites.push_back(state.trace.roots[o].node->site());
    Recipe::ProgramRoot& made = r.roots.emplace_back();
    made.shape = state.trace.roots[o].shape();
    made.before = o < state.before.size() ? state.before[o] : -1;
    made.is_wanted = root != nullptr;
    made.is_view = root != nullptr && root->view() != nullptr;
    if (root != nullptr && !IsOld(*root) && root->version() > 0) r.waits_for_doubts = true;
  }
  for (const Node* leaf : state.trace.data) r.input_sites.push_back(leaf->site());
  for (const Node* leaf : state.trace.scalars) {
    const auto& number = static_cast<const ScalarNode&>(*leaf);
    Recipe::Scalar& scalar = r.scalars.emplace_back();
    scalar.cell = number.cell();
    scalar.site = number.site();
    const auto known = numbers_.find(leaf);
    if (known == numbers_.end()) continue;
    scalar.kind = known->second.kind;
    scalar.index = known->second.index;
    scalar.part = known->second.part;
  }
}

// Bases of views that the function returns are computed, too.
void Recording::KeepResultBases(absl::Span<const Tensor> results, std::vector<StoragePtr>& kept) {
  const auto keep = [&](const TensorImpl& impl) {
    kept.push_back(impl.storage());
    if (const View* const view = impl.storage()->view()) kept.push_back(view->base());
  };
  for (const Tensor& result : results) {
    if (result.defined()) keep(*result.impl());
  }
  for (const Owned& owned : owned_) {
    if (const auto grad = GradOf(*owned.impl); owned.changes && grad) keep(*grad);
  }
}

// An alias that the function changed and that somebody else has afterwards is not made by a replay.
void Recording::CheckAliases(absl::Span<const Tensor> results) {
  for (const IntrusivePtr<TensorImpl>& alias : kept_aliases_) {
    const auto is_it = [&](const Tensor& x) { return x.defined() && x.impl() == alias.get(); };
    if (aliases_[alias.get()] && alias->use_count() > 1 &&
        std::none_of(results.begin(), results.end(), is_it))
      RefuseAt("keeps a tensor that it detached and changed", CurrentSite());
  }
}

// Each such argument is what a result of its shape is written over. Where a check may fail it is not,
// since a failed result has no elements.
void Recording::Donate(absl::Span<const Tensor> results, absl::Span<const int32_t> donated) {
  std::vector<const Storage*> used;
  bool may_fail = false;
  {
    const Context::Lock lock(*context_);
    const auto& checked = context_->checked();
    may_fail = std::any_of(checked.begin(), checked.end(),
                           [](const Context::Checked& c) { return !c.is_effect; });
  }
  for (const int32_t argument : donated) {
    const Recipe::ArgumentGuard& a = recipe_->arguments[static_cast<std::size_t>(argument)];
    Storage& storage = arguments_[static_cast<std::size_t>(argument)].storage();
    const int32_t place = PlaceOf(storage);
    const auto alone = [&](const Tensor& x) { return &x.storage().written() == &storage; };
    if (a.is_view || place < 0 || !states_[static_cast<std::size_t>(place)].data ||
        storage.version() != states_[static_cast<std::size_t>(place)].version ||
        std::count_if(arguments_.begin(), arguments_.end(), alone) > 1 ||
        std::any_of(results.begin(), results.end(),
                    [&](const Tensor& x) { return x.defined() && alone(x); })) {
      RefuseAt(Str("gives up argument ", argument,
                   ", which is a view, is written to, returned or given twice"),
               CurrentSite());
      return;
    }
    recipe_->donated.push_back(place);
    recipe_->waits_for_doubts = true;
    for (const Tensor& result : results) {
      if (may_fail || !result.defined()) continue;
      Storage& made = result.storage();
      if (IsOld(made) || made.view() != nullptr || !(made.shape() == storage.shape()) ||
          std::find(used.begin(), used.end(), &made) != used.end())
        continue;
      used.push_back(&made);
      context_->TakesPlaceOf(made, storage);
      break;
    }
  }
}

void Recording::TakeDonated() {
  for (const int32_t place : recipe_->donated) {
    Storage& storage = *states_[static_cast<std::size_t>(place)].storage;
    const auto nothing = MakeIntrusive<DataHandle>(storage.shape(), storage.device());
    const Value value{MakeIntrusive<DataNode>(nothing, nullptr, ir::kNoSite), 0};
    Value old;  // released after the lock
    const Context::Lock lock(*context_);
    if (!context_->Owns(storage)) continue;
    old = context_->Write(storage, value);
    context_->Resolve(storage, TakenData(storage.shape(), storage.device()));
  }
}

absl::StatusOr<std::unique_ptr<Recipe>> Recording::Finish(absl::Span<const Tensor> results,
                                                          absl::Span<const int32_t> donated) {
  for (std::size_t i = 0; i < results.size() && !is_refused(); ++i) {
    if (!results[i].defined() || !RequiresGrad(*results[i].impl())) continue;
    RefuseAt(Str("returns a tensor that requires a gradient, result ", i,
                 ", and a replayed call has no history; compile the whole step, or call it under "
                 "no_grad"),
             HasHistory(*results[i].impl()) ? results[i].impl()->autograd()->grad_fn->site()
                                            : CurrentSite());
  }
  CheckAliases(results);
  if (is_refused()) return nullptr;
  Donate(results, donated);
  if (is_refused()) return nullptr;
  std::vector<StoragePtr> kept;
  KeepResultBases(results, kept);
  {
    const Watch::Scope none(nullptr);
    SyncState& state = ir::PerThread<SyncState>::Get();
    state.listener = this;
    const absl::Status synced = GetEngine().Sync(*context_, /*wait=*/false, SyncReason::kUser);
    state.listener = nullptr;
    LAZULI_RETURN_IF_ERROR(synced);
  }
  if (is_refused()) return nullptr;
  if (recipe_->program) {
    LAZULI_ASSIGN_OR_RETURN(recipe_->options, CompileOptionsFor(recipe_->device));
  }
  MapData();
  AddInputs();
  for (const Tensor& result : results)
    recipe_->results.push_back(result.defined() ? RefOf(result.ptr()) : TensorRef());
  AddGradients();
  AddWrites();
  AddRoots();
  AddCapturedBases();
  if (is_refused()) return nullptr;
  TakeDonated();
  return std::move(recipe_);
}

void Recording::MapData() {
  for (std::size_t o = 0; o < seen_.outputs.size(); ++o)
    output_with_.emplace(seen_.outputs[o].get(), static_cast<int32_t>(o));
  for (std::size_t p = 0; p < states_.size(); ++p) {
    if (!states_[p].data) continue;
    const auto [first, is_new] =
        place_with_.emplace(states_[p].data.get(), static_cast<int32_t>(p));
    if (!is_new) recipe_->places[p].same_data = first->second;
  }
}

int32_t Recording::AddConstant(const DataPtr& data) {
  std::vector<DataPtr>& constants = recipe_->constants;
  const auto known = std::find(constants.begin(), constants.end(), data);
  const auto number = static_cast<int32_t>(known - constants.begin());
  if (known == constants.end()) constants.push_back(data);
  return number;
}

void Recording::AddInputs() {
  for (const DataPtr& input : seen_.inputs) {
    const auto place = place_with_.find(input.get());
    recipe_->inputs.push_back(place != place_with_.end() ? place->second : -1 - AddConstant(input));
  }
}

Content Recording::ContentOf(const DataPtr& data) {
  if (const auto output = output_with_.find(data.get()); output != output_with_.end())
    return {Content::Kind::kOutput, output->second};
  if (const auto place = place_with_.find(data.get()); place != place_with_.end())
    return {Content::Kind::kPlace, place->second};
  return {Content::Kind::kConstant, AddConstant(data)};
}

Content Recording::ContentOf(Storage& storage) {
  const Context::Contents contents = Context::Peek(storage);
  if (contents.data) return ContentOf(contents.data);
  if (!contents.leaf || contents.leaf.node->kind() != NodeKind::kScalar) {
    RefuseAt("gives a tensor that is neither elements nor a number", CurrentSite());
    return {};
  }
  NodePtr node;
  {
    const Context::Lock lock(*context_);
    if (context_->Owns(storage)) node = context_->PendingValue(storage).node;
  }
  const auto& number = static_cast<const ScalarNode&>(*contents.leaf.node);
  if (node && numbers_.contains(node.get()))
    RefuseAt("gives a number that is another one in each call", number.site());
  return {Content::Kind::kNumber, static_cast<int32_t>(number.shape().dtype()), number.cell()};
}

int32_t Recording::AddStorage(const StoragePtr& storage) {
  if (const int32_t place = PlaceOf(*storage); place >= 0) return place;
  if (const auto known = new_storages_.find(storage.get()); known != new_storages_.end())
    return known->second;
  if (IsOld(*storage)) {
    RefuseAt("gives a tensor from outside that it does not use", CurrentSite());
    return -1;
  }
  Recipe::NewStorage made;
  made.shape = storage->shape();
  if (const View* const view = storage->view()) {
    made.is_view = true;
    made.base = AddStorage(view->base());
    made.strides = view->strides();
    made.offset = view->offset();
    if (!Context::IsCurrent(*storage)) {
      RefuseAt("gives a view of what it changed afterwards", CurrentSite());
      return -1;
    }
  }
  made.content = ContentOf(*storage);
  recipe_->storages.push_back(std::move(made));
  const int32_t number = -1 - LastOf(recipe_->storages);
  new_storages_.emplace(storage.get(), number);
  kept_.push_back(storage);
  return number;
}

TensorRef Recording::RefOf(const IntrusivePtr<TensorImpl>& impl) {
  if (!impl) return {};
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    if (arguments_[i].impl() == impl.get())
      return {TensorRef::Kind::kArgument, static_cast<int32_t>(i)};
  }
  if (const auto known = new_tensors_.find(impl.get()); known != new_tensors_.end())
    return {TensorRef::Kind::kNew, known->second};
  Recipe::NewTensor made;
  made.storage = AddStorage(impl->storage());
  made.base = RefOf(impl->base_ptr());
  made.view_kind = impl->view_kind();
  recipe_->tensors.push_back(made);
  const int32_t number = LastOf(recipe_->tensors);
  new_tensors_.emplace(impl.get(), number);
  kept_tensors_.push_back(impl);
  return {TensorRef::Kind::kNew, number};
}

void Recording::AddGradients() {
  for (std::size_t i = 0; i < owned_.size(); ++i) {
    const IntrusivePtr<TensorImpl> now = GradOf(*owned_[i].impl);
    if (!owned_[i].changes || now == owned_[i].grad) continue;
    if (now && RequiresGrad(*now)) RefuseAt("makes a gradient that has a history", CurrentSite());
    recipe_->gradients.push_back({static_cast<int32_t>(i), RefOf(now)});
  }
}

void Recording::AddWrites() {
  for (std::size_t p = 0; p < states_.size(); ++p) {
    const PlaceState& before = states_[p];
    const Place& place = recipe_->places[p];
    for (const auto& [impl, required] : place.tensors) {
      if (RequiresGrad(*impl) != required)
        RefuseAt("gives a tensor from outside a history", place.site);
    }
    if (before.storage->view() != nullptr || before.storage->version() == before.version) continue;
    const auto nothing =
        MakeIntrusive<DataHandle>(before.storage->shape(), before.storage->device());
    recipe_->writes.push_back({static_cast<int32_t>(p), ContentOf(*before.storage),
                               MakeIntrusive<DataNode>(nothing, nullptr, ir::kNoSite)});
  }
  for (std::size_t i = 0; i < arguments_.size(); ++i) {
    if (RequiresGrad(*arguments_[i].impl()) != recipe_->arguments[i].requires_grad)
      RefuseAt(Str("gives argument ", i, " a history"), CurrentSite());
  }
}

void Recording::AddRoots() {
  for (std::size_t o = 0; o < seen_.roots.size(); ++o) {
    const Storage* const storage = seen_.roots[o];
    Recipe::ProgramRoot& root = recipe_->roots[o];
    if (seen_.replaced[o]) {
      const auto place = place_with_.find(seen_.replaced[o].get());
      root.replaced =
          place != place_with_.end() ? place->second : -2 - AddConstant(seen_.replaced[o]);
    }
    if (storage == nullptr || new_storages_.contains(storage)) continue;
    if (IsOld(*storage) && storage->view() != nullptr) {
      root.is_wanted = false;  // it is derived from its base
      continue;
    }
    if (IsOld(*storage) && PlaceOf(*storage) >= 0) continue;
    RefuseAt(Str("keeps a tensor ", root.shape, " that it made and does not return"),
             seen_.sites[o]);
  }
}

void Recording::AddCapturedBases() {
  for (Place& place : recipe_->places) {
    // What nobody else has was made by the function.
    std::erase_if(place.tensors, [](const auto& known) { return known.first->use_count() == 1; });
    if (place.kind == Place::Kind::kCaptured)
      recipe_->captured_bases.insert(&place.storage->written());
  }
}

}  // namespace lazuli::lazy
