#include "lazy/ops/core/record.h"

#include <algorithm>
#include <array>
#include <typeinfo>
#include <utility>

#include "ir/support/error_place.h"
#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "ir/support/span.h"
#include "ir/support/thread_local.h"
#include "ir/support/wrong_type.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"
#include "lazy/tensor/context.h"
#include "lazy/tensor/function_scope.h"
#include "lazy/tensor/outside.h"
#include "lazy/tensor/watch.h"

namespace lazuli::lazy {
namespace {

void CheckOperands(std::string_view op, absl::Span<const Operand> in, backend::Device& device) {
  for (std::size_t i = 0; i < in.size(); ++i) {
    const Tensor* tensor = in[i].tensor();
    if (tensor == nullptr) continue;
    if (!tensor->defined()) [[unlikely]] {
      ThrowRecordError(op, InvalidArgument("operand ", i, " is an undefined tensor"));
    }
    const backend::Device here = tensor->device();
    if (device.client == nullptr) device = here;
    if (!(device == here)) [[unlikely]] {
      ThrowRecordError(op, InvalidArgument("operands are on different devices: ", device.ToString(),
                                           " and ", here.ToString(), "; move one with to()"));
    }
  }
}

void TouchAll(Watch& watch, absl::Span<const Operand> in) {
  for (const Operand& x : in) {
    if (x.tensor() != nullptr) watch.Touch(*x.tensor());
  }
}

// Without soft placement, what the device lacks is an error of the call that records it.
void CheckPlacement(const Node& node, backend::Device device) {
  if (flags().soft_placement()) [[likely]]
    return;
  const absl::Status status = GetEngine().CheckPlacement(node, device);
  if (!status.ok()) ThrowRecordError(node.name(), status);
}

void CountNode(Context& context) {
  context.counters().Add(Counter::kNodesRecorded);
  ir::NoteRecorded();
}

// The op and its line, for History.
uint32_t WhatIs(const Node& node) {
  constexpr uint32_t kSpread = 0x9e3779b1;  // lines count from 0, ops lie near each other
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(&typeid(node))) +
         kSpread * static_cast<uint32_t>(node.site());
}

// The elements of `value` become those of `target`; unless there is a version and target's is
// another.
bool Replace(Storage& target, Storage& value, std::optional<uint64_t> version) {
  Context& context = Context::Current();
  if (Watch* const watch = Watch::Current()) [[unlikely]] {
    watch->Touch(target);
    watch->Touch(value);
  }
  Storage& written = target.written();
  if (context.Owns(written) && context.Owns(value)) [[likely]] {
    Value now;  // and then the old one, which is released after the lock
    const Context::Lock lock(context);
    if (context.Owns(written)) now = context.ValueOf(value, CurrentSite());
    if (now) {
      if (version && target.version() != *version) return false;
      now = context.Write(target, std::move(now));
      return true;
    }
  }
  Storage* const storages[] = {&value};
  Context::Movers movers;
  while (true) {
    Value now;
    std::optional<Context::Lock> lock;
    context.LockWithValues(lock, storages, CurrentSite(), absl::MakeSpan(&now, 1));
    if (context.Owns(written)) {
      if (version && target.version() != *version) return false;
      now = context.Write(target, std::move(now));
      lock.reset();
      return true;
    }
    lock.reset();
    if (!movers) movers = Context::LockMovers();
    if (&written != &target)
      context.TakeOver(written, movers);  // a view leaves elements as they are
    else if (!context.TakeOverToOverwrite(target, version, movers))
      return false;
  }
}

// Of elements that were written over, whose gradient is 0, and of what was written, which is given
// on as it is. Either may have no history.
class AssignedGradNode final : public GradNode {
 public:
  AssignedGradNode(Edge value, Edge old, const Shape& shape)
      : GradNode(CurrentSite()), shape_(shape), passes_(value) {
    if (value) edges_.push_back(std::move(value));
    if (old) edges_.push_back(std::move(old));
  }
  std::string_view name() const override { return "copy_"; }
  Tensors Backward(absl::Span<const Tensor> dys) override {
    Tensors grads(edges_.size());
    if (passes_)
      grads[0] = dys[0];
    else if (dys[0].defined())
      grads[0] = FullConstant(shape_, 0, dys[0].device());
    return grads;
  }
  void ReleaseSaved() override {}  // nothing: it may run again

