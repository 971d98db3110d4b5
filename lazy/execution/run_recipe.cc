#include <algorithm>
#include <exception>
#include <optional>
#include <utility>

#include "ir/support/flags.h"
#include "ir/support/fork.h"
#include "ir/support/str.h"
#include "lazy/execution/recipe.h"
#include "lazy/execution/sync_context.h"
#include "lazy/tensor/leaves.h"
#include "lazy/tensor/site_span.h"

namespace lazuli::lazy {
namespace {

using Content = Recipe::Content;
using Scalar = Recipe::Scalar;
using TensorRef = Recipe::TensorRef;

std::size_t At(int32_t index) { return static_cast<std::size_t>(index); }

// One run of a recipe.
class RecipeRun {
 public:
  RecipeRun(const Recipe& recipe, absl::Span<const Tensor> arguments, ViewMaker make_view)
      : recipe_(recipe),
        arguments_(arguments),
        make_view_(make_view),
        context_(Context::Current()) {}

  // Why there is no run; nothing has changed then.
  absl::StatusOr<std::string> Prepare();
  // From here on all is done.
  absl::Status ActOnHost();
  absl::Status Submit();
  // Throws what the last action has thrown.
  void MakeResults(Tensors& results);

 private:
  struct Placed {
    Storage* storage;
    uint64_t version;
    DataPtr data;
    uint64_t cell;  // of a number
  };

  TensorImpl& OwnerAt(int32_t index) const {
    const Recipe::Owner& owner = recipe_.owners[At(index)];
    return owner.argument >= 0 ? *arguments_[At(owner.argument)].impl() : *owner.impl;
  }
  Storage& StorageOf(const Recipe::Place& place) const;
  absl::Status TakeOverWritten();
  absl::StatusOr<std::string> Gather();
  absl::StatusOr<std::string> GatherOne(std::size_t p);
  std::string CheckActions();
  bool IsAsGathered() const;
  absl::Status GatherAgain(std::optional<Context::Lock>& lock);
  DataPtr DataOf(const Content& content) const;
  void FillInputs(Run& run) const;
  void FillScalars(Run& run) const;
  void Queue(Executor& executor, PooledVector<Value>& old);
  void TakeDonated(PooledVector<Value>& old);
  StoragePtr MakeStorage(const Recipe::NewStorage& made);
  Tensor TensorOf(const TensorRef& ref) const;

