// What the linker puts between this module and the functions of Python that may end a thread (gil.h):
// the thread stays in the innermost frame of C++, so that no destructor of the others runs.
#include <cxxabi.h>

#include "python/src/gil.h"

extern "C" {

#define ROW(Result, name, parameters, arguments) \
  Result __real_##name parameters;  /* NOLINT */ \
  Result __wrap_##name parameters { /* NOLINT */ \
    try {                                        \
      return __real_##name arguments;            \
    } catch (abi::__forced_unwind&) {            \
      lazuli::python::StayUntilTheEnd();         \
    }                                            \
  }
#include "python/src/calls_of_python.def"
#undef ROW

}  // extern "C"