 private:
  Shape shape_;
  bool passes_;
};

void SetHistory(TensorImpl& impl, IntrusivePtr<GradNode> node, uint32_t output) {
  impl.HistoryIsCurrent();
  impl.mutable_autograd().SetHistory(std::move(node), output);
}

// The target's history after it took value's elements, which are made of what it was unless it
// `overwrites` that.
void SetHistoryOf(TensorImpl& target, const Tensor& value, bool overwrites) {
  const Shape& shape = value.shape();
  Edge edge = GradEdge(value), old;
  if (overwrites || !edge) old = GradEdge(Tensor(IntrusivePtr<TensorImpl>(&target)));
  if (edge && edge.node && !old)
    SetHistory(target, std::move(edge.node), edge.index);
  else if (edge || old)
    SetHistory(target, MakeIntrusive<AssignedGradNode>(std::move(edge), std::move(old), shape), 0);
}

// The base of a view that gets a history, or has one, when `value` is written through the view.
TensorImpl* BaseWithHistory(const Tensor& target, const Tensor& value) {
  TensorImpl* const base = target.impl()->base();
  if (base == nullptr || !HasGradient(target.dtype())) return nullptr;
  const Tensor whole{IntrusivePtr<TensorImpl>(base)};
  const std::array<Operand, 2> in{Operand(value), Operand(whole)};
  return WantsGrad(in) ? base : nullptr;
}

// Throws if a trace that may not write to tensors from outside would write to `target`.
void CheckMayWrite(std::string_view op, const Tensor& target) {
  const Context& context = Context::Current();
  const Outside* const outside = Outside::Of(context);
  if (outside == nullptr) [[likely]]
    return;
  if (outside->may_write() || context.Owns(target.storage().written())) return;
  ThrowRecordError(op, FailedPrecondition("a tensor from outside of the function, ", target.shape(),
                                          ", is changed in place; return its new elements"));
}

}  // namespace

Tensor ViewOf(const Tensor& x, StoragePtr storage, bool one_of_several) {
  const TensorImpl& impl = *x.impl();
  const bool nested = impl.base() != nullptr;
  TensorImpl::ViewKind kind =
      GradEnabled() ? TensorImpl::ViewKind::kPlain : TensorImpl::ViewKind::kWithoutGrad;
  if (one_of_several) kind = TensorImpl::ViewKind::kOneOfSeveral;
  if (nested && kind == TensorImpl::ViewKind::kPlain) kind = impl.view_kind();
  return Tensor(
      MakeIntrusive<TensorImpl>(std::move(storage), nested ? impl.base_ptr() : x.ptr(), kind));
}

void ThrowRecordError(std::string_view op, const absl::Status& status) {
  throw StatusError(ir::AddPlace(status, op, ""));
}

Recorder::Recorder(absl::Span<const Operand> in, backend::Device device, std::string_view op)
    : context_(Context::Current()), device_(device) {
  CheckOperands(op, in, device_);
  values_.reserve(in.size());
  if (Watch* const watch = Watch::Current()) [[unlikely]]
    TouchAll(*watch, in);
  const SiteId site = CurrentSite();
  lock_.emplace(context_);
  for (const Operand& x : in) {
    // Not a conditional expression: its type would be const, and a value copied once more.
    if (x.tensor() == nullptr) {
      values_.push_back(x.number());
      continue;
    }
    values_.push_back(context_.ValueOf(x.tensor()->storage(), site));
    if (!values_.back()) [[unlikely]] {
      LockForeign(in);
      return;
    }
  }
}

