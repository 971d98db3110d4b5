// Lines of code addresses from a program's debug information, read by LLVM.
#pragma once

namespace lazuli::cpu {

// From now on ir::SymbolsOf asks LLVM. Idempotent.
void InstallSymbolizer();

}  // namespace lazuli::cpu
