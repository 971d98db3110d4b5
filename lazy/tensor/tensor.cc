#include "lazy/tensor/tensor.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "ir/support/thread_local.h"
#include "lazy/tensor/journal.h"
#include "lazy/tensor/outside.h"
#include "lazy/tensor/site_scope.h"
#include "lazy/tensor/status_error.h"
#include "lazy/tensor/tape.h"
#include "lazy/tensor/watch.h"

namespace lazuli::lazy {
namespace {

// All begin at 0: a block with one that does not is 8 bytes longer.
LAZULI_FAST_THREAD_LOCAL bool grad_disabled = false;
LAZULI_FAST_THREAD_LOCAL bool inference_mode = false;
LAZULI_FAST_THREAD_LOCAL const PackHook* pack_hook = nullptr;
std::atomic<uint64_t> next_sequence{1};
LAZULI_FAST_THREAD_LOCAL bool ends_history = false;
LAZULI_FAST_THREAD_LOCAL bool draining = false;
LAZULI_FAST_THREAD_LOCAL const GradNode* dead = nullptr;

// The version of what an op records that uses the storage now: what the user wrote to lent memory
// is part of it.
uint64_t VersionSeen(Storage& storage) {
  if (LentMemory::exists.load(std::memory_order_relaxed)) [[unlikely]]
    Context::Peek(storage);
  return storage.version();
}

}  // namespace

TensorImpl::TensorImpl(StoragePtr storage)
    : is_inference_(inference_mode), storage_(std::move(storage)) {}
TensorImpl::TensorImpl(StoragePtr storage, IntrusivePtr<TensorImpl> base, ViewKind kind)
    : is_inference_(inference_mode),
      storage_(std::move(storage)),
      base_(std::move(base)),
      version_(storage_->version()),
      kind_(kind) {}
void TensorImpl::set_storage(StoragePtr storage) {
  NoteStorage(*this);
  storage_ = std::move(storage);
  base_ = nullptr;
}
TensorImpl::~TensorImpl() = default;

AutogradMeta& TensorImpl::mutable_autograd() {
  if (base_) FollowBase();
  if (!autograd_) autograd_ = std::make_unique<AutogradMeta>();
  return *autograd_;
}

bool TensorImpl::IsBehindBase() const {
  const AutogradMeta* base = base_->autograd_.get();
  return base != nullptr && (base->requires_grad || base->grad_fn) &&
         version_ != storage_->version() && HasGradient(storage_->shape().dtype());
}

void TensorImpl::CheckFollows(bool itself) const {
  const std::string_view what =
      itself ? "is changed" : "or another view of what it is a view of was changed";
  switch (kind_) {
    case ViewKind::kPlain:
      return;
    case ViewKind::kWithoutGrad:
      throw StatusError(
          FailedPrecondition("a view that was made under NoGrad ", what,
                             " in place with gradients; do both under NoGrad, or neither"));
    case ViewKind::kOneOfSeveral:
      throw StatusError(FailedPrecondition(
          "one of the views that split(), chunk() or unbind() gave ", what,
          " in place with gradients; use an op that is not in place, or narrow() and select()"));
  }
}

void TensorImpl::FollowBase() const {
  if (!IsBehindBase()) return;
  CheckFollows(/*itself=*/false);
  version_ = storage_->version();
  const IntrusivePtr<TensorImpl> self(const_cast<TensorImpl*>(this));  // for the length of the call
  if (!autograd_) autograd_ = std::make_unique<AutogradMeta>();
  autograd_->SetHistory(storage_->view()->ReadHistory(Tensor(base_), Tensor(self)), 0);
}

bool Tensor::requires_grad() const {
  if (impl_->base() != nullptr && impl_->IsBehindBase()) return true;
  const AutogradMeta* meta = impl_->autograd();
  return meta != nullptr && (meta->requires_grad || meta->grad_fn);
}

Tensor FromLiteral(const Literal& literal, backend::Device device) {
  // The literal's memory lives as long as the buffer: copying a Literal shares it.
  auto keep = std::make_shared<Literal>(literal);
  backend::HostView view{literal.raw(), &literal.shape()};
  auto buffer = ValueOrThrow(device.client->FromHost(view, [keep] {}, device));
  return Tensor(Context::Current().NewStorage(MakeIntrusive<DataHandle>(std::move(buffer))));
}

Literal ToLiteral(const Tensor& tensor) {
  return ValueOrThrow(GetEngine().Read(Context::ForReading(), tensor.storage()));
}

backend::BufferPtr ToBuffer(const Tensor& tensor) {
  return ValueOrThrow(GetEngine().ReadBuffer(Context::ForReading(), tensor.storage()));
}

Tensor Detach(const Tensor& tensor) {
  Tensor alias(tensor.impl()->storage());
  if (Watch* const watch = Watch::Current()) [[unlikely]]
    watch->NoteAlias(*alias.impl());
  return alias;
}

bool InferenceMode() { return inference_mode; }
bool SetInferenceMode(bool enabled) { return std::exchange(inference_mode, enabled); }

bool GradEnabled() { return !grad_disabled; }
bool SetGradEnabled(bool enabled) { return !std::exchange(grad_disabled, !enabled); }
GradModeGuard::GradModeGuard(bool enabled) : saved_(SetGradEnabled(enabled)) {}
GradModeGuard::~GradModeGuard() { grad_disabled = !saved_; }

GradNode::GradNode(SiteId site)
    : site_(site),
      sequence_(ends_history ? 0 : next_sequence.fetch_add(1, std::memory_order_relaxed)) {}

void GradNode::DestroyGraph() const {
  if (draining) {
    next_dead_ = std::exchange(dead, this);
    return;
  }
  draining = true;
  delete this;  // NOLINT: counted
  while (dead != nullptr) {
    const GradNode* next = std::exchange(dead, dead->next_dead_);
    delete next;  // NOLINT: counted
  }
  draining = false;
}

namespace {

class OutsideNode final : public GradNode {
 public:
  OutsideNode(Edge outside, SiteId site) : GradNode(site) { edges_.push_back(std::move(outside)); }
  std::string_view name() const override { return "outside"; }
  Tensors Backward(absl::Span<const Tensor>) override {
    throw StatusError(FailedPrecondition(
        "backward: a gradient inside of a traced function reaches what was computed outside of it; "
        "ask for the gradients of tensors (grad)"));
  }
  void ReleaseSaved() override {}
};

}  // namespace

// Before all others, as what it stands for: backward gets to it last.
IntrusivePtr<GradNode> EndOfHistory(Edge outside, SiteId site) {
  ends_history = true;
  IntrusivePtr<GradNode> end = MakeIntrusive<OutsideNode>(std::move(outside), site);
  ends_history = false;
  return end;
}

const Edge& BeyondEnds(const Edge& edge) {
  const Edge* beyond = &edge;
  while (beyond->node && beyond->node->sequence() == 0) beyond = beyond->node->edges().data();
  return *beyond;
}

Edge GradEdge(const Tensor& tensor) {
  const AutogradMeta* meta = tensor.impl()->autograd();
  if (meta == nullptr) return {};
  if (meta->grad_fn) {
    Edge edge{meta->grad_fn, nullptr, meta->output};
    const Context& context = Context::ForReading();
    Outside* const outside = Outside::Of(context);
    if (outside == nullptr || context.Owns(tensor.storage())) [[likely]]
      return edge;
    return outside->EdgeOf(tensor, std::move(edge));
  }
  if (meta->requires_grad) return {nullptr, tensor.ptr(), 0};
  return {};
}

Tensor Snapshot(const Tensor& tensor) {
  Tensor copy(Context::Current().Snapshot(tensor.storage()));
  if (const AutogradMeta* meta = tensor.impl()->autograd(); meta != nullptr && meta->grad_fn) {
    AutogradMeta& history = copy.impl()->mutable_autograd();
    history.grad_fn = meta->grad_fn;
    history.output = meta->output;
  }
  return copy;
}

namespace {

uint64_t NextHook() {
  static std::atomic<uint64_t> next_id{1};
  return next_id.fetch_add(1, std::memory_order_relaxed);
}
HookHandle Add(std::shared_ptr<GradHooks>& hooks, GradHook hook) {
  if (!hooks) hooks = std::make_shared<GradHooks>();
  const uint64_t id = hook.id;
  hooks->push_back(std::move(hook));
  return {hooks, id};
}

}  // namespace

void AutogradMeta::SetHistory(IntrusivePtr<GradNode> node, uint32_t output_of_node) {
  if (retains_grad && grad_fn && grad_fn != node && grad_fn->hooks) {
    GradHooks& hooks = *grad_fn->hooks;
    const auto keeper = std::find_if(hooks.begin(), hooks.end(), [&](const GradHook& hook) {
      return hook.when == GradHook::When::kKeep && hook.output == output;
    });
    if (keeper != hooks.end()) {
      keeper->output = output_of_node;
      Add(node->hooks, std::move(*keeper));
      hooks.erase(keeper);
    }
  }
  grad_fn = std::move(node);
  output = output_of_node;
}

HookHandle AddHook(const Tensor& tensor, GradHook::OfTensor hook, GradHook::When when) {
  const bool accumulated = when == GradHook::When::kAccumulated;
  const char* name = accumulated ? "register_post_accumulate_grad_hook: " : "register_hook: ";
  if (!tensor.requires_grad()) {
    throw StatusError(
        FailedPrecondition(name, tensor.shape(), " requires no gradient, so there is none to see"));
  }
  AutogradMeta& meta = tensor.impl()->mutable_autograd();
  if (accumulated && meta.grad_fn) {
    throw StatusError(FailedPrecondition(name, tensor.shape(),
                                         " is not a leaf, so nothing is added to its gradient"));
  }
  return Add(meta.grad_fn ? meta.grad_fn->hooks : meta.hooks,
             {NextHook(), meta.grad_fn ? meta.output : 0, std::move(hook), when});
}

HookHandle AddHook(GradNode& node, GradHook::OfNode hook, GradHook::When when) {
  return Add(node.hooks, {NextHook(), 0, {}, when, std::move(hook)});
}

void RemoveHook(const HookHandle& handle) {
  const std::shared_ptr<GradHooks> hooks = handle.hooks.lock();
  if (hooks) std::erase_if(*hooks, [&](const GradHook& hook) { return hook.id == handle.id; });
}

Tensor AfterHooks(const std::shared_ptr<GradHooks>& hooks, uint32_t output, Tensor gradient) {
  if (!hooks || !gradient.defined()) return gradient;
  const GradHooks now = *hooks;      // NOLINT: a copy, since one may remove itself
  const SiteOverride none(kNoSite);  // what a hook records has lines of its own
  for (const GradHook& hook : now) {
    if (hook.output != output || hook.when != GradHook::When::kGradient) continue;
    Tensor other = hook.call(gradient);
    if (!other.defined()) continue;
    if (!(other.shape() == gradient.shape())) {
      throw StatusError(InvalidArgument("register_hook: the hook gave ", other.shape(),
                                        " in place of the gradient ", gradient.shape()));
    }
    gradient = std::move(other);
  }
  return gradient;
}

void CallNodeHooks(const std::shared_ptr<GradHooks>& hooks, GradHook::When when, Tensors& gradients,
                   absl::Span<const Tensor> dys) {
  if (!hooks) return;
  const GradHooks now = *hooks;  // NOLINT: a copy, since one may remove itself
  const SiteOverride none(kNoSite);
  for (const GradHook& hook : now) {
    if (hook.when == when) hook.call_node(gradients, dys);
  }
}

void RetainGrad(const Tensor& tensor) {
  if (!tensor.requires_grad()) {
    throw StatusError(FailedPrecondition("retain_grad: ", tensor.shape(),
                                         " requires no gradient, so there is none to retain"));
  }
  AutogradMeta& meta = tensor.impl()->mutable_autograd();
  if (!meta.grad_fn || GradPlace(tensor) != nullptr) return;
  Add(meta.grad_fn->hooks, {NextHook(), meta.output, {}, GradHook::When::kKeep});
  meta.retains_grad = true;
}

Tensor* GradPlace(const Tensor& tensor) {
  AutogradMeta* meta = tensor.impl()->autograd();
  if (meta == nullptr) return nullptr;
  if (!meta->grad_fn) return &meta->grad;
  if (!meta->retains_grad || !meta->grad_fn->hooks) return nullptr;
  for (GradHook& hook : *meta->grad_fn->hooks) {
    if (hook.when == GradHook::When::kKeep && hook.output == meta->output) return &hook.kept;
  }
  return nullptr;
}

PackScope::PackScope(const PackHook* hook) : outer_(std::exchange(pack_hook, hook)) {}
PackScope::~PackScope() { pack_hook = outer_; }
const PackHook* PackScope::Current() { return pack_hook; }

SavedTensor::SavedTensor(const Tensor& tensor, bool is_result)
    : storage_(tensor.impl()->storage()),
      version_(VersionSeen(tensor.storage())),
      is_result_(is_result) {
  if (tensor.impl()->is_inference()) [[unlikely]] {
    throw StatusError(FailedPrecondition(
        "a tensor made in inference mode cannot be saved for backward: ", tensor.shape(),
        "; clone() it outside of inference mode"));
  }
  if (!is_result) edge_ = GradEdge(tensor);
  if (pack_hook == nullptr) [[likely]]
    return;
  const GradModeGuard no_grad(false);
  const PackHook& hook = *pack_hook;
  const PackScope none(nullptr);
  packed_ = hook(Tensor(storage_));
  storage_ = {};
}

SavedTensor::SavedTensor(const Value& number, backend::Device device)
    : storage_(Context::Current().NewStorage(number, device)) {}

void SavedTensor::ThrowChanged(const GradNode& self, uint64_t version) const {
  const std::string site = GetSite(self.site()).ToString();
  const std::string saved = version_ == kChanging ? " meanwhile" : Str(", saved at ", version_);
  throw StatusError(FailedPrecondition(
      self.name(), ": a tensor that backward needs was changed in place after it was used",
      site.empty() ? "" : Str(" at ", site), " (version ", version, saved,
      "); clone() it before changing it"));
}

Tensor SavedTensor::Get(const GradNode& self, uint32_t output) const {
  Tensor tensor;
  if (packed_) {
    const GradModeGuard no_grad(false);
    tensor = Detach(packed_->Unpack());
  } else {
    const bool replaced = edge_.leaf && edge_.leaf->storage() != storage_;  // set_data()
    if (storage_->version() != version_ || (replaced && GradEnabled()))
      ThrowChanged(self, storage_->version());
    if (GradEnabled() && edge_.leaf) return Tensor(edge_.leaf);
    tensor = Tensor(storage_);
  }
  if (!GradEnabled()) return tensor;
  if (edge_.leaf) {  // its own history, so that it takes the place of what was unpacked
    if (edge_.leaf->storage()->version() != version_)
      ThrowChanged(self, edge_.leaf->storage()->version());
    return Tensor(edge_.leaf);
  }
  if (is_result_) {
    AutogradMeta& meta = tensor.impl()->mutable_autograd();
    meta.grad_fn = IntrusivePtr<GradNode>(const_cast<GradNode*>(&self));
    meta.output = output;
  } else if (edge_.node) {
    AutogradMeta& meta = tensor.impl()->mutable_autograd();
    meta.grad_fn = edge_.node;
    meta.output = edge_.index;
  }
  return tensor;
}

void SavedTensor::Reset() { *this = SavedTensor(); }

}  // namespace lazuli::lazy
