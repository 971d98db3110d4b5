#include "ir/support/slow_notice.h"

#include <algorithm>
#include <cstdio>

#include <unistd.h>

#include "ir/support/flags.h"
#include "ir/support/str.h"
#include "ir/support/thread_local.h"

namespace lazuli::ir {
namespace {
LAZULI_FAST_THREAD_LOCAL SlowNotice* current = nullptr;
constexpr std::chrono::milliseconds kLeastBetween{1000};
}  // namespace

SlowNotice::SlowNotice(std::chrono::milliseconds after, absl::FunctionRef<std::string()> text)
    : after_(after), when_(std::chrono::steady_clock::now() + after), text_(text), outer_(current) {
  current = this;
}

SlowNotice::~SlowNotice() { current = outer_; }

void SlowNotice::Check(std::string_view at) {
  if (current == nullptr || std::chrono::steady_clock::now() < current->when_) return;
  current->after_ = std::max(2 * current->after_, kLeastBetween);
  current->when_ = std::chrono::steady_clock::now() + current->after_;
  if (!flags().progress() || isatty(STDERR_FILENO) == 0) return;
  std::fputs(
      Str("lazuli: ", current->text_(), at.empty() ? "" : Str("; now at ", at), "\n").c_str(),
      stderr);
}

}  // namespace lazuli::ir
