#include "lazy/debug/fatal_stack.h"

#include "absl/debugging/failure_signal_handler.h"
#include "absl/debugging/symbolize.h"

#include "ir/support/flags.h"

namespace lazuli::lazy {

void InitializeFatalStack() {
  static const bool installed = [] {
    if (!flags().dump_fatal_stack()) return false;
    absl::InitializeSymbolizer("/proc/self/exe");
    absl::InstallFailureSignalHandler({});
    return true;
  }();
  (void)installed;
}

}  // namespace lazuli::lazy
