// Thread-local variables of the hot path.
#pragma once

#include <memory>
#include <utility>

#include <cxxabi.h>

#include "ir/support/namespaces.h"

// A thread-local variable of a few bytes, without a destructor, that one load reaches, also from a
// shared library. It lies in the block that the loader sets aside for each thread. Libraries that are
// loaded later by dlopen(), as Python's are, share some 500 bytes of that block. So large variables
// must not lie there; make them a PerThread.
//
//   LAZULI_FAST_THREAD_LOCAL bool draining = false;
#define LAZULI_FAST_THREAD_LOCAL __attribute__((tls_model("initial-exec"))) constinit thread_local

namespace lazuli::ir {

namespace internal {
// Stands for the library that this is compiled into, which is not unloaded before its functions ran.
extern void* const this_library asm("__dso_handle") __attribute__((visibility("hidden")));
}  // namespace internal

// The calling thread's T, made at first use and as fast to reach. It is destroyed when the thread
// ends. Destructors that ask for it after that get a T that is never destroyed.
template <class T>
class PerThread {
 public:
  static T& Get() { return here_ != nullptr ? *here_ : Make(); }

 private:
  // Registered by hand: a thread_local object for it would lie in that block, too.
  static void End(void*) {
    const std::unique_ptr<T> object(std::exchange(here_, nullptr));
    ended_ = true;
  }
  [[gnu::noinline]] static T& Make() {
    if (!ended_)
      abi::__cxa_thread_atexit(End, nullptr, const_cast<void**>(&internal::this_library));
    here_ = std::make_unique<T>().release();
    return *here_;
  }

  static inline LAZULI_FAST_THREAD_LOCAL T* here_ = nullptr;
  static inline LAZULI_FAST_THREAD_LOCAL bool ended_ = false;
};

}  // namespace lazuli::ir
