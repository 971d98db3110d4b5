// LAZULI_CHECK(condition, message parts...): aborts with message and location when an invariant of
// ours is broken.
//
// Never for anything a user can cause: those are Status or Error (see docs/architecture.md,
// errors).
#pragma once

#include "ir/support/str.h"

namespace lazuli::ir::internal {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition,
                              const std::string& message);

}  // namespace lazuli::ir::internal

#define LAZULI_CHECK(condition, ...)                                       \
  do {                                                                     \
    if (!(condition)) [[unlikely]]                                         \
      ::lazuli::ir::internal::CheckFailed(__FILE__, __LINE__, #condition,  \
                                          ::lazuli::ir::Str(__VA_ARGS__)); \
  } while (false)

#ifdef NDEBUG
#define LAZULI_DCHECK(condition, ...) \
  do {                                \
  } while (false && (condition))
#else
#define LAZULI_DCHECK(condition, ...) LAZULI_CHECK(condition, __VA_ARGS__)
#endif
