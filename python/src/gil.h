// Python's lock around what runs without it, and for threads of the library that call Python.
//
// While the interpreter ends, a daemon thread that asks for the lock is ended by Python, by unwinding its
// stack; the stack holds destructors and handlers of C++, which end the process instead. Such a thread
// stays where it is until the process is gone, as it does from Python 3.14 on.
#pragma once

#include <cxxabi.h>
#include <pybind11/pybind11.h>
#include <unistd.h>

namespace lazuli::python {

[[noreturn]] inline void StayUntilTheEnd() {
  while (true) pause();
}

// Gives the lock back for the length of a scope.
class ReleasedGil {
 public:
  ReleasedGil() : thread_(PyEval_SaveThread()) {}
  ~ReleasedGil() {
    try {
      PyEval_RestoreThread(thread_);
    } catch (abi::__forced_unwind&) {
      StayUntilTheEnd();
    }
  }
  ReleasedGil(const ReleasedGil&) = delete;
  ReleasedGil& operator=(const ReleasedGil&) = delete;

 private:
  PyThreadState* const thread_;
};

// Has the lock for the length of a scope, on a thread that may have it already.
class AcquiredGil {
 public:
  AcquiredGil() : state_(Acquire()) {}
  ~AcquiredGil() { PyGILState_Release(state_); }
  AcquiredGil(const AcquiredGil&) = delete;
  AcquiredGil& operator=(const AcquiredGil&) = delete;

 private:
  static PyGILState_STATE Acquire() {
    try {
      return PyGILState_Ensure();
    } catch (abi::__forced_unwind&) {
      StayUntilTheEnd();
    }
  }
  const PyGILState_STATE state_;
};

}  // namespace lazuli::python
