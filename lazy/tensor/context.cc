#include "lazy/tensor/context.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <thread>
#include <utility>

#include "absl/container/flat_hash_map.h"

#include "ir/support/blocking.h"
#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "ir/support/process_end.h"
#include "lazy/tensor/journal.h"
#include "lazy/tensor/live_tensors.h"
#include "lazy/tensor/outside.h"
#include "lazy/tensor/site_scope.h"
#include "lazy/tensor/status_error.h"
#include "lazy/tensor/watch.h"

namespace lazuli::lazy {
namespace {

std::atomic<uint64_t> next_context_id{1};
Engine* engine = nullptr;

// Guards who a storage belongs to for those who look without the lock of that context. The last
// mutex that anybody takes.
ir::ForkMutex& OwnerMutex(const Storage& storage) {
  constexpr std::size_t kMutexes = 16;  // threads that share weights meet here at every op
  static auto* mutexes = new std::array<ir::ForkMutex, kMutexes>;
  return (*mutexes)[reinterpret_cast<std::uintptr_t>(&storage) / 64 % kMutexes];
}

void NoteView(const Storage& storage) {
  if (internal::knows_tensors.load(std::memory_order_relaxed)) [[unlikely]]
    internal::AddView(storage);
}

// Whether a storage of which a context has seen these contents can be read there: in a trace with
// parameters from outside, data that was made inside.
bool HasElements(const Context& context, const Storage& storage,
                 const Context::Contents& contents) {
  if (Outside::Of(context) == nullptr) return true;
  return context.Owns(storage) && contents && !(contents.data && contents.data->has_failed());
}

std::size_t Bytes(const Literal& literal) { return static_cast<std::size_t>(literal.byte_size()); }

}  // namespace

Engine& GetEngine() {
  LAZULI_CHECK(engine != nullptr, "no engine installed: lazy/execution is not initialised");
  return *engine;
}
void InstallEngine(Engine* e) { engine = e; }

Storage::Storage(Context& context, const Shape& shape, backend::Device device)
    : context_(&context), shape_(shape), device_(device), id_(context.NextStorageId()) {
  if (internal::knows_tensors.load(std::memory_order_relaxed)) [[unlikely]]
    internal::AddTensor(*this);
}

Storage::~Storage() {
  if (internal::knows_tensors.load(std::memory_order_relaxed)) [[unlikely]]
    internal::RemoveTensor(*this);
  Context& context = *context_.load(std::memory_order_acquire);
  Value value;  // released after the lock: it may take a whole graph with it
  bool last;
  {
    Context::Lock lock(context);
    if (linked_) lock->Unlink(*this);
    value = std::move(value_);
    lock->counters_.Add(Counter::kDestroyTensor);
    last = lock->UncountStorage();
  }
  if (last) context.Release();
}

// All contexts of the process, none of which is being recorded to or synced while it forks.
class Contexts final : private ir::ForkParticipant {
 public:
  static Contexts& Get() {
    static auto* contexts = new Contexts;
    return *contexts;
  }
  void Add(Context* context) {
    const std::lock_guard lock(mutex_);
    context->next_context_ = first_;
    if (first_ != nullptr) first_->previous_context_ = context;
    first_ = context;
  }
  void Remove(Context* context) {
    const std::lock_guard lock(mutex_);
    Context *const previous = context->previous_context_, *const next = context->next_context_;
    (previous != nullptr ? previous->next_context_ : first_) = next;
    if (next != nullptr) next->previous_context_ = previous;
  }

 private:
  Contexts() { Join(); }
  bool TryHold() override {
    if (!mutex_.try_lock()) return false;
    for (Context* c = first_; c != nullptr; c = c->next_context_) {
      if (!c->locked_.exchange(true, std::memory_order_acquire)) continue;
      ReleaseBefore(c);
      return false;
    }
    return true;
  }
  void Release() override { ReleaseBefore(nullptr); }
  void ReleaseBefore(const Context* end) {
    for (Context* c = first_; c != end; c = c->next_context_)
      c->locked_.store(false, std::memory_order_release);
    mutex_.unlock();
  }
  void StartAnew(bool held) override {
    if (!held) new (&mutex_) std::mutex;
    if (!held) mutex_.lock();
    ReleaseBefore(nullptr);
  }

