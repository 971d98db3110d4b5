// fork(): a process that has used the library may be forked, and both go on with it.
//
// The child of a fork has one thread, the one that forked. A lock that another thread held stays
// locked in it for ever, and the library's own threads are missing. Therefore the library comes to
// rest before the process forks. Every object that has a lock or a thread is a ForkParticipant. The
// fork waits until each of them is idle and holds them all while the process forks. In the child each
// participant starts anew and makes its threads when they are needed.
//
// The wait ends after ten seconds, for example because a run takes longer, a thread compiles, or the
// fork happens inside a call of the library. Then the parent goes on as if nothing had happened. In
// the child, calls that would need the library's threads throw one clear error.
#pragma once

#include <chrono>
#include <mutex>
#include <new>

#include "absl/status/status.h"

#include "ir/support/namespaces.h"

namespace lazuli::ir {

class ForkParticipant {
 public:
  ForkParticipant() = default;
  virtual ~ForkParticipant() = default;
  ForkParticipant(const ForkParticipant&) = delete;
  ForkParticipant& operator=(const ForkParticipant&) = delete;

  // Makes this idle until Release(). Returns false at once if something is under way.
  virtual bool TryHold() = 0;
  virtual void Release() = 0;
  // Called in the child, by its only thread. `held`: TryHold() succeeded before the fork.
  virtual void StartAnew(bool held) = 0;

 protected:
  // Called at the end of the constructor and at the beginning of the destructor.
  void Join();
  void Leave();

 private:
  friend class ForkRegistry;
  ForkParticipant* previous_ = nullptr;
  ForkParticipant* next_ = nullptr;
};

// A mutex that is free in the child of a fork.
class ForkMutex final : private ForkParticipant {
 public:
  ForkMutex() { Join(); }
  ~ForkMutex() override { Leave(); }
  void lock() { mutex_.lock(); }
  void unlock() { mutex_.unlock(); }
  bool try_lock() { return mutex_.try_lock(); }

 private:
  bool TryHold() override { return mutex_.try_lock(); }
  void Release() override { mutex_.unlock(); }
  void StartAnew(bool held) override {
    if (held)
      mutex_.unlock();
    else
      new (&mutex_) std::mutex;
  }

  std::mutex mutex_;
};

// OK, or why this process can use no threads of the library: it was forked from one that did not
// come to rest.
absl::Status ForkError();

// How long a fork waits at most, in place of ten seconds.
void SetForkPatience(std::chrono::milliseconds patience);

}  // namespace lazuli::ir
