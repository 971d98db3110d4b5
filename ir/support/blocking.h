// Waits of a thread that has a lock of an interpreter's, and functions that a device waits for.
//
// Python's threads hold its lock while they record. A run may call Python, which needs
// the lock: whoever waits for a run, or for another thread that may, gives it back meanwhile.
#pragma once

#include <mutex>

#include "ir/support/namespaces.h"

namespace lazuli::ir {

// `begin` is called before a wait, without any lock that a wait needs; `end` gets what it returned.
struct WaitHooks {
  void* (*begin)() = nullptr;
  void (*end)(void*) = nullptr;
};
void SetWaitHooks(WaitHooks hooks);

// Around a wait that may take long. Declared before the lock of what is waited for: it ends later.
class WaitScope {
 public:
  WaitScope();
  ~WaitScope();
  WaitScope(const WaitScope&) = delete;
  WaitScope& operator=(const WaitScope&) = delete;

 private:
  void (*end_)(void*) = nullptr;
  void* token_ = nullptr;
};

// Takes a mutex that is held during calls of users' functions.
template <class Mutex>
std::unique_lock<Mutex> LockByWaiting(Mutex& mutex) {
  std::unique_lock<Mutex> lock(mutex, std::try_to_lock);
  if (lock.owns_lock()) return lock;
  const WaitScope scope;
  lock.lock();
  return lock;
}

// While the thread of a device runs a program, which may call functions of users.
class RunScope {
 public:
  RunScope();
  ~RunScope();
  RunScope(const RunScope&) = delete;
  RunScope& operator=(const RunScope&) = delete;
  static bool IsActive();  // on the calling thread

 private:
  const bool outer_;  // whether a run's function runs another program
};

}  // namespace lazuli::ir
