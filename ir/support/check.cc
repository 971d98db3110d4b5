#include "ir/support/check.h"

#include <cstdio>
#include <cstdlib>

namespace lazuli::ir::internal {

void CheckFailed(const char* file, int line, const char* condition, const std::string& message) {
  std::fprintf(stderr, "lazuli: %s:%d: check failed: %s%s%s\n", file, line, condition,
               message.empty() ? "" : ": ", message.c_str());
  std::abort();
}

}  // namespace lazuli::ir::internal
