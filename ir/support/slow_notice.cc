#include "ir/support/slow_notice.h"

#include <cstdio>

#include <unistd.h>

#include "ir/support/thread_local.h"

namespace lazuli::ir {
namespace {
LAZULI_FAST_THREAD_LOCAL SlowNotice* current = nullptr;
}  // namespace

SlowNotice::SlowNotice(std::chrono::milliseconds after, absl::FunctionRef<std::string()> text)
    : when_(std::chrono::steady_clock::now() + after), text_(text), outer_(current) {
  current = this;
}

SlowNotice::~SlowNotice() { current = outer_; }

void SlowNotice::Check() {
  if (current == nullptr || std::chrono::steady_clock::now() < current->when_) return;
  current->when_ = std::chrono::steady_clock::time_point::max();
  if (isatty(STDERR_FILENO) != 0) std::fprintf(stderr, "lazuli: %s\n", current->text_().c_str());
}

}  // namespace lazuli::ir