Recorder::Recorder(absl::Span<const Operand> in, absl::Span<const Tensor> targets,
                   Context::Movers& movers, std::string_view op)
    : Recorder(in, {}, op) {
  const auto is_here = [&](const Tensor& target) {
    return context_.Owns(target.storage().written());
  };
  if (std::all_of(targets.begin(), targets.end(), is_here)) return;
  lock_.reset();
  for (const Tensor& target : targets) CheckMayWrite(op, target);
  movers = Context::LockMovers();
  for (const Tensor& target : targets) context_.TakeOver(target.storage().written(), movers);
  LockForeign(in);
}

void Recorder::LockForeign(absl::Span<const Operand> in) {
  lock_.reset();
  values_.clear();
  values_.resize(in.size());
  absl::InlinedVector<Storage*, 4> storages;
  absl::InlinedVector<const Tensor*, 4> tensors;
  for (const Operand& x : in) {
    tensors.push_back(x.tensor());
    storages.push_back(x.tensor() != nullptr ? &x.tensor()->storage() : nullptr);
  }
  const Outside::Operands operands(Outside::Of(context_), tensors);
  context_.LockWithValues(lock_, storages, CurrentSite(), values());
  for (std::size_t i = 0; i < in.size(); ++i) {
    if (in[i].tensor() == nullptr) values_[i] = in[i].number();
  }
}

Tensor Recorder::Finish(NodePtr node) { return Tensor(FinishStorage(std::move(node), nullptr)); }
Tensor Recorder::Finish(NodePtr node, NewView view) {
  return ViewOf(*view.base, FinishStorage(std::move(node), std::move(view.view)),
                view.one_of_several);
}

StoragePtr Recorder::FinishStorage(NodePtr node, std::unique_ptr<View> view) {
  CheckPlacement(*node, device_);
  CountNode(context_);
  const uint32_t what = WhatIs(*node) + (view != nullptr ? view->place() : 0);
  const Node* const recorded = node.get();
  StoragePtr storage = view == nullptr
                           ? context_.NewPending({std::move(node), 0}, device_)
                           : context_.NewPending({std::move(node), 0}, device_, std::move(view));
  if (checks_) [[unlikely]]
    AddChecked(*recorded);
  context_.history.Add(what, context_.pending_count());
  is_long_ = context_.history.due();
  lock_.reset();
  return storage;
}

void Recorder::FinishOver(NodePtr node, const Tensor& target) {
  CheckPlacement(*node, device_);
  CountNode(context_);
  const uint32_t what = WhatIs(*node);
  if (checks_) [[unlikely]]
    AddChecked(*node);
  if (Watch* const watch = Watch::Current()) [[unlikely]]
    watch->TouchLocked(target.storage());
  const Value old = context_.Write(target.storage(), {std::move(node), 0});
  context_.history.Add(what, context_.pending_count());
  is_long_ = context_.history.due();
  lock_.reset();  // before the old value is released
}

void Recorder::Finish(const NodePtr& node, Tensors& results) { Finish(node, {}, results); }

void Recorder::Finish(const NodePtr& node, absl::Span<const Tensor> targets, Tensors& results) {
  CheckPlacement(*node, device_);
  StoragePtr storage;
  const auto count = static_cast<uint32_t>(targets.size());
  PooledVector<Value> old;  // released after the lock
  old.reserve(count);
  results.reserve(node->num_outputs() - count);
  for (uint32_t i = count; i < node->num_outputs(); ++i) {
    storage = context_.NewPending({node, i}, device_);
    results.emplace_back(storage);
  }
  if (Writes* deferred = DeferredWrites::Current()) {
    deferred->Add(node, targets);
  } else {
    node->Retain(count);  // at once: an atomic addition each would be much of an optimiser's step
    for (uint32_t i = 0; i < count; ++i)
      old.push_back(context_.Write(targets[i].storage(), {NodePtr::Adopt(node.get()), i}));
  }
  CountNode(context_);
  context_.history.Add(WhatIs(*node), context_.pending_count());
  is_long_ = context_.history.due();
  if (acts_) AddChecked(*node, /*is_effect=*/true);
  if (checks_) AddChecked(*node);
  lock_.reset();
}

void Recorder::AddChecked(const Node& node, bool is_effect) {
  context_.AddChecked({.node = NodePtr(const_cast<Node*>(&node)),
                       .device = device_,
                       .function = CurrentFunction(),
                       .is_effect = is_effect});
}

