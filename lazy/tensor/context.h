// Context: a set of pending storages that one sync turns into one program. Each thread has its own
// by default.
//
// Every recording takes the context's lock, so several threads may share a context; threads with
// contexts of their own never see each other's half-built graphs. An op that meets a tensor pending
// in another context syncs that context first. No two context locks are ever held together, and no
// storage is destroyed under one.
//
// Any number of threads may read and write the elements of one tensor. A read sees the elements of
// one version, and an op in place reads and writes as one step: what two threads add is added
// twice. A storage belongs to the context that wrote to it last; one that another context wants to
// write to is taken over, which one thread does at a time. The handle itself (assignment to it,
// set_data()) and the history of a tensor that is changed under autograd are one thread's, as any
// object is.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/function_ref.h"
#include "absl/types/span.h"

#include "ir/support/fork.h"
#include "ir/support/metrics.h"
#include "ir/support/thread_local.h"
#include "lazy/tensor/engine.h"
#include "lazy/tensor/function_scope.h"
#include "lazy/tensor/history.h"
#include "lazy/tensor/leaves.h"
#include "lazy/tensor/lent_memory.h"
#include "lazy/tensor/random.h"
#include "lazy/tensor/storage.h"
#include "lazy/tensor/view.h"

namespace lazuli::lazy {

class Journal;
struct JournalEntry;

class Context : public RefCounted<Context> {
 public:
  // The calling thread's; made on first use. Throws FailedPrecondition once the thread's objects, or the
  // process's, are being destroyed: what it records then could not run.
  static Context& Current() { return current_ != nullptr ? *current_ : MakeCurrent(); }
  // The same for reading what is computed, which may be done until the end.
  static Context& ForReading() { return current_ != nullptr ? *current_ : MakeForReading(); }
  // Makes `context` the calling thread's and returns the one it had.
  static IntrusivePtr<Context> Exchange(IntrusivePtr<Context> context);
  // OK, or why the calling thread records and runs nothing any more.
  static absl::Status CheckNotEnding();
  // The process ends; called by the thread that exits.
  static void EndProcess();
  static IntrusivePtr<Context> Create();  // whose graphs are cut at LAZULI_MAX_GRAPH_NODES
  static IntrusivePtr<Context> CreateEndless();
  ~Context();

  // Holds the lock while alive.
  class Lock {
   public:
    explicit Lock(Context& context) : context_(context) {
      if (context.locked_.exchange(true, std::memory_order_acquire)) context.WaitForLock();
    }
    ~Lock() { context_.locked_.store(false, std::memory_order_release); }
    Lock(const Lock&) = delete;
    Lock& operator=(const Lock&) = delete;
    Context& operator*() const { return context_; }
    Context* operator->() const { return &context_; }

   private:
    Context& context_;
  };

  // Whether the thread may hold its context's lock, under which no code of a user may run.
  static bool CurrentIsLocked() {
    return current_ != nullptr && current_->locked_.load(std::memory_order_relaxed);
  }

  // Whether the storage belongs to this context: a hint without the lock, certain under it.
  bool Owns(const Storage& storage) const {
    return storage.context_.load(std::memory_order_acquire) == this;
  }

