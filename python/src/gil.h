// Python's lock around what runs without it, and for threads of the library that call Python.
//
// While the interpreter ends, a daemon thread that asks for the lock is ended by Python, by unwinding its
// stack; the stack holds destructors and handlers of C++, which end the process instead. Any function of
// Python that runs code asks for the lock, since others get it in between. Such a thread stays where it
// is until the process is gone, as it does from Python 3.14 on (calls_of_python.def). Nor may it be inside
// a call when the process destroys what the call works with, such as the compiler's own objects: before
// the interpreter goes, no more calls of daemon threads begin, and those under way end.
#pragma once

#include <atomic>
#include <chrono>
#include <thread>

#include <pybind11/pybind11.h>
#include <unistd.h>

namespace lazuli::python {

[[noreturn]] inline void StayUntilTheEnd() {
  while (true) pause();
}

// Calls that have given the lock back, one for each thread however deep it is in them.
class CallsWithoutGil {
 public:
  static void Enter() {
    if (depth_++ > 0) return;
    ++threads_;
    if (ends_) {
      --threads_;
      StayUntilTheEnd();
    }
  }
  static void Leave() {
    if (--depth_ > 0) return;
    --threads_;
    if (ends_) StayUntilTheEnd();
  }
  // A thread of the library's own that calls Python is no daemon thread: somebody waits for it.
  static void Exempt() { ++depth_; }
  static void EndExemption() { --depth_; }
  // From now on the calling thread is the only one that begins calls or returns from them.
  static void End() {
    depth_ = 1;  // of this thread, which goes on
    ends_ = true;
  }
  // In the child of a fork, which has this thread alone.
  static void ForgetOthers() { threads_ = depth_ > 0 ? 1 : 0; }
  // Until no other thread is in a call; one that takes long is left there.
  static void WaitForOthers() {
    constexpr auto kLongest = std::chrono::seconds(10);
    const auto until = std::chrono::steady_clock::now() + kLongest;
    while (threads_ > 0 && std::chrono::steady_clock::now() < until)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }

 private:
  static inline std::atomic<int> threads_{0};
  static inline std::atomic<bool> ends_{false};
  static inline thread_local int depth_ = 0;
};

// Gives the lock back for the length of a scope.
class ReleasedGil {
 public:
  ReleasedGil() : thread_(PyEval_SaveThread()) { CallsWithoutGil::Enter(); }
  ~ReleasedGil() {
    CallsWithoutGil::Leave();
    PyEval_RestoreThread(thread_);
  }
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* const thread_;
};

// Has the lock for the length of a scope, on a thread that may have it already.
class AcquiredGil {
 public:
  AcquiredGil()
      : is_of_python_(PyGILState_GetThisThreadState() != nullptr), state_(PyGILState_Ensure()) {
    if (!is_of_python_) CallsWithoutGil::Exempt();
  }
  ~AcquiredGil() {
    if (!is_of_python_) CallsWithoutGil::EndExemption();
    PyGILState_Release(state_);
  }
  AcquiredGil(const AcquiredGil&) = delete;
  AcquiredGil& operator=(const AcquiredGil&) = delete;

 private:
  const bool is_of_python_;  // the thread
  const PyGILState_STATE state_;
};

}  // namespace lazuli::python