void Recorder::SyncLongGraph() {
  if (DeferredWrites::Current() != nullptr || Watch::Current() != nullptr) return;
  {
    const Context::Lock lock(context_);
    if (!context_.history.CutHere()) return;
  }
  Add(Counter::kSyncForLimit);
  ThrowIfError(GetEngine().Sync(context_, /*wait=*/false, SyncReason::kGraphLimit));
}

void Writes::Add(const NodePtr& node, absl::Span<const Tensor> targets) {
  writes_.reserve(writes_.size() + targets.size());
  node->Retain(static_cast<uint32_t>(targets.size()));
  for (uint32_t i = 0; i < targets.size(); ++i)
    writes_.push_back({targets[i].impl()->storage(), {NodePtr::Adopt(node.get()), i}});
}

void Writes::Apply(Context& context) noexcept {
  for (Write& write : writes_) write.value = context.Write(*write.target, std::move(write.value));
}

void Writes::Lock(Context& context, std::optional<Context::Lock>& lock,
                  Context::Movers& movers) const {
  const auto has_all = [&] {
    return std::all_of(writes_.begin(), writes_.end(),
                       [&](const Write& write) { return context.Owns(write.target->written()); });
  };
  lock.emplace(context);
  if (has_all()) return;
  lock.reset();
  movers = Context::LockMovers();
  for (const Write& write : writes_) {
    if (write.target->view() != nullptr) context.TakeOver(write.target->written(), movers);
  }
  for (const Write& write : writes_) {
    if (write.target->view() == nullptr) context.TakeOverToOverwrite(*write.target, {}, movers);
  }
  lock.emplace(context);
}

namespace {
LAZULI_FAST_THREAD_LOCAL Writes* deferred_writes = nullptr;
}  // namespace

DeferredWrites::DeferredWrites() : outer_(std::exchange(deferred_writes, &writes_)) {}
DeferredWrites::~DeferredWrites() { deferred_writes = outer_; }
Writes* DeferredWrites::Current() { return deferred_writes; }

void DeferredWrites::Commit() {
  Context& context = Context::Current();
  Context::Movers movers;
  std::optional<Context::Lock> lock;
  writes_.Lock(context, lock, movers);
  writes_.Apply(context);
}

bool WantsGrad(absl::Span<const Operand> in) {
  if (!GradEnabled()) return false;
  bool wanted = false;
  for (const Operand& x : in) {
    if (x.tensor() == nullptr || !x.tensor()->defined()) continue;
    // The history of a stale view is recorded here, before that of who uses it.
    const AutogradMeta* meta = x.tensor()->impl()->autograd();
    wanted = wanted || (meta != nullptr && (meta->requires_grad || meta->grad_fn));
  }
  return wanted;
}

uint64_t VersionsOf(absl::Span<const Operand> in) {
  uint64_t sum = 0;
  for (const Operand& x : in) {
    if (x.tensor() == nullptr || !x.tensor()->defined()) continue;
    Storage& storage = x.tensor()->storage();
    // What the user wrote to lent memory is a version of its own, which recording would find.
    if (LentMemory::exists.load(std::memory_order_relaxed)) [[unlikely]]
      Context::Peek(storage);
    sum += storage.version();
  }
  return sum;
}

void RefuseGrad(std::string_view op, absl::Span<const Operand> in, const Shape& result) {
  if ((IsFloat(result.dtype()) || IsComplex(result.dtype())) && WantsGrad(in)) [[unlikely]] {
    ThrowRecordError(
        op,
        Unimplemented("has no gradient, and an operand requires one; detach() it or use NoGrad"));
  }
}

void AttachGrad(const IntrusivePtr<GradNode>& node, absl::Span<Tensor> results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!IsFloat(results[i].dtype()) && !IsComplex(results[i].dtype())) continue;
    AutogradMeta& meta = results[i].impl()->mutable_autograd();
    meta.grad_fn = node;
    meta.output = static_cast<uint32_t>(i);
  }
}

