#include "lazy/tensor/context.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <thread>
#include <utility>

#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "lazy/tensor/site_scope.h"
#include "lazy/tensor/status_error.h"

namespace lazuli::lazy {
namespace {

std::atomic<uint64_t> next_context_id{1};
Engine* engine = nullptr;

}  // namespace

Engine& GetEngine() {
  LAZULI_CHECK(engine != nullptr, "no engine installed: lazy/execution is not initialised");
  return *engine;
}
void InstallEngine(Engine* e) { engine = e; }

Storage::Storage(Context& context, Shape shape, backend::Device device)
    : context_(&context), shape_(std::move(shape)), device_(device), id_(context.NextStorageId()) {}

Storage::~Storage() {
  Value value;  // released after the lock: it may take a whole graph with it
  bool last;
  {
    Context::Lock lock(*context_);
    if (linked_) lock->Unlink(*this);
    value = std::move(value_);
    lock->counters_.Add(Counter::kDestroyTensor);
    last = lock->UncountStorage();
  }
  if (last) context_->Release();
}

Context::Context() : history(ir::flags().max_graph_nodes()), id_(next_context_id.fetch_add(1)) {}
Context::~Context() = default;

LAZULI_FAST_THREAD_LOCAL Context* Context::current_ = nullptr;

Context& Context::MakeCurrent() {
  Exchange(Create());
  return *current_;
}
IntrusivePtr<Context> Context::Create() { return IntrusivePtr<Context>(new Context); }
IntrusivePtr<Context> Context::Exchange(IntrusivePtr<Context> context) {
  struct Holder {
    IntrusivePtr<Context> context;
    ~Holder() { current_ = nullptr; }
  };
  thread_local Holder holder;  // the thread's reference, dropped when it ends
  current_ = context.get();
  return std::exchange(holder.context, std::move(context));
}

void Context::WaitForLock() {
  constexpr int kSpins = 64;  // then the owner compiles: let it
  for (int tries = 0; locked_.exchange(true, std::memory_order_acquire); ++tries) {
    if (tries < kSpins)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

void Context::AdoptForeign(Storage& storage) {
  Context* owner = storage.context_;
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

void Context::AdoptForWrite(Storage& storage) {
  Adopt(storage);
  Context* const owner = storage.context_;
  if (owner == this) return;
  {
    Lock lock(*this);
    CountStorage();
  }
  Value leaf;  // of the other context's graph, to which it stays bound
  bool last;
  {
    Lock lock(*owner);
    leaf = std::exchange(storage.value_, {});
    if (!storage.data_) storage.value_ = {leaf.node->CopyWithoutOperands(), leaf.index};
    storage.context_ = this;
    last = owner->UncountStorage();
  }
  if (last) owner->Release();
}

void Context::CountStorage() {
  if (storages_++ == 0) Retain();
}

StoragePtr Context::MakeStorage(Shape shape, backend::Device device) {
  auto storage = MakeIntrusive<Storage>(*this, std::move(shape), device);
  CountStorage();
  counters_.Add(Counter::kCreateTensor);
  return storage;
}

StoragePtr Context::NewStorage(DataPtr data) {
  Lock lock(*this);
  StoragePtr storage = MakeStorage(data->shape(), data->device());
  storage->data_ = std::move(data);
  return storage;
}

StoragePtr Context::NewStorage(const Value& scalar, backend::Device device) {
  Lock lock(*this);
  StoragePtr storage = MakeStorage(scalar.shape(), device);
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
  if (storage.context_ == this) {
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
  StoragePtr copy = MakeStorage(storage.shape(), storage.device());
  copy->data_ = storage.data_;
  copy->value_ = std::move(value);
  return copy;
}

StoragePtr Context::NewPending(Value value, backend::Device device) {
  StoragePtr storage = MakeStorage(value.shape(), device);
  storage->value_ = std::move(value);
  Link(*storage);
  return storage;
}

Value Context::Write(Storage& storage, Value value) {
  LAZULI_CHECK(storage.shape_ == value.shape(), "a write keeps the shape");
  LAZULI_CHECK(storage.context_ == this, "a storage that is written was adopted");
  Value old = std::exchange(storage.value_, std::move(value));
  if (storage.data_) storage.replaced_ = storage.data_.get();
  storage.data_ = nullptr;
  ++storage.version_;
  if (!storage.linked_) Link(storage);
  return old;
}

void Context::PendingStorages(std::vector<Storage*>& result) {
  result.clear();
  for (Storage* s = first_; s != nullptr; s = s->next_) result.push_back(s);
  auto by_creation = [](const Storage* a, const Storage* b) { return a->id() < b->id(); };
  if (!std::is_sorted(result.begin(), result.end(), by_creation))
    std::sort(result.begin(), result.end(), by_creation);
}

void Context::Resolve(Storage& storage, DataPtr data) {
  Unlink(storage);
  storage.value_ = {};
  storage.replaced_ = nullptr;
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
