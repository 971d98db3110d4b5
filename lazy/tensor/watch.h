// Watch: who wants to know what a function uses while it is recorded, so that its program can be run
// again without the function.
//
// A thread has at most one. It sees the tensors that ops are about to read and write, random numbers,
// numbers that an optimiser counts on the host, and what makes a replay impossible. Without one, an
// op costs one load more.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/types/span.h"

#include "ir/graph/node.h"
#include "ir/support/pool.h"
#include "ir/support/thread_local.h"
#include "lazy/tensor/random.h"

namespace lazuli::lazy {

class Context;
class Storage;
class Tensor;
class TensorImpl;
class Watch;
class NumbersOnly;

namespace internal {
inline LAZULI_FAST_THREAD_LOCAL Watch* watch = nullptr;
inline LAZULI_FAST_THREAD_LOCAL NumbersOnly* numbers_only = nullptr;
}  // namespace internal

// What a function does on the host beside its tensors, as an optimiser that counts its steps. A replay
// does it again.
class HostAction {
 public:
  virtual ~HostAction() = default;
  // Calls what takes the numbers of the next time (NumbersOnly); changes nothing.
  virtual void TakeNumbers() = 0;
  // Changes what TakeNumbers() has computed, or does something of its own.
  virtual void Commit() = 0;
  // What acts: two recordings with the same one do the same.
  virtual const void* actor() const = 0;
};

class Watch {
 public:
  static Watch* Current() { return internal::watch; }

  // An op is about to read or write the tensor, or a storage that is no tensor's. Without locks.
  virtual void Touch(const Tensor& tensor) = 0;
  virtual void Touch(Storage& storage) = 0;
  // The same under the lock of the context that is recorded, which has the storage.
  virtual void TouchLocked(Storage& storage) = 0;
  // The four words of a generator's state are numbers of an op that draws so many numbers.
  virtual void Draw(const Generator& generator, int64_t numbers,
                    absl::Span<const ir::Value> words) = 0;
  // The gradient of a tensor is about to be looked at, or to change.
  virtual void NoteGradUse(TensorImpl& tensor) = 0;
  virtual void NoteGrad(TensorImpl& tensor) = 0;
  // A tensor was made that shares a storage with another one and has no history (Detach).
  virtual void NoteAlias(TensorImpl& alias) = 0;
  // The storage, the dims or the flag of a tensor are about to change.
  virtual void NoteChange(TensorImpl& tensor, const char* what) = 0;
  // The context is about to be synced, or something is read.
  virtual void NoteSync(const Context& context) = 0;
  virtual void NoteRead() = 0;
  // It cannot be replayed; the line is that of the call.
  virtual void Refuse(std::string why) = 0;
  // An op takes numbers, as `what` says; they are an action's if one is open.
  virtual void Numbers(absl::Span<const ir::Value> numbers, uint64_t what) = 0;
  virtual void Open(std::shared_ptr<HostAction> action) = 0;
  virtual void Close() = 0;
  virtual bool has_open_action() const = 0;

  class Scope {
   public:
    explicit Scope(Watch* watch) : outer_(std::exchange(internal::watch, watch)) {}
    ~Scope() { internal::watch = outer_; }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Watch* outer_;
  };

 protected:
  ~Watch() = default;
};

// While one lives, updates of many tensors that this thread records are not: their numbers are taken.
class NumbersOnly {
 public:
  NumbersOnly() : outer_(std::exchange(internal::numbers_only, this)) {}
  ~NumbersOnly() { internal::numbers_only = outer_; }
  NumbersOnly(const NumbersOnly&) = delete;
  NumbersOnly& operator=(const NumbersOnly&) = delete;
  static NumbersOnly* Current() { return internal::numbers_only; }

  static constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;  // of the hash of what takes numbers

  void Add(uint64_t cell) { cells_.push_back(cell); }
  void Mix(uint64_t what) { what_ = what_ * kFactor + what; }
  absl::Span<const uint64_t> cells() const { return cells_; }
  uint64_t what() const { return what_; }

 private:
  NumbersOnly* outer_;
  ir::PooledVector<uint64_t> cells_;
  uint64_t what_ = 0;
};

}  // namespace lazuli::lazy