void CheckNoLeaf(std::string_view op, const Tensor& target) {
  const AutogradMeta* meta = target.impl()->autograd();
  if (GradEnabled() && meta != nullptr && meta->requires_grad && !meta->grad_fn) {
    ThrowRecordError(
        op, FailedPrecondition(
                "a leaf tensor that requires a gradient is changed in place; do it under NoGrad"));
  }
}

void CheckFollows(std::string_view op, const Tensor& target) {
  try {
    target.impl()->CheckFollows(/*itself=*/true);
  } catch (const StatusError& error) {
    ThrowRecordError(op, error.status());
  }
}

void BecomeView(std::string_view op, const Tensor& x, const Tensor& view) {
  if (GradEnabled() && x.impl()->base() != nullptr && x.requires_grad()) CheckFollows(op, x);
  const Edge history = GradEdge(view);
  if (Watch* const watch = Watch::Current()) [[unlikely]]
    watch->NoteChange(*x.impl(), "the dims");
  x.impl()->BecomeView(view.impl()->storage());
  if (history) SetHistory(*x.impl(), history.node, history.index);
}

void CheckAssignable(std::string_view op, const Tensor& target) {
  CheckMayWrite(op, target);
  if (target.storage().view() != nullptr && target.storage().view()->IsExpanded(target.shape())) {
    ThrowRecordError(op, FailedPrecondition(target.shape(),
                                            " is expanded: several of its elements are one place "
                                            "in memory, which is changed in place; clone() it"));
  }
  if (!GradEnabled()) return;
  CheckNoLeaf(op, target);
  const TensorImpl* const base = target.impl()->base();
  // Also one of a leaf that is itself a view, of what requires none.
  const bool has_history =
      base != nullptr && base->autograd() != nullptr && base->autograd()->grad_fn;
  if (base != nullptr && target.requires_grad() && !has_history) {
    ThrowRecordError(op, FailedPrecondition("a view of a leaf tensor that requires a gradient is "
                                            "changed in place; do it under NoGrad"));
  }
}

void CheckFits(std::string_view op, const Tensor& target, const Shape& result) {
  if (target.shape() == result) return;
  ThrowRecordError(op, InvalidArgument("the result ", result, " does not fit the tensor ",
                                       target.shape(), ", which is changed in place"));
}

bool Assign(std::string_view op, const Tensor& target, const Tensor& value,
            std::optional<uint64_t> version) {
  CheckFits(op, target, value.shape());
  CheckAssignable(op, target);
  TensorImpl* const base = BaseWithHistory(target, value);
  IntrusivePtr<GradNode> history;  // of the base
  if (base != nullptr) [[unlikely]] {
    CheckFollows(op, target);
    history =
        target.storage().view()->WrittenHistory(Tensor(IntrusivePtr<TensorImpl>(base)), value);
  }
  if (!Replace(target.storage(), value.storage(), version)) return false;
  if (!GradEnabled() || !HasGradient(target.dtype())) return true;
  if (base == nullptr) {
    SetHistoryOf(*target.impl(), value, /*overwrites=*/!version);
    return true;
  }
  SetHistory(*base, std::move(history), 0);
  // What has no history of its own takes the base's when it is asked for.
  if (Edge edge = GradEdge(value); edge && !target.storage().view()->IsExpanded(target.shape()))
    SetHistoryOf(*target.impl(), value, /*overwrites=*/false);
  return true;
}

std::string AttrValueText(int64_t v) { return Str(v); }
std::string AttrValueText(double v) { return Str(v); }
std::string AttrValueText(DType v) { return std::string(DTypeText(v)); }
std::string AttrValueText(absl::Span<const int64_t> v) { return Str("(", Join(v, ", "), ")"); }
std::string AttrValueText(std::string_view v) { return std::string(v); }

ShapeScratch& ShapeScratch::Cleared() {
  ShapeScratch& scratch = ir::PerThread<ShapeScratch>::Get();
  scratch.builder.Reset();
  scratch.results.clear();
  return scratch;
}

}  // namespace lazuli::lazy
