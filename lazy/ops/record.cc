#include "lazy/ops/record.h"

#include <typeinfo>
#include <utility>

#include "ir/support/hash.h"
#include "ir/support/metrics.h"
#include "ir/support/thread_local.h"
#include "lazy/ops/op.h"

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

// The op and its line, for History.
uint32_t WhatIs(const Node& node) {
  return static_cast<uint32_t>(
      Mix(reinterpret_cast<uintptr_t>(&typeid(node)), static_cast<uint64_t>(node.site())));
}

}  // namespace

void ThrowRecordError(std::string_view op, const absl::Status& status) {
  throw StatusError(Prefixed(status, Str(op, ": ")));
}

Recorder::Recorder(std::string_view op, absl::Span<const Operand> in, backend::Device device)
    : context_(Context::Current()), device_(device) {
  CheckOperands(op, in, device_);
  for (const Operand& x : in) {
    if (x.tensor() != nullptr) context_.Adopt(x.tensor()->storage());
  }
  lock_.emplace(context_);
  for (const Operand& x : in) {
    // Not a conditional expression: its type would be const, and a value copied once more.
    if (x.tensor() != nullptr)
      values_.push_back(context_.ValueOf(x.tensor()->storage(), CurrentSite()));
    else
      values_.push_back(x.number());
  }
}

Tensor Recorder::Finish(NodePtr node) {
  context_.counters().Add(Counter::kNodesRecorded);
  const uint32_t what = WhatIs(*node);
  StoragePtr storage = context_.NewPending({std::move(node), 0}, device_);
  context_.history.Add(what, context_.pending_count());
  is_long_ = context_.history.due();
  lock_.reset();
  return Tensor(std::move(storage));
}

void Recorder::Finish(const NodePtr& node, Tensors& results) { Finish(node, {}, results); }

void Recorder::Finish(const NodePtr& node, absl::Span<const Tensor> targets, Tensors& results) {
  Writes writes;
  StoragePtr storage;
  struct Unlock {  // before anything that was made for a node that does not come to be is released
    std::optional<Context::Lock>& lock;
    ~Unlock() { lock.reset(); }
  } const unlock{lock_};
  const auto count = static_cast<uint32_t>(targets.size());
  results.reserve(node->num_outputs() - count);
  for (uint32_t i = count; i < node->num_outputs(); ++i) {
    storage = context_.NewPending({node, i}, device_);
    results.emplace_back(storage);
  }
  if (Writes* deferred = DeferredWrites::Current()) {
    deferred->Add(node, targets);
  } else {
    writes.Add(node, targets);
    writes.Apply(context_);
  }
  context_.counters().Add(Counter::kNodesRecorded);
  context_.history.Add(WhatIs(*node), context_.pending_count());
  is_long_ = context_.history.due();
}

void Recorder::SyncLongGraph() {
  if (DeferredWrites::Current() != nullptr) return;
  {
    const Context::Lock lock(context_);
    if (!context_.history.CutHere()) return;
  }
  Add(Counter::kSyncForLimit);
  ThrowIfError(GetEngine().Sync(context_, /*wait=*/false, SyncReason::kGraphLimit));
}

void Writes::Add(const NodePtr& node, absl::Span<const Tensor> targets) {
  writes_.reserve(writes_.size() + targets.size());
  for (uint32_t i = 0; i < targets.size(); ++i)
    writes_.push_back({targets[i].impl()->storage(), {node, i}});
}

void Writes::Apply(Context& context) noexcept {
  for (Write& write : writes_) write.value = context.Write(*write.target, std::move(write.value));
}

namespace {
LAZULI_FAST_THREAD_LOCAL Writes* deferred_writes = nullptr;
}  // namespace

DeferredWrites::DeferredWrites() : outer_(std::exchange(deferred_writes, &writes_)) {}
DeferredWrites::~DeferredWrites() { deferred_writes = outer_; }
Writes* DeferredWrites::Current() { return deferred_writes; }

void DeferredWrites::Commit() noexcept {
  Context& context = Context::Current();
  const Context::Lock lock(context);
  writes_.Apply(context);
}

bool WantsGrad(absl::Span<const Operand> in) {
  if (!GradEnabled()) return false;
  for (const Operand& x : in) {
    if (x.tensor() != nullptr && x.tensor()->impl()->autograd() != nullptr &&
        x.tensor()->requires_grad())
      return true;
  }
  return false;
}

void RefuseGrad(std::string_view op, absl::Span<const Operand> in, const Shape& result) {
  if (IsFloat(result.dtype()) && WantsGrad(in)) [[unlikely]] {
    ThrowRecordError(
        op,
        Unimplemented("has no gradient, and an operand requires one; detach() it or use NoGrad"));
  }
}

void AttachGrad(const IntrusivePtr<GradNode>& node, absl::Span<Tensor> results) {
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!IsFloat(results[i].dtype())) continue;
    AutogradMeta& meta = results[i].impl()->mutable_autograd();
    meta.grad_fn = node;
    meta.output = static_cast<uint32_t>(i);
  }
}

void CheckAssignable(std::string_view op, const Tensor& target) {
  const AutogradMeta* meta = target.impl()->autograd();
  if (GradEnabled() && meta != nullptr && meta->requires_grad) {
    ThrowRecordError(
        op, FailedPrecondition(
                "a leaf tensor that requires a gradient is changed in place; do it under NoGrad"));
  }
}

void AdoptForWrite(absl::Span<const Operand> in, absl::Span<const Tensor> targets) {
  Context& context = Context::Current();
  for (const Operand& x : in) {
    if (x.tensor() != nullptr) context.Adopt(x.tensor()->storage());
  }
  for (const Tensor& target : targets) context.AdoptForWrite(target.storage());
}

void CheckFits(std::string_view op, const Tensor& target, const Shape& result) {
  if (target.shape() == result) return;
  ThrowRecordError(op, InvalidArgument("the result ", result, " does not fit the tensor ",
                                       target.shape(), ", which is changed in place"));
}

void Assign(std::string_view op, const Tensor& target, const Tensor& value) {
  CheckFits(op, target, value.shape());
  CheckAssignable(op, target);
  AutogradMeta* meta = target.impl()->autograd();
  Context& context = Context::Current();
  context.Adopt(value.storage());
  context.AdoptForWrite(target.storage());
  Value old;  // released after the lock
  {
    Context::Lock lock(context);
    Value now = context.ValueOf(value.storage(), CurrentSite());
    old = context.Write(target.storage(), std::move(now));
  }
  if (GradEnabled() && value.impl()->autograd() != nullptr && value.impl()->autograd()->grad_fn) {
    AutogradMeta& history = target.impl()->mutable_autograd();
    history.grad_fn = value.impl()->autograd()->grad_fn;
    history.output = value.impl()->autograd()->output;
  } else if (meta != nullptr && GradEnabled()) {
    meta->grad_fn = {};
  }
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