  // --- without the lock
  // Takes the lock with the values to record with, one for each storage that is not null: those of
  // other contexts are what they held at one moment, after a sync of a context that one is pending
  // in.
  void LockWithValues(std::optional<Lock>& lock, absl::Span<Storage* const> storages, SiteId site,
                      absl::Span<Value> values);
  // Of whoever moves storages between contexts: nobody else does until it goes.
  using Movers = std::unique_lock<ir::ForkMutex>;
  static Movers LockMovers();
  // Makes a storage of another context this one's, with the elements that it has there: syncs a
  // context that it is pending in.
  void TakeOver(Storage& storage, const Movers&);
  // The same for a storage that is overwritten at once, so that what is pending there need not run.
  // False, with nothing changed, if the version is not this one.
  bool TakeOverToOverwrite(Storage& storage, std::optional<uint64_t> version,
                           const Movers&) noexcept;
  // Of the context of a trace: what it does to storages of others, to undo it. Null for all others.
  Journal* journal() const { return journal_; }
  void set_journal(Journal* journal) { journal_ = journal; }
  // Makes a storage that the trace has taken over its owner's again, as it was.
  void GiveBack(JournalEntry& taken);
  // The pending value of a storage is to be that of a tensor whose storage was `old`: an update, which
  // may take the memory of what `old` holds, and is what the storage holds if it is not taken.
  void TakesPlaceOf(Storage& storage, const Storage& old);
  // A new storage for data that exists.
  StoragePtr NewStorage(DataPtr data);
  // A new view whose elements nobody has asked for yet: nothing is recorded.
  StoragePtr NewView(const Shape& shape, backend::Device device, std::unique_ptr<View> view);
  // A storage holding a number (a scalar leaf or a constant); not pending, never an output.
  StoragePtr NewStorage(const Value& scalar, backend::Device device);
  // What a storage of any context holds now: data, perhaps of a run under way, or a leaf without
  // any, a number; neither while it is pending.
  struct Contents {
    DataPtr data;
    Value leaf;
    explicit operator bool() const { return data || leaf; }
  };
  static Contents Peek(Storage& storage);
  // The same after a sync of the context that the storage is pending in.
  absl::StatusOr<Contents> ContentsOf(Storage& storage);
  // Memory with the elements of a storage that is not a view, for the user to write to; null if the
  // storage is pending (again). `elements` is what it holds.
  static std::byte* Lend(Storage& storage, const Literal& elements);
  // A new storage with the same elements; no copy is made, since elements are never changed but
  // replaced.
  StoragePtr Snapshot(Storage& storage);

  // --- under the lock
  // The value to record with: the pending one, or the leaf for the data. None for a storage that
  // this context has not got: LockWithValues has it.
  Value ValueOf(Storage& storage, SiteId site) {
    if (!Owns(storage)) [[unlikely]]
      return {};
    if (LentMemory::exists.load(std::memory_order_relaxed)) [[unlikely]]
      SeeLent(storage.written());
    if (storage.view_ != nullptr) [[unlikely]] {
      ForgetUndone(storage);
      if (!IsCurrent(storage)) return Rederived(storage, site);
    }
    if (!storage.value_) [[unlikely]]
      return MakeLeaf(storage, site);
    return storage.value_;
  }
  // A new storage whose value is `value`, pending; perhaps a view, whose value was derived from the
  // base's at the version that it had when `view` was made, or later.
  StoragePtr NewPending(Value value, backend::Device device);
  StoragePtr NewPending(Value value, backend::Device device, std::unique_ptr<View> view);
  // Overwrites a storage of this context, or a view of one: `value` has its shape. Raises the
  // version and returns the old value, for the caller to release after the lock.
  [[nodiscard]] Value Write(Storage& storage, Value value);
  // Whether what the storage holds are its elements: of a view, the base was not written to since.
  static bool IsCurrent(const Storage& storage) {
    return storage.view_ == nullptr ||
           storage.view_->version_.load(std::memory_order_acquire) == storage.version();
  }
  // A stale view is no longer pending, until its elements are asked for. Returns its value, for the
  // caller to release after the lock.
  [[nodiscard]] Value Forget(Storage& storage);
  // Whether nobody can see the pending storage but through this view, which is all of it: it need
  // not be computed beside the view.
  static bool IsHidden(const Storage& storage, const Storage& view) {
    return view.view_ != nullptr && view.view_->base().get() == &storage &&
           storage.use_count() == 1 && storage.linked_ && view.view_->IsWhole(view.shape());
  }
  // The view has data: its base, which is hidden, is no longer pending but what is written there.
  void ResolveHidden(Storage& view);
  // The pending storages by creation, with their values. They stay pending until Resolve.
  void PendingStorages(std::vector<Storage*>& result);
  const Value& PendingValue(const Storage& storage) const { return storage.value_; }
  // The data that the pending value replaces, or null.
  const DataPtr& Replaced(const Storage& storage) const { return storage.replaced_; }
  // The value that it replaces if that is pending, too, and a check may keep it from being replaced.
  const Value& Before(const Storage& storage) const { return storage.before_; }
  void Resolve(Storage& storage, DataPtr data);
  // Recorded ops that only a run can tell to have failed. The next sync runs their checks, whether
  // or not anybody still wants their results; in the order of recording.
  struct Checked {
    NodePtr node;
    backend::Device device;
    FunctionName function;  // that recorded it; empty: the op itself
    // Its error was thrown already, as that of a failed step which this is the rest of: it runs only
    // if somebody still wants results that are computed from it.
    bool was_told = false;
    // It runs for what it does (an effect), and has no checks.
    bool is_effect = false;
  };
  void AddChecked(Checked checked) { checked_.push_back(std::move(checked)); }
  absl::Span<const Checked> checked() const { return checked_; }
  // The first `count` of them, if they are the device's: they run, or never will.
  void ForgetChecked(backend::Device device, std::size_t count) {
    const auto end = checked_.begin() + static_cast<std::ptrdiff_t>(count);
    const auto is_over = [&](const Checked& c) { return c.device == device || c.was_told; };
    checked_.erase(std::remove_if(checked_.begin(), end, is_over), end);
  }
  void ForgetGraphLeaves() { graph_leaves_.clear(); }
  // Of the graph that is being recorded: the data that a check of an earlier run may leave without
  // elements, if no program would keep what an update is written over: that of a tensor that was made
  // here, and no check of this graph does, or one that only takes other data.
  void DataToWaitFor(PooledVector<DataPtr>& result) const;
  // What will become of the updates of the graph that is being recorded; made when first asked for.
  const GraphOutcomePtr& outcome() {
    if (!outcome_) outcome_ = MakeIntrusive<GraphOutcome>();
    return outcome_;
  }
  const GraphOutcomePtr& outcome_or_null() const { return outcome_; }
  // The same, null if nobody has asked; a new graph begins.
  GraphOutcomePtr TakeOutcome() { return std::exchange(outcome_, nullptr); }
  // Nothing is pending that reads what may have failed.
  void ForgetDoubts() { reads_doubtful_ = false; }
  int64_t pending_count() const { return pending_count_; }
  ir::CounterShard& counters() { return counters_; }
  History history;  // since the last sync
  // Numbers of the newest runs of this context, one for each device that had any, for waiting.
  using LastRuns = absl::InlinedVector<std::pair<backend::Device, uint64_t>, 1>;
  LastRuns last_runs;
  static uint64_t& RunOn(backend::Device device, LastRuns& runs) {
    for (auto& [ran_on, number] : runs)
      if (ran_on == device) return number;
    return runs.emplace_back(device, 0).second;
  }
  // Of whoever syncs the context, from before it takes the lock until all is dispatched.
  ir::ForkMutex syncing;