  const Recipe& recipe_;
  const absl::Span<const Tensor> arguments_;
  const ViewMaker make_view_;
  Context& context_;
  PooledVector<Placed> placed_;
  PooledVector<PhiloxState> drawn_;
  PooledVector<uint64_t> numbers_;          // of all actions
  PooledVector<std::size_t> first_number_;  // by action
  PooledVector<DataPtr> outputs_;
  PooledVector<DataPtr> kept_;  // by place: what the results need of it
  PooledVector<StoragePtr> storages_;
  PooledVector<Tensor> tensors_;
  std::exception_ptr thrown_;
};

Storage& RecipeRun::StorageOf(const Recipe::Place& place) const {
  switch (place.kind) {
    case Recipe::Place::Kind::kArgument:
      return arguments_[At(place.index)].storage();
    case Recipe::Place::Kind::kBaseOfArgument:
      return arguments_[At(place.index)].storage().written();
    case Recipe::Place::Kind::kCaptured:
      return *place.storage;
    case Recipe::Place::Kind::kGradient:
      return *OwnerAt(place.index).autograd()->grad.impl()->storage();
  }
  return *place.storage;
}

absl::StatusOr<std::string> RecipeRun::GatherOne(std::size_t p) {
  const Recipe::Place& place = recipe_.places[p];
  Placed& here = placed_[p];
  here.version = here.storage->version();
  Context::Contents contents = Context::Peek(*here.storage);
  if (!contents) {
    LAZULI_ASSIGN_OR_RETURN(contents, context_.ContentsOf(*here.storage));
  }
  if (place.is_number) {
    if (contents.data || contents.leaf.node->kind() != NodeKind::kScalar)
      return "a number that it uses has become data";
    here.cell = static_cast<const ScalarNode&>(*contents.leaf.node).cell();
    return "";
  }
  if (!contents.data) {
    if (contents.leaf.node->kind() != NodeKind::kScalar)
      return "a tensor that it uses is a constant";
    LAZULI_ASSIGN_OR_RETURN(backend::BufferPtr buffer,
                            NumberBuffer(*contents.leaf.node, *here.storage));
    contents.data = MakeIntrusive<DataHandle>(std::move(buffer));
  }
  here.data = std::move(contents.data);
  if (recipe_.waits_for_doubts && here.data->doubtful()) {
    here.data->Wait().status().IgnoreError();
    if (!here.data->ready()) return "the wait for a tensor that may fail was interrupted";
  }
  if (here.data->has_failed()) return "a tensor that it uses has failed";
  return "";
}

absl::StatusOr<std::string> RecipeRun::Gather() {
  for (std::size_t p = 0; p < placed_.size(); ++p) {
    LAZULI_ASSIGN_OR_RETURN(std::string why, GatherOne(p));
    if (!why.empty()) return why;
    const int32_t same = recipe_.places[p].same_data;
    if (same >= 0 && placed_[At(same)].data != placed_[p].data)
      return "tensors that had the same elements are no longer one";
  }
  return "";
}

absl::Status RecipeRun::TakeOverWritten() {
  Context::Movers movers;
  for (const Recipe::PlaceWrite& write : recipe_.writes) {
    Storage& storage = *placed_[At(write.place)].storage;
    if (context_.Owns(storage)) continue;
    if (!movers) movers = Context::LockMovers();
    context_.TakeOver(storage, movers);
  }
  return absl::OkStatus();
}

// Whether each action takes the numbers that it took.
std::string RecipeRun::CheckActions() {
  for (const Recipe::Action& action : recipe_.actions) {
    const NumbersOnly numbers;
    action.action->TakeNumbers();
    if (numbers.what() != action.what || numbers.cells().size() != action.count)
      return "an optimiser steps in another way";
  }
  return "";
}

absl::StatusOr<std::string> RecipeRun::Prepare() {
  LAZULI_RETURN_IF_ERROR(ir::ForkError());
  LAZULI_RETURN_IF_ERROR(Context::CheckNotEnding());
  LAZULI_RETURN_IF_ERROR(ir::FlagErrors());
  LAZULI_RETURN_IF_ERROR(context_.TakeFailure());
  if (ir::flags().memory_limit() != 0) return "there is a limit of memory";
  if (recipe_.program == nullptr && !recipe_.storages.empty()) return "nothing is computed";
  for (const Recipe::DrawnNumbers& draw : recipe_.draws) {
    if (Replay::Is(draw.generator)) return "random numbers are drawn again";
  }
  bool has_outcome;
  {
    const Context::Lock lock(context_);
    has_outcome = static_cast<bool>(context_.outcome_or_null());
  }
  // What is pending waits for its own.
  if (has_outcome && !(recipe_.draws.empty() && recipe_.actions.empty()))
    LAZULI_RETURN_IF_ERROR(GetEngine().Sync(context_, /*wait=*/false, SyncReason::kUser));
  placed_.reserve(recipe_.places.size());
  for (const Recipe::Place& place : recipe_.places)
    placed_.push_back({&StorageOf(place), 0, nullptr, 0});
  LAZULI_RETURN_IF_ERROR(TakeOverWritten());
  LAZULI_ASSIGN_OR_RETURN(std::string why, Gather());
  return why.empty() ? CheckActions() : why;
}

absl::Status RecipeRun::ActOnHost() {
  std::size_t num_numbers = 0;
  for (const Recipe::Action& action : recipe_.actions) num_numbers += action.count;
  for (const Recipe::Action& action : recipe_.actions) {
    first_number_.push_back(numbers_.size());
    const NumbersOnly numbers;
    action.action->TakeNumbers();
    if (numbers.what() != action.what || numbers.cells().size() != action.count)
      return Internal("an optimiser steps in another way than a moment ago");
    numbers_.insert(numbers_.end(), numbers.cells().begin(), numbers.cells().end());
    try {
      action.action->Commit();
    } catch (...) {  // as in the function, what was recorded before runs
      thrown_ = std::current_exception();
      if (numbers_.size() < num_numbers) std::rethrow_exception(thrown_);
      break;
    }
  }
  for (const Recipe::DrawnNumbers& draw : recipe_.draws) {
    const GeneratorStatePtr& state = draw.generator.shared_state();
    drawn_.push_back(state->Reserve(draw.numbers));
    const Context::Lock lock(context_);
    context_.outcome()->AddDraw(state, drawn_.back(), After(drawn_.back(), draw.numbers));
  }
  return absl::OkStatus();
}

bool RecipeRun::IsAsGathered() const {
  for (const Recipe::PlaceWrite& write : recipe_.writes) {
    const Placed& here = placed_[At(write.place)];
    if (!context_.Owns(*here.storage) || here.storage->pending() ||
        here.storage->version() != here.version)
      return false;
  }
  return true;
}

// Takes the lock, with what places hold now: another thread may write to them meanwhile.
absl::Status RecipeRun::GatherAgain(std::optional<Context::Lock>& lock) {
  for (lock.emplace(context_); !IsAsGathered(); lock.emplace(context_)) {
    lock.reset();
    LAZULI_RETURN_IF_ERROR(TakeOverWritten());
    LAZULI_RETURN_IF_ERROR(Gather().status());
  }
  return absl::OkStatus();
}

void RecipeRun::FillInputs(Run& run) const {
  run.inputs.reserve(recipe_.inputs.size());
  for (const int32_t input : recipe_.inputs)
    run.inputs.push_back(input >= 0 ? placed_[At(input)].data : recipe_.constants[At(-1 - input)]);
}

void RecipeRun::FillScalars(Run& run) const {
  run.scalars.reserve(recipe_.scalars.size());
  for (const Scalar& scalar : recipe_.scalars) {
    switch (scalar.kind) {
      case Scalar::Kind::kConstant:
        run.scalars.push_back(scalar.cell);
        break;
      case Scalar::Kind::kPlace:
        run.scalars.push_back(placed_[At(scalar.index)].cell);
        break;
      case Scalar::Kind::kDraw: {
        const PhiloxState& state = drawn_[At(scalar.index)];
        const uint64_t word = scalar.part < 2 ? state.seed : state.offset;
        run.scalars.push_back(scalar.part % 2 == 0 ? word & 0xffffffffu : word >> 32);
        break;
      }
      case Scalar::Kind::kAction:
        run.scalars.push_back(numbers_[first_number_[At(scalar.index)] + At(scalar.part)]);
        break;
    }
  }
}

DataPtr RecipeRun::DataOf(const Content& content) const {
  switch (content.kind) {
    case Content::Kind::kOutput:
      return outputs_[At(content.index)];
    case Content::Kind::kPlace:
      return kept_[At(content.index)];
    case Content::Kind::kConstant:
      return recipe_.constants[At(content.index)];
    case Content::Kind::kNumber:
      break;
  }
  return nullptr;
}

void RecipeRun::TakeDonated(PooledVector<Value>& old) {
  for (const int32_t place : recipe_.donated) {
    Storage& storage = *placed_[At(place)].storage;
    if (!context_.Owns(storage)) continue;
    const auto nothing = MakeIntrusive<DataHandle>(storage.shape(), storage.device());
    old.push_back(
        context_.Write(storage, {MakeIntrusive<DataNode>(nothing, nullptr, ir::kNoSite), 0}));
    context_.Resolve(storage, TakenData(storage.shape(), storage.device()));
  }
}

// Under the lock.
void RecipeRun::Queue(Executor& executor, PooledVector<Value>& old) {
  Executor::Entry entry;
  Run& run = entry.emplace_back();
  run.program = recipe_.program;
  run.device = recipe_.device;
  run.context = IntrusivePtr<Context>(&context_);
  run.site = CurrentSite();
  run.asked = hlo::Peers::Clock::now();
  run.checks = recipe_.checks;
  run.nans = recipe_.nans;
  FillInputs(run);
  FillScalars(run);
  PooledVector<RootOfRun> roots;
  roots.reserve(recipe_.roots.size());
  for (const Recipe::ProgramRoot& root : recipe_.roots) {
    const DataHandle* replaced = nullptr;
    if (root.replaced >= 0) replaced = placed_[At(root.replaced)].data.get();
    if (root.replaced < -1) replaced = recipe_.constants[At(-2 - root.replaced)].get();
    roots.push_back({replaced, root.before, root.is_wanted, root.is_view});
  }
  CompleteRun(roots, [&](std::size_t o) -> const Shape& { return recipe_.roots[o].shape; }, run);
  outputs_ = run.outputs;
  for (const Recipe::PlaceWrite& write : recipe_.writes) {
    Storage& storage = *placed_[At(write.place)].storage;
    old.push_back(context_.Write(storage, {write.node, 0}));
    context_.Resolve(storage, DataOf(write.content));
  }
  TakeDonated(old);
  for (Placed& placed : placed_) placed.data = nullptr;  // what are left are owners
  const uint64_t number = executor.Submit(std::move(entry));
  Context::RunOn(recipe_.device, context_.last_runs) = number;
}

absl::Status RecipeRun::Submit() {
  PooledVector<Value> old;  // released after the lock
  old.reserve(recipe_.writes.size() + recipe_.donated.size());
  std::optional<Context::Lock> lock;
  // Without the lock: what runs may call a function that uses tensors of the context.
  Executor* const executor = recipe_.program != nullptr ? &Executor::Of(recipe_.device) : nullptr;
  if (executor != nullptr) executor->Admit();
  if (absl::Status gathered = GatherAgain(lock); !gathered.ok()) {
    if (executor != nullptr) executor->Dismiss();
    return gathered;
  }
  kept_.resize(placed_.size());
  const auto keep = [&](const Content& content) {
    if (content.kind == Content::Kind::kPlace)
      kept_[At(content.index)] = placed_[At(content.index)].data;
  };
  for (const Recipe::PlaceWrite& write : recipe_.writes) keep(write.content);
  for (const Recipe::NewStorage& made : recipe_.storages) keep(made.content);
  if (executor != nullptr) {
    Queue(*executor, old);
    context_.TakeOutcome();
  } else {
    for (const Recipe::PlaceWrite& write : recipe_.writes) {
      Storage& storage = *placed_[At(write.place)].storage;
      old.push_back(context_.Write(storage, {write.node, 0}));
      context_.Resolve(storage, DataOf(write.content));
    }
    TakeDonated(old);
  }
  return absl::OkStatus();
}

StoragePtr RecipeRun::MakeStorage(const Recipe::NewStorage& made) {
  if (made.content.kind == Content::Kind::kNumber) {
    const auto dtype = static_cast<DType>(made.content.index);
    const Value number{MakeIntrusive<ScalarNode>(dtype, made.content.cell, CurrentSite()), 0};
    return context_.NewStorage(number, recipe_.device);
  }
  DataPtr data = DataOf(made.content);
  if (!made.is_view) return context_.NewStorage(std::move(data));
  const StoragePtr base =
      made.base >= 0 ? StoragePtr(placed_[At(made.base)].storage) : storages_[At(-1 - made.base)];
  const Context::Lock lock(context_);
  const Value elements{MakeIntrusive<DataNode>(data, nullptr, CurrentSite()), 0};
  StoragePtr view = context_.NewPending(elements, data->device(),
                                        make_view_(Tensor(base), made.strides, made.offset));
  context_.Resolve(*view, std::move(data));
  return view;
}

Tensor RecipeRun::TensorOf(const TensorRef& ref) const {
  if (ref.kind == TensorRef::Kind::kArgument) return arguments_[At(ref.index)];
  if (ref.kind == TensorRef::Kind::kNew) return tensors_[At(ref.index)];
  return {};
}

void RecipeRun::MakeResults(Tensors& results) {
  for (const Recipe::NewStorage& made : recipe_.storages) storages_.push_back(MakeStorage(made));
  for (const Recipe::NewTensor& made : recipe_.tensors) {
    StoragePtr storage = made.storage >= 0 ? StoragePtr(placed_[At(made.storage)].storage)
                                           : storages_[At(-1 - made.storage)];
    const Tensor base = TensorOf(made.base);
    tensors_.push_back(base.defined() ? Tensor(MakeIntrusive<TensorImpl>(
                                            std::move(storage), base.ptr(), made.view_kind))
                                      : Tensor(std::move(storage)));
  }
  for (const Recipe::Gradient& gradient : recipe_.gradients)
    OwnerAt(gradient.owner).mutable_autograd().grad = TensorOf(gradient.to);
  for (const TensorRef& result : recipe_.results) results.push_back(TensorOf(result));
  if (thrown_) std::rethrow_exception(thrown_);
}

}  // namespace

absl::StatusOr<std::string> RunRecipe(const Recipe& recipe, absl::Span<const Tensor> arguments,
                                      ViewMaker make_view, Tensors& results) {
  const SiteSpan span(ir::SpanKind::kSync, "replay");
  RecipeRun run(recipe, arguments, make_view);
  LAZULI_ASSIGN_OR_RETURN(std::string why, run.Prepare());
  if (!why.empty()) return why;
  LAZULI_RETURN_IF_ERROR(run.ActOnHost());
  LAZULI_RETURN_IF_ERROR(run.Submit());
  run.MakeResults(results);
  return "";
}

}  // namespace lazuli::lazy
