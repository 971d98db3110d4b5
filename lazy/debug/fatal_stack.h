// XLA_DUMP_FATAL_STACK: the stack of a process that a signal ends.
#pragma once

namespace lazuli::lazy {

// Installs the handlers if the flag is set; idempotent.
void InitializeFatalStack();

}  // namespace lazuli::lazy