  // --- without the lock
  // The graph that is being recorded has the generator's numbers between the states.
  void NoteDraw(const Generator& generator, PhiloxState before, PhiloxState after);
  // A failed run's fault, waiting for the next sync, read or wait of this context. Own lock: set by
  // the execution thread. The run was made when `told` faults had been told: the error that was thrown
  // since is not thrown again by an op of its gradient.
  void SetFailure(FaultPtr fault, uint64_t told = ~uint64_t{0});
  // A run of this context took no updates; its outcome may be null. Before SetFailure().
  void NoteNotTaken(const GraphOutcomePtr& outcome);
  // Tells it: the error, unless somebody was told before. Updates that are pending on what failed are
  // dropped, and what the failed graph drew of generators is given back.
  absl::Status TakeFailure();
  // The same for a fault that a read has met, of a run of this context or of another one.
  absl::Status Tell(const FaultPtr& fault);
  // The same for updates that are pending on what is known to have failed, whoever was told.
  absl::Status DropUpdatesByFailed();

  uint64_t id() const { return id_; }

 private:
  // Notes what a pending value is written over, where a check may fail.
  void KeepBefore(Storage& storage, const Value& old);
  explicit Context(int64_t max_graph_nodes);
  static Context& MakeCurrent();
  static Context& MakeForReading();
  template <class T, class... Args>
  friend IntrusivePtr<T> ir::MakeIntrusive(Args&&...);
  StoragePtr MakeStorage(const Shape& shape, backend::Device device);  // under the lock
  uint64_t NextStorageId() { return (id_ << 40) + ++storages_made_; }
  // Count the storages that name this context; all of them together hold one reference to it.
  void CountStorage();
  [[nodiscard]] bool UncountStorage() { return --storages_ == 0; }  // if so, Release after the lock
  void Link(Storage& storage);
  void Unlink(Storage& storage);
  void WaitForLock();
  // The leaf for the storage's data; none without any, which is how a storage is for the moment
  // between being taken over and being overwritten.
  Value MakeLeaf(Storage& storage, SiteId site);
  // Of data that the storage may not keep a leaf for: this graph's own.
  Value GraphLeaf(const DataPtr& data, const Storage& storage, SiteId site);
  // Under the lock: what the user has written to lent memory of a storage of this context becomes
  // its elements.
  void SeeLent(Storage& storage);
  // The same without the lock, of a storage of any context, or of the one that it is a view of.
  static void SeeLentAnywhere(Storage& storage);
  // This context's leaf for what a storage of another one holds.
  Value LeafFor(const Storage& storage, const Contents& contents, SiteId site);
  // Whose the storage is now, kept alive.
  static IntrusivePtr<Context> OwnerOf(const Storage& storage);
  Contents PeekLocked(Storage& storage);  // under the lock
  // A value that is derived from data, of a base that was hidden, becomes pending.
  void LinkDerived(Storage& storage);
  // The value of a stale view of this context, derived anew; none if its base is another one's.
  Value Rederived(Storage& storage, SiteId site);
  Value WriteView(Storage& storage, Value value);
  void CountDerived(const View& view);
  // A view that a run left to be derived anew is stale.
  static void ForgetUndone(Storage& storage);
  bool Recover(const Fault& fault);  // whether updates were dropped
  // Under the lock, of the pending storages. Values that are dropped are for the caller to release after
  // it.
  class FromFailed;
  // Drops the updates if one of them is computed from what failed.
  bool DropFailedUpdates(const std::vector<Storage*>& pending, FromFailed& from_failed,
                         PooledVector<Value>& dropped);
  // What else is computed from what failed has failed: no run needs to find that out.
  void FailPending(const std::vector<Storage*>& pending, FromFailed& from_failed,
                   PooledVector<Value>& dropped);
  // Syncs the storage's context if it is pending there, to be used in this one, and, still under
  // that context's lock, calls `then`.
  absl::Status SyncFor(Context& owner, Storage& storage, absl::FunctionRef<void()> then);
  // Under the lock: gives the storage to `heir`, which has counted it, as it is. Whether it was the
  // last one.
  [[nodiscard]] bool HandOver(Storage& storage, Context& heir);
  // Before a storage of `owner` is taken over, under that one's lock.
  void NoteTaken(Storage& storage, Context& owner);
  friend class Contexts;
  friend class Storage;
  friend class RefCounted<Context>;

