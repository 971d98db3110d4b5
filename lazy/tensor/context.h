// Context: a set of pending storages that one sync turns into one program. Each thread has its own
// by default.
//
// Every recording takes the context's lock, so several threads may share a context; threads with
// contexts of their own never see each other's half-built graphs. An op that meets a tensor pending
// in another context syncs that context first. No two context locks are ever held together, and no
// storage is destroyed under one. Any number of threads may read a tensor; one that writes to it in
// place must be the only one that uses it then, as for any object.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "ir/support/hash_map.h"
#include "ir/support/metrics.h"
#include "ir/support/thread_local.h"
#include "lazy/tensor/engine.h"
#include "lazy/tensor/history.h"
#include "lazy/tensor/leaves.h"
#include "lazy/tensor/storage.h"

namespace lazuli::lazy {

class Context : public RefCounted<Context> {
 public:
  // The calling thread's; made on first use.
  static Context& Current() { return current_ != nullptr ? *current_ : MakeCurrent(); }
  // Makes `context` the calling thread's and returns the one it had.
  static IntrusivePtr<Context> Exchange(IntrusivePtr<Context> context);
  static IntrusivePtr<Context> Create();
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

  // --- without the lock
  // Makes sure that `storage` is not pending in a context other than this one.
  void Adopt(Storage& storage) {
    if (storage.context_ != this) [[unlikely]]
      AdoptForeign(storage);
  }
  // As Adopt, for a storage that is about to be written: from now on it belongs to this context.
  void AdoptForWrite(Storage& storage);
  // A new storage for data that exists.
  StoragePtr NewStorage(DataPtr data);
  // A storage holding a number (a scalar leaf or a constant); not pending, never an output.
  StoragePtr NewStorage(const Value& scalar, backend::Device device);
  // The data of a storage that is not pending in any context: null while pending here. Numbers are
  // materialised.
  DataPtr Data(Storage& storage);
  // The number a storage holds, if it is one: then the value is its ScalarNode.
  Value ScalarValue(Storage& storage);
  // A new storage with the same elements; no copy is made, since elements are never changed but
  // replaced.
  StoragePtr Snapshot(Storage& storage);

  // --- under the lock The value to record with: the pending one, or the leaf for the data.
  // `storage` has been adopted.
  Value ValueOf(Storage& storage, SiteId site);
  // A new storage whose value is `value`, pending.
  StoragePtr NewPending(Value value, backend::Device device);
  // Overwrites a storage that was adopted for writing: `value` has its shape. Raises the version
  // and returns the old value, for the caller to release after the lock.
  [[nodiscard]] Value Write(Storage& storage, Value value);
  // The pending storages by creation, with their values. They stay pending until Resolve.
  void PendingStorages(std::vector<Storage*>& result);
  const Value& PendingValue(const Storage& storage) const { return storage.value_; }
  // The data that the pending value replaces, or null; perhaps no longer alive.
  const DataHandle* Replaced(const Storage& storage) const { return storage.replaced_; }
  void Resolve(Storage& storage, DataPtr data);
  void ForgetForeignLeaves() { foreign_leaves_.clear(); }
  int64_t pending_count() const { return pending_count_; }
  ir::CounterShard& counters() { return counters_; }
  History history;        // since the last sync; LAZULI_MAX_GRAPH_NODES when the context was made
  uint64_t last_run = 0;  // number of the newest run of this context, for waiting

  // A failed run's error, waiting for the next sync, read or wait of this context. Own lock: set by
  // the execution thread.
  void SetFailure(absl::Status status);
  absl::Status TakeFailure();
  // Drops the failure if it is this one, which is being reported another way.
  void ForgetFailure(const absl::Status& reported);

  uint64_t id() const { return id_; }

 private:
  Context();
  static Context& MakeCurrent();
  template <class T, class... Args>
  friend IntrusivePtr<T> ir::MakeIntrusive(Args&&...);
  StoragePtr MakeStorage(Shape shape, backend::Device device);  // under the lock
  uint64_t NextStorageId() { return (id_ << 40) + ++storages_made_; }
  // Count the storages that name this context; all of them together hold one reference to it.
  void CountStorage();
  [[nodiscard]] bool UncountStorage() { return --storages_ == 0; }  // if so, Release after the lock
  void Link(Storage& storage);
  void Unlink(Storage& storage);
  void WaitForLock();
  void AdoptForeign(Storage& storage);
  friend class Storage;
  friend class RefCounted<Context>;

  // The calling thread's, null before its first use.
  static LAZULI_FAST_THREAD_LOCAL Context* current_;

  // A lock of one word, given back by a plain store: recording takes it twice an op, almost never
  // against another thread.
  std::atomic<bool> locked_{false};
  const uint64_t id_;
  Storage* first_ = nullptr;  // pending storages, in the order in which they became so
  Storage* last_ = nullptr;
  int64_t pending_count_ = 0;
  int64_t storages_ = 0;
  uint64_t storages_made_ = 0;
  ir::CounterShard counters_;
  // Leaves for data that other contexts own, until the next sync: so that one tensor is one
  // parameter here too.
  HashMap<const DataHandle*, NodePtr> foreign_leaves_;
  std::mutex failure_mu_;
  absl::Status failure_;
};

}  // namespace lazuli::lazy
