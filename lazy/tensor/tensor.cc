#include "lazy/tensor/tensor.h"

#include <atomic>
#include <utility>

#include "ir/support/thread_local.h"
#include "lazy/tensor/site_scope.h"
#include "lazy/tensor/status_error.h"
#include "lazy/tensor/tape.h"

namespace lazuli::lazy {
namespace {

LAZULI_FAST_THREAD_LOCAL bool grad_enabled = true;
std::atomic<uint64_t> next_sequence{1};
LAZULI_FAST_THREAD_LOCAL bool draining = false;
LAZULI_FAST_THREAD_LOCAL const GradNode* dead = nullptr;

}  // namespace

TensorImpl::TensorImpl(StoragePtr storage) : storage_(std::move(storage)) {}
TensorImpl::~TensorImpl() = default;

AutogradMeta& TensorImpl::mutable_autograd() {
  if (!autograd_) autograd_ = std::make_unique<AutogradMeta>();
  return *autograd_;
}

bool Tensor::requires_grad() const {
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
  return ValueOrThrow(GetEngine().Read(Context::Current(), tensor.storage()));
}

backend::BufferPtr ToBuffer(const Tensor& tensor) {
  return ValueOrThrow(GetEngine().ReadBuffer(Context::Current(), tensor.storage()));
}

Tensor Detach(const Tensor& tensor) { return Tensor(tensor.impl()->storage()); }

bool GradEnabled() { return grad_enabled; }
bool SetGradEnabled(bool enabled) { return std::exchange(grad_enabled, enabled); }
GradModeGuard::GradModeGuard(bool enabled) : saved_(SetGradEnabled(enabled)) {}
GradModeGuard::~GradModeGuard() { grad_enabled = saved_; }

GradNode::GradNode(SiteId site)
    : site_(site), sequence_(next_sequence.fetch_add(1, std::memory_order_relaxed)) {}

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

Edge GradEdge(const Tensor& tensor) {
  const AutogradMeta* meta = tensor.impl()->autograd();
  if (meta == nullptr) return {};
  if (meta->grad_fn) return {meta->grad_fn, nullptr, meta->output};
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

HookHandle AddHook(const Tensor& tensor, std::function<Tensor(const Tensor&)> hook) {
  if (!tensor.requires_grad()) {
    throw StatusError(FailedPrecondition("register_hook: ", tensor.shape(),
                                         " requires no gradient, so there is none to see"));
  }
  static std::atomic<uint64_t> next_id{1};
  AutogradMeta& meta = tensor.impl()->mutable_autograd();
  std::shared_ptr<GradHooks>& hooks = meta.grad_fn ? meta.grad_fn->hooks : meta.hooks;
  if (!hooks) hooks = std::make_shared<GradHooks>();
  const uint64_t id = next_id.fetch_add(1, std::memory_order_relaxed);
  hooks->push_back({id, meta.grad_fn ? meta.output : 0, std::move(hook)});
  return {hooks, id};
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
    if (hook.output != output) continue;
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

SavedTensor::SavedTensor(const Tensor& tensor, bool is_result)
    : storage_(tensor.impl()->storage()),
      version_(tensor.storage().version()),
      is_result_(is_result) {
  if (!is_result) edge_ = GradEdge(tensor);
}

SavedTensor::SavedTensor(const Value& number, backend::Device device)
    : storage_(Context::Current().NewStorage(number, device)) {}

Tensor SavedTensor::Get(const GradNode& self, uint32_t output) const {
  const bool replaced = edge_.leaf && edge_.leaf->storage() != storage_;  // set_data()
  if (storage_->version() != version_ || (replaced && GradEnabled())) {
    const std::string site = GetSite(self.site()).ToString();
    const std::string saved = version_ == kChanging ? " meanwhile" : Str(", saved at ", version_);
    throw StatusError(FailedPrecondition(
        self.name(), ": a tensor that backward needs was changed in place after it was used",
        site.empty() ? "" : Str(" at ", site), " (version ", storage_->version(), saved,
        "); clone() it before changing it"));
  }
  if (!GradEnabled()) return Tensor(storage_);
  if (edge_.leaf) return Tensor(edge_.leaf);
  Tensor tensor(storage_);
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