  std::mutex mutex_;
  Context* first_ = nullptr;
};

Context::Context(int64_t max_graph_nodes)
    : history(max_graph_nodes), id_(next_context_id.fetch_add(1)) {
  Contexts::Get().Add(this);
}
Context::~Context() { Contexts::Get().Remove(this); }

LAZULI_FAST_THREAD_LOCAL Context* Context::current_ = nullptr;
LAZULI_FAST_THREAD_LOCAL bool Context::thread_has_ended_ = false;

absl::Status Context::CheckNotEnding() {
  const bool process = ir::ProcessEnds();
  if (!thread_has_ended_ && !process) return absl::OkStatus();
  return FailedPrecondition("nothing can be recorded or run any more: ",
                            process ? "the process" : "the thread", " is ending");
}

void Context::EndProcess() {
  ir::BeginProcessEnd();
  current_ = nullptr;
}

Context& Context::MakeCurrent() {
  ThrowIfError(CheckNotEnding());
  Exchange(Create());
  return *current_;
}
Context& Context::MakeForReading() {
  if (CheckNotEnding().ok()) return MakeCurrent();
  static Context* const last = CreateEndless().Detach();  // for all threads that end
  return *last;
}
IntrusivePtr<Context> Context::Create() {
  return IntrusivePtr<Context>(new Context(ir::flags().max_graph_nodes()));
}
IntrusivePtr<Context> Context::CreateEndless() {
  return IntrusivePtr<Context>(new Context(History::kEndless));
}
IntrusivePtr<Context> Context::Exchange(IntrusivePtr<Context> context) {
  struct Holder {
    IntrusivePtr<Context> context;
    ~Holder() {
      current_ = nullptr;
      thread_has_ended_ = true;
    }
  };
  if (thread_has_ended_) return context;  // whose holder is gone: nobody records
  thread_local Holder holder;             // the thread's reference, dropped when it ends
  current_ = context.get();
  return std::exchange(holder.context, std::move(context));
}

void Context::WaitForLock() {
  constexpr int kSpins = 64;  // then the owner syncs: let it
  std::optional<ir::WaitScope> waits;
  for (int tries = 0; locked_.exchange(true, std::memory_order_acquire); ++tries) {
    if (tries < kSpins) {
      std::this_thread::yield();
      continue;
    }
    if (!waits) waits.emplace();
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

IntrusivePtr<Context> Context::OwnerOf(const Storage& storage) {
  const std::lock_guard lock(OwnerMutex(storage));
  return IntrusivePtr<Context>(storage.context_.load(std::memory_order_relaxed));
}

void Context::ForgetUndone(Storage& storage) {
  if (storage.view_ == nullptr || !storage.data_ || !storage.data_->undone()) return;
  storage.view_->MakeStale();
}

void Context::LinkDerived(Storage& storage) {
  if (storage.linked_ || storage.data_ || !storage.value_) return;
  if (!storage.value_.node->operands().empty()) Link(storage);
}

Context::Contents Context::PeekLocked(Storage& storage) {
  ForgetUndone(storage);
  LinkDerived(storage);
  if (storage.linked_ || !IsCurrent(storage)) return {};
  if (storage.data_) return {storage.data_, {}};
  if (!storage.value_) return {};
  // Traversal marks lie in the nodes, so contexts never share one.
  return {nullptr, {storage.value_.node->CopyWithoutOperands(), storage.value_.index}};
}

std::byte* Context::Lend(Storage& storage, const Literal& elements) {
  LentMemory::exists.store(true, std::memory_order_relaxed);
  while (true) {
    const IntrusivePtr<Context> owner = OwnerOf(storage);
    const Lock lock(*owner);
    if (!owner->Owns(storage)) continue;
    if (storage.linked_) return nullptr;
    if (storage.lent_ == nullptr) {
      storage.lent_ = std::make_unique<LentMemory>(
          LentMemory{elements.Clone(), elements.Clone(), storage.data_});
    } else if (storage.lent_->data != storage.data_) {  // an op has written: the same memory again
      LentMemory& lent = *storage.lent_;
      std::memcpy(lent.elements.mutable_raw(), elements.raw(), Bytes(elements));
      lent.seen = elements.Clone();
      lent.data = storage.data_;
    }
    return storage.lent_->elements.mutable_raw();
  }
}

void Context::SeeLent(Storage& storage) {
  if (storage.lent_ == nullptr || !Owns(storage) || storage.linked_) return;
  LentMemory& lent = *storage.lent_;
  if (lent.data != storage.data_) return;  // an op has written since
  if (std::memcmp(lent.elements.raw(), lent.seen.raw(), Bytes(lent.seen)) == 0) return;
  auto seen = std::make_shared<Literal>(lent.elements.Clone());
  const backend::Device device = storage.device();
  lent.data = MakeIntrusive<DataHandle>(
      ValueOrThrow(device.client->FromHost({seen->raw(), &seen->shape()}, [seen] {}, device)));
  lent.seen = *seen;
  storage.data_ = lent.data;
  storage.value_ = {};
  storage.version_.fetch_add(1, std::memory_order_release);
}

void Context::SeeLentAnywhere(Storage& storage) {
  if (!LentMemory::exists.load(std::memory_order_relaxed)) [[likely]]
    return;
  Storage& base = storage.written();
  while (true) {
    const IntrusivePtr<Context> owner = OwnerOf(base);
    const Lock lock(*owner);
    if (!owner->Owns(base)) continue;
    return owner->SeeLent(base);
  }
}

Context::Contents Context::Peek(Storage& storage) {
  SeeLentAnywhere(storage);
  while (true) {
    const IntrusivePtr<Context> owner = OwnerOf(storage);
    const Lock lock(*owner);
    if (owner->Owns(storage)) return owner->PeekLocked(storage);
  }
}

absl::StatusOr<Context::Contents> Context::ContentsOf(Storage& storage) {
  while (true) {
    Contents contents = Peek(storage);
    if (!HasElements(*this, storage, contents)) return CheckRuns(*this);
    if (contents) return contents;
    if (!IsCurrent(storage)) {
      Storage* const view[] = {&storage};
      Value value;
      std::optional<Lock> lock;
      LockWithValues(lock, view, CurrentSite(), absl::MakeSpan(&value, 1));
      if (IsCurrent(storage)) continue;
      const StoragePtr here = NewPending(std::move(value), storage.device());
      lock.reset();
      return ContentsOf(*here);
    }
    const IntrusivePtr<Context> owner = OwnerOf(storage);
    // Taken before anybody can write again, so that a busy writer keeps no reader waiting.
    LAZULI_RETURN_IF_ERROR(SyncFor(*owner, storage, [&] {
      if (owner->Owns(storage)) contents = owner->PeekLocked(storage);
    }));
    if (contents) return contents;
    std::this_thread::yield();  // it is on its way to another context
  }
}

absl::Status Context::SyncFor(Context& owner, Storage& storage, absl::FunctionRef<void()> then) {
  SiteId there = kNoSite;
  {
    const Lock lock(owner);
    if (owner.Owns(storage)) owner.LinkDerived(storage);
    if (!owner.Owns(storage) || !storage.linked_) {
      then();
      return absl::OkStatus();
    }
    there = storage.value_.node->site();
  }
  LAZULI_RETURN_IF_ERROR(CheckNotEnding());
  const bool foreign = &owner != this;
  if (foreign && ir::RunScope::IsActive()) {
    return FailedPrecondition(
        "a function that a run calls uses a tensor that another thread has not "
        "synced; give it to the function as an argument");
  }
  Add(foreign ? Counter::kSyncForeign : Counter::kSyncForRead);
  static std::atomic<bool> warned{false};
  if (foreign && !warned.exchange(true)) {
    std::fprintf(stderr,
                 "lazuli: a tensor pending in another context (recorded at %s) is used at %s: that "
                 "context is synced first. "
                 "Said once; the counter sync.foreign counts.\n",
                 GetSite(there).ToString().c_str(), GetSite(CurrentSite()).ToString().c_str());
  }
  return GetEngine().Sync(owner, /*wait=*/false,
                          foreign ? SyncReason::kForeignContext : SyncReason::kRead, then);
}

void Context::LockWithValues(std::optional<Lock>& lock, absl::Span<Storage* const> storages,
                             SiteId site, absl::Span<Value> values) {
  Outside* const outside = Outside::Of(*this);
  absl::InlinedVector<Contents, 3> foreign(storages.size());
  absl::InlinedVector<Storage*, 3> sources(storages.size());  // the base of a view that is stale
  for (bool complete = false; !complete;) {
    lock.reset();
    for (std::size_t i = 0; i < storages.size(); ++i) {
      values[i] = {};
      foreign[i] = {};
      if (storages[i] == nullptr) continue;
      SeeLentAnywhere(*storages[i]);
      sources[i] = IsCurrent(*storages[i]) ? storages[i] : &storages[i]->written();
      if (Owns(*sources[i])) continue;
      if (outside == nullptr) [[likely]] {
        foreign[i] = ValueOrThrow(ContentsOf(*sources[i]));
        continue;
      }
      if (!Owns(*storages[i])) sources[i] = storages[i];  // a stale view, outside
      foreign[i].leaf = outside->LeafFor(i, *sources[i], site);
    }
    lock.emplace(*this);
    complete = true;
    for (std::size_t i = 0; i < storages.size() && complete; ++i) {
      if (storages[i] == nullptr) continue;
      const bool derives = sources[i] != storages[i] && (foreign[i] || !Owns(*storages[i]));
      Storage& source = derives ? *sources[i] : *storages[i];
      values[i] = foreign[i] ? LeafFor(source, foreign[i], site) : ValueOf(source, site);
      if (values[i] && derives) {
        values[i] = storages[i]->view_->Read(storages[i]->shape(), values[i], site);
        CountDerived(*storages[i]->view_);
      }
      complete = static_cast<bool>(values[i]);
    }
    if (!complete) {  // one has just gone to another context, or is being overwritten
      lock.reset();
      std::this_thread::yield();
    }
  }
}

Context::Movers Context::LockMovers() {
  static auto* mutex = new ir::ForkMutex;
  return Movers(*mutex);
}

bool Context::HandOver(Storage& storage, Context& heir) {
  storage.ForgetOld();
  {
    const std::lock_guard lock(OwnerMutex(storage));
    storage.context_.store(&heir, std::memory_order_release);
  }
  return UncountStorage();
}

void Context::NoteTaken(Storage& storage, Context& owner) {
  if (journal_ == nullptr) [[likely]]
    return;
  journal_->Note({.storage = StoragePtr(&storage),
                  .owner = IntrusivePtr<Context>(&owner),
                  .value = storage.value_,
                  .data = storage.data_,
                  .replaced = storage.replaced_,
                  .pending = storage.linked_,
                  .version = storage.version_.load(std::memory_order_relaxed)});
}

void Context::GiveBack(JournalEntry& taken) {
  Storage& storage = *taken.storage;
  Context& owner = *taken.owner;
  {
    const Lock lock(owner);
    owner.CountStorage();
  }
  Value value;  // of the trace; released after the lock
  DataPtr data, replaced;
  bool last = false;
  {
    const Lock lock(*this);
    if (storage.linked_) Unlink(storage);
    value = std::exchange(storage.value_, {});
    data = std::exchange(storage.data_, nullptr);
    replaced = std::exchange(storage.replaced_, nullptr);
    last = HandOver(storage, owner);
  }
  if (last) Release();
  const Lock lock(owner);
  storage.value_ = std::move(taken.value);
  storage.data_ = std::move(taken.data);
  storage.replaced_ = std::move(taken.replaced);
  storage.version_.store(taken.version, std::memory_order_release);
  if (taken.pending) owner.Link(storage);
}

void Context::TakesPlaceOf(Storage& storage, const Storage& old) {
  const Lock lock(*this);
  if (!Owns(storage) || !Owns(old) || &storage == &old) return;
  if (!storage.linked_ || storage.replaced_ || storage.view_ != nullptr || old.view_ != nullptr)
    return;
  if (!(storage.shape_ == old.shape_) || !(storage.device_ == old.device_)) return;
  storage.replaced_ = old.data_ ? old.data_ : old.replaced_;
  if (!storage.replaced_) KeepBefore(storage, old.before_ ? old.before_ : old.value_);
}

void Context::TakeOver(Storage& storage, const Movers&) {
  if (Owns(storage)) return;
  const IntrusivePtr<Context> owner = OwnerOf(storage);  // until the storage is handed over
  struct Count {                                         // of a storage that does not come
    Context& context;
    bool kept = false;
    explicit Count(Context& c) : context(c) {
      const Lock lock(context);
      context.CountStorage();
    }
    ~Count() {
      if (kept) return;
      bool last;
      {
        const Lock lock(context);
        last = context.UncountStorage();
      }
      if (last) context.Release();
    }
  } count(*this);
  Value leaf;  // of the other context's graph, to which it stays bound
  bool last = false;
  const auto take = [&] {
    NoteTaken(storage, *owner);
    leaf = std::exchange(storage.value_, {});
    if (!storage.data_) storage.value_ = {leaf.node->CopyWithoutOperands(), leaf.index};
    last = owner->HandOver(storage, *this);
    count.kept = true;
  };
  ThrowIfError(SyncFor(*owner, storage, take));
  if (last) owner->Release();
}

bool Context::TakeOverToOverwrite(Storage& storage, std::optional<uint64_t> version,
                                  const Movers&) noexcept {
  if (Owns(storage)) return true;
  const IntrusivePtr<Context> owner = OwnerOf(storage);
  {
    const Lock lock(*this);
    CountStorage();
  }
  Value old;
  bool taken = false, last = false;
  {
    const Lock lock(*owner);
    if (!version || storage.version() == *version) {
      NoteTaken(storage, *owner);
      if (storage.linked_) owner->Unlink(storage);
      old = std::exchange(storage.value_, {});
      last = owner->HandOver(storage, *this);
      taken = true;
    }
  }
  if (last) owner->Release();
  if (!taken) {
    const Lock lock(*this);
    last = UncountStorage();
  }
  if (!taken && last) Release();
  return taken;
}

void Context::CountStorage() {
  if (storages_++ == 0) Retain();
}

StoragePtr Context::MakeStorage(const Shape& shape, backend::Device device) {
  auto storage = MakeIntrusive<Storage>(*this, shape, device);
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

StoragePtr Context::NewView(const Shape& shape, backend::Device device,
                            std::unique_ptr<View> view) {
  Lock lock(*this);
  StoragePtr storage = MakeStorage(shape, device);
  view->MakeStale();
  storage->view_ = std::move(view);
  NoteView(*storage);
  return storage;
}

StoragePtr Context::NewStorage(const Value& scalar, backend::Device device) {
  Lock lock(*this);
  StoragePtr storage = MakeStorage(scalar.shape(), device);
  storage->value_ = scalar;
  return storage;
}

Value Context::MakeLeaf(Storage& storage, SiteId site) {
  if (!storage.data_) return {};
  // Each graph learns anew that it reads this.
  if (storage.data_->doubtful()) return GraphLeaf(storage.data_, storage, site);
  storage.value_ = {MakeIntrusive<DataNode>(storage.data_, storage.name_, site), 0};
  return storage.value_;
}

Value Context::GraphLeaf(const DataPtr& data, const Storage& storage, SiteId site) {
  if (data->doubtful()) reads_doubtful_ = true;
  IntrusivePtr<DataNode>& leaf = graph_leaves_[data.get()];
  if (!leaf) leaf = MakeIntrusive<DataNode>(data, storage.name_, site);
  return {leaf, 0};
}

Value Context::LeafFor(const Storage& storage, const Contents& contents, SiteId site) {
  return contents.data ? GraphLeaf(contents.data, storage, site) : contents.leaf;
}

void Context::DataToWaitFor(PooledVector<DataPtr>& result) const {
  if (!reads_doubtful_) return;
  const bool has_checks = std::any_of(checked_.begin(), checked_.end(), [](const Checked& checked) {
    return !checked.was_told && !checked.is_effect;
  });
  const auto waits = [&](const Storage& s) {
    if (s.before_) return !has_checks;
    return s.replaced_ && s.value_.node->kind() == NodeKind::kData;
  };
  const Storage* updated = first_;
  while (updated != nullptr && !waits(*updated)) updated = updated->next_;
  if (updated == nullptr) return;
  for (const auto& [data, leaf] : graph_leaves_) {
    if (data->doubtful()) result.push_back(leaf->data());
  }
}

StoragePtr Context::Snapshot(Storage& storage) {
  if (Watch* const watch = Watch::Current()) [[unlikely]]
    watch->Touch(storage);
  if (Owns(storage)) [[likely]] {
    const Lock lock(*this);
    Value value = ValueOf(storage, CurrentSite());
    if (value && value.node->kind() == NodeKind::kOp)
      return NewPending(std::move(value), storage.device());
  }
  Storage* const storages[] = {&storage};
  Value value;
  std::optional<Lock> lock;
  LockWithValues(lock, storages, CurrentSite(), absl::MakeSpan(&value, 1));
  if (value.node->kind() == NodeKind::kOp) return NewPending(std::move(value), storage.device());
  StoragePtr copy = MakeStorage(storage.shape(), storage.device());
  if (value.node->kind() == NodeKind::kData)
    copy->data_ = static_cast<const DataNode&>(*value.node).data();
  if (!copy->data_ || !copy->data_->doubtful()) copy->value_ = std::move(value);
  return copy;
}

StoragePtr Context::NewPending(Value value, backend::Device device) {
  StoragePtr storage = MakeStorage(value.shape(), device);
  storage->value_ = std::move(value);
  Link(*storage);
  return storage;
}

StoragePtr Context::NewPending(Value value, backend::Device device, std::unique_ptr<View> view) {
  StoragePtr storage = NewPending(std::move(value), device);
  storage->view_ = std::move(view);
  NoteView(*storage);
  return storage;
}

void Context::CountDerived(const View& view) {
  constexpr uint32_t kDerived = 0x7f4a7c15;  // for History: not an op's
  counters_.Add(Counter::kNodesRecorded);
  history.Add(kDerived + view.place(), pending_count_);
}

Value Context::Rederived(Storage& storage, SiteId site) {
  View& view = *storage.view_;
  const uint64_t version = storage.version();
  const Value base = ValueOf(*view.base(), site);
  if (!base) return {};
  storage.value_ = view.Read(storage.shape(), base, site);
  storage.data_ = nullptr;
  storage.replaced_ = nullptr;
  view.version_.store(version, std::memory_order_release);
  if (!storage.linked_) Link(storage);
  CountDerived(view);
  return storage.value_;
}

Value Context::WriteView(Storage& storage, Value value) {
  View& view = *storage.view_;
  Storage& base = *view.base();
  const Value from = view.IsWhole(storage.shape()) ? Value() : ValueOf(base, CurrentSite());
  ForgetUndone(storage);
  const bool current = IsCurrent(storage);
  Value old = Write(base, view.Written(from, value, CurrentSite()));
  CountDerived(view);
  // What was written is what the view holds now, unless places of the base are several elements.
  if (!Owns(storage) || view.IsExpanded(storage.shape())) return old;
  storage.value_ = std::move(value);
  if (!current)
    storage.replaced_ = nullptr;
  else if (storage.data_)
    storage.replaced_ = storage.data_;
  storage.data_ = nullptr;
  view.version_.store(storage.version(), std::memory_order_release);
  if (!storage.linked_) Link(storage);
  return old;
}

Value Context::Forget(Storage& storage) {
  Unlink(storage);
  storage.ForgetOld();
  return std::exchange(storage.value_, {});
}

void Context::ResolveHidden(Storage& view) {
  Storage& base = *view.view_->base();
  const SiteId site = base.value_.node->site();
  Unlink(base);
  base.ForgetOld();
  base.value_ = view.view_->Written({}, ValueOf(view, site), site);
  // Under the base's dims it is the view's own leaf.
  if (base.value_.node->kind() != NodeKind::kData) return;
  base.data_ = static_cast<const DataNode&>(*base.value_.node).data();
  if (base.data_->doubtful()) base.value_ = {};
}

void Context::KeepBefore(Storage& storage, const Value& old) {
  if (checked_.empty() && !reads_doubtful_) return;
  if (!storage.before_ && old && old.node->kind() == NodeKind::kOp) storage.before_ = old;
}

Value Context::Write(Storage& storage, Value value) {
  LAZULI_CHECK(storage.shape_ == value.shape(), "a write keeps the shape");
  if (storage.view_ != nullptr) return WriteView(storage, std::move(value));
  LAZULI_CHECK(Owns(storage), "a storage that is written is this context's");
  Value old = std::exchange(storage.value_, std::move(value));
  if (storage.data_)
    storage.replaced_ = std::move(storage.data_);
  else if (!storage.replaced_)
    KeepBefore(storage, old);
  // Under the lock there is no other writer.
  storage.version_.store(storage.version_.load(std::memory_order_relaxed) + 1,
                         std::memory_order_release);
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
  storage.ForgetOld();
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

void Context::NoteDraw(const Generator& generator, PhiloxState before, PhiloxState after) {
  if (Replay::Is(generator)) return;
  const Lock lock(*this);
  outcome()->AddDraw(generator.shared_state(), before, after);
}

}  // namespace lazuli::lazy
