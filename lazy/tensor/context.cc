#include "lazy/tensor/context.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <utility>

#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "lazy/tensor/site_scope.h"
#include "lazy/tensor/status_error.h"

namespace lazuli::lazy {
namespace {

std::atomic<uint64_t> next_storage_id{1};
std::atomic<uint64_t> next_context_id{1};
thread_local IntrusivePtr<Context> current;
Engine* engine = nullptr;

}  // namespace

Engine& GetEngine() {
  LAZULI_CHECK(engine != nullptr, "no engine installed: lazy/execution is not initialised");
  return *engine;
}
void InstallEngine(Engine* e) { engine = e; }

Storage::Storage(IntrusivePtr<Context> context, Shape shape, backend::Device device)
    : context_(std::move(context)),
      shape_(std::move(shape)),
      device_(device),
      id_(next_storage_id.fetch_add(1, std::memory_order_relaxed)) {
  Add(Counter::kCreateTensor);
}

Storage::~Storage() {
  Add(Counter::kDestroyTensor);
  Value value;  // released after the lock: it may take a whole graph with it
  Context::Lock lock(*context_);
  if (linked_) lock->Unlink(*this);
  value = std::move(value_);
}

Context::Context()
    : id_(next_context_id.fetch_add(1)), max_graph_nodes_(ir::flags().max_graph_nodes()) {}
Context::~Context() = default;

Context& Context::Current() {
  if (!current) current = Create();
  return *current;
}
IntrusivePtr<Context> Context::Create() { return IntrusivePtr<Context>(new Context); }
IntrusivePtr<Context> Context::Exchange(IntrusivePtr<Context> context) {
  return std::exchange(current, std::move(context));
}

void Context::Adopt(Storage& storage) {
  Context* owner = storage.context_.get();
  if (owner == this) return;
  bool pending;
  {
    Lock lock(*owner);
    pending = storage.linked_;
  }
  if (!pending) return;
  Add(Counter::kSyncForeign);
  static std::atomic<bool> warned{false};
  if (!warned.exchange(true)) {
    const Site& there = GetSite(storage.value_.node->site());
    const Site& here = GetSite(CurrentSite());
    std::fprintf(stderr,
                 "lazuli: a tensor pending in another context (recorded at %s) is used at %s: that "
                 "context is synced first. "
                 "Said once; the counter sync.foreign counts.\n",
                 there.ToString().c_str(), here.ToString().c_str());
  }
  ThrowIfError(GetEngine().Sync(*owner, /*wait=*/false, SyncReason::kForeignContext));
}

StoragePtr Context::NewStorage(DataPtr data) {
  auto storage = MakeIntrusive<Storage>(IntrusivePtr<Context>(this), data->shape(), data->device());
  storage->data_ = std::move(data);
  return storage;
}

StoragePtr Context::NewStorage(const Value& scalar, backend::Device device) {
  auto storage = MakeIntrusive<Storage>(IntrusivePtr<Context>(this), scalar.shape(), device);
  storage->value_ = scalar;
  return storage;
}

Value Context::ScalarValue(Storage& storage) {
  Lock lock(*storage.context_);
  if (storage.value_ && storage.value_.node->kind() == NodeKind::kScalar) return storage.value_;
  return {};
}

DataPtr Context::Data(Storage& storage) {
  Lock lock(*storage.context_);
  return storage.linked_ ? nullptr : storage.data_;
}

Value Context::ValueOf(Storage& storage, SiteId site) {
  if (storage.context_.get() == this) {
    if (!storage.value_)
      storage.value_ = {MakeIntrusive<DataNode>(storage.data_, storage.name_, site), 0};
    return storage.value_;
  }
  // Traversal marks lie in the nodes, so contexts never share one: a leaf of our own for data of
  // another context.
  if (storage.data_) {
    NodePtr& leaf = foreign_leaves_[storage.data_.get()];
    if (!leaf) leaf = MakeIntrusive<DataNode>(storage.data_, storage.name_, site);
    return {leaf, 0};
  }
  LAZULI_CHECK(storage.value_ && !storage.linked_, "an adopted storage is not pending");
  return {storage.value_.node->CopyWithoutOperands(), storage.value_.index};
}

StoragePtr Context::Snapshot(Storage& storage) {
  Adopt(storage);
  Lock lock(*this);
  Value value = ValueOf(storage, CurrentSite());
  if (value.node->kind() == NodeKind::kOp) return NewPending(std::move(value), storage.device());
  StoragePtr copy =
      MakeIntrusive<Storage>(IntrusivePtr<Context>(this), storage.shape(), storage.device());
  copy->data_ = storage.data_;
  copy->value_ = std::move(value);
  return copy;
}

StoragePtr Context::NewPending(Value value, backend::Device device) {
  auto storage = MakeIntrusive<Storage>(IntrusivePtr<Context>(this), value.shape(), device);
  storage->value_ = std::move(value);
  Link(*storage);
  return storage;
}

Value Context::Write(Storage& storage, Value value) {
  LAZULI_CHECK(storage.shape_ == value.shape(), "a write keeps the shape");
  if (storage.context_.get() != this) storage.context_ = IntrusivePtr<Context>(this);
  Value old = std::exchange(storage.value_, std::move(value));
  storage.data_ = nullptr;
  ++storage.version_;
  if (!storage.linked_) Link(storage);
  return old;
}

std::vector<Storage*> Context::PendingStorages() {
  std::vector<Storage*> result;
  result.reserve(static_cast<std::size_t>(pending_count_));
  for (Storage* s = first_; s != nullptr; s = s->next_) result.push_back(s);
  auto by_creation = [](const Storage* a, const Storage* b) { return a->id() < b->id(); };
  if (!std::is_sorted(result.begin(), result.end(), by_creation))
    std::sort(result.begin(), result.end(), by_creation);
  return result;
}

void Context::Resolve(Storage& storage, DataPtr data) {
  Unlink(storage);
  storage.value_ = {};
  storage.data_ = std::move(data);
}

void Context::Link(Storage& storage) {
  storage.linked_ = true;
  storage.previous_ = last_;
  storage.next_ = nullptr;
  (last_ != nullptr ? last_->next_ : first_) = &storage;
  last_ = &storage;
  ++pending_count_;
}

void Context::Unlink(Storage& storage) {
  (storage.previous_ != nullptr ? storage.previous_->next_ : first_) = storage.next_;
  (storage.next_ != nullptr ? storage.next_->previous_ : last_) = storage.previous_;
  storage.linked_ = false;
  --pending_count_;
}

void Context::SetFailure(absl::Status status) {
  std::lock_guard lock(failure_mu_);
  if (failure_.ok()) failure_ = std::move(status);
}

void Context::ForgetFailure(const absl::Status& reported) {
  std::lock_guard lock(failure_mu_);
  if (failure_ == reported) failure_ = absl::OkStatus();
}

absl::Status Context::TakeFailure() {
  std::lock_guard lock(failure_mu_);
  return std::exchange(failure_, absl::OkStatus());
}

}  // namespace lazuli::lazy