  // The calling thread's, null before its first use.
  static LAZULI_FAST_THREAD_LOCAL Context* current_;
  static LAZULI_FAST_THREAD_LOCAL bool thread_has_ended_;

  // A lock of one word, given back by a plain store: recording takes it twice per op, almost never
  // against another thread.
  std::atomic<bool> locked_{false};
  Context* previous_context_ = nullptr;  // of all that there are
  Context* next_context_ = nullptr;
  const uint64_t id_;
  Storage* first_ = nullptr;  // pending storages, in the order in which they became so
  Storage* last_ = nullptr;
  int64_t pending_count_ = 0;
  int64_t storages_ = 0;
  uint64_t storages_made_ = 0;
  ir::CounterShard counters_;
  PooledVector<Checked> checked_;
  // Leaves for data that other contexts own or that a check may leave without elements, until the next
  // sync: so that one tensor is one parameter here too.
  absl::flat_hash_map<const DataHandle*, IntrusivePtr<DataNode>> graph_leaves_;
  bool reads_doubtful_ = false;  // the graph has a leaf that a check may leave without elements
  GraphOutcomePtr outcome_;
  Journal* journal_ = nullptr;
  ir::ForkMutex failure_mu_;
  FaultPtr failure_;
  FaultPtr last_told_;                                 // by this context
  absl::InlinedVector<GraphOutcomePtr, 1> not_taken_;  // of failures that are not told yet
};

}  // namespace lazuli::lazy
