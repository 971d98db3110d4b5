// Thread-local variables of the hot path.
#pragma once

#include <memory>

#include "ir/support/namespaces.h"

// A thread-local of a few bytes without a destructor that is reached by one load, also from a
// shared library: it lies in the block that the loader sets aside for each thread. All plain
// thread_locals of the library then lie there too, and libraries that come later by dlopen()
// (Python's) share some 500 bytes for them: what is large is a PerThread.
//
//   LAZULI_FAST_THREAD_LOCAL bool draining = false;
#define LAZULI_FAST_THREAD_LOCAL __attribute__((tls_model("initial-exec"))) constinit thread_local

namespace lazuli::ir {

// The T of the calling thread, made at first use, as fast to reach. It goes with the thread; what
// asks for it later still, from destructors, gets one that stays.
template <class T>
class PerThread {
 public:
  static T& Get() { return here_ != nullptr ? *here_ : Make(); }

 private:
  struct Owner {
    std::unique_ptr<T> object;
    ~Owner() {
      here_ = nullptr;
      ended_ = true;
    }
  };

  [[gnu::noinline]] static T& Make() {
    if (ended_) return *std::make_unique<T>().release();
    thread_local Owner owner{std::make_unique<T>()};
    here_ = owner.object.get();
    return *here_;
  }

  static inline LAZULI_FAST_THREAD_LOCAL T* here_ = nullptr;
  static inline LAZULI_FAST_THREAD_LOCAL bool ended_ = false;
};

}  // namespace lazuli::ir
