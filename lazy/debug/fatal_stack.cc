#include "lazy/debug/fatal_stack.h"

#include <array>

#include "absl/debugging/failure_signal_handler.h"
#include "absl/debugging/symbolize.h"
#include <execinfo.h>
#include <unistd.h>

#include "ir/support/flags.h"

namespace lazuli::lazy {
namespace {

// Behind what Abseil writes to standard error by itself: it follows frame pointers, which few
// libraries have, this the tables of unwinding.
void WriteStack(const char* text) {
  if (text != nullptr) return;
  std::array<void*, 64> frames;
  const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  ::backtrace_symbols_fd(frames.data(), count, STDERR_FILENO);
}

}  // namespace

void InitializeFatalStack() {
  static const bool installed = [] {
    if (!flags().dump_fatal_stack()) return false;
    absl::InitializeSymbolizer("/proc/self/exe");
    std::array<void*, 1> frame;
    ::backtrace(frame.data(), 1);  // loads what it needs, which a handler of signals may not
    absl::FailureSignalHandlerOptions options;
    options.writerfn = WriteStack;
    absl::InstallFailureSignalHandler(options);
    return true;
  }();
  (void)installed;
}

}  // namespace lazuli::lazy
