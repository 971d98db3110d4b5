// Pointers of a thread that are rarely asked for.
#pragma once

#include <pthread.h>

#include "ir/support/check.h"

namespace lazuli::ir {

// A pointer for each thread, null at first, which takes nothing of the block that libraries share
// (ir/support/thread_local.h) and costs a call. The object lives as long as the process.
template <class T>
class ThreadSlot {
 public:
  ThreadSlot() {
    LAZULI_CHECK(pthread_key_create(&key_, nullptr) == 0, "no key for a thread's data");
  }
  ThreadSlot(const ThreadSlot&) = delete;
  ThreadSlot& operator=(const ThreadSlot&) = delete;

  T* Get() const { return static_cast<T*>(pthread_getspecific(key_)); }
  void Set(T* pointer) const {
    LAZULI_CHECK(pthread_setspecific(key_, pointer) == 0, "no memory for a thread's data");
  }

 private:
  pthread_key_t key_{};
};

}  // namespace lazuli::ir
