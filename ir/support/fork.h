// fork(): a process that has used the library may be forked, and both go on with it.
//
// The child has only the thread that forked. So before, the library comes to rest: what holds a
// lock or has work for a thread of its own takes part, and is held while the process forks. In the
// child each starts anew, with threads made when they are needed again. Who does not come to rest
// within ten seconds (a run that takes longer, a thread that compiles, a fork from inside a call)
// is not waited for: the parent goes on as if nothing were, and in the child what would need the
// library's threads is one clear error.
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

  // Comes to rest and stays so; false, at once, if something is under way.
  virtual bool TryHold() = 0;
  virtual void Release() = 0;
  // In the child, whose only thread this is. Unless `held`, it was not at rest.
  virtual void StartAnew(bool held) = 0;

 protected:
  // Takes part from now on, once it is made; no longer, before it goes.
  void Join();
  void Leave();

 private:
  friend class ForkRegistry;
  ForkParticipant* previous_ = nullptr;
  ForkParticipant* next_ = nullptr;
};

// A mutex that nobody holds in the child of a fork: for what threads share that may be anywhere.
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
