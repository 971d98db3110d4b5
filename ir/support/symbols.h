// Functions and lines of code addresses, for call stacks that are shown.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/support/namespaces.h"

namespace lazuli::ir {

struct Symbol {
  std::string function;  // "main", "ns::Net::forward(lazuli::Tensor const&)"; "?" if nobody knows
  std::string file;      // the binary's where there is no line
  uint32_t line = 0;
};

// Who reads debug information. Without one, functions are known where the linker knows them.
using Symbolizer = std::vector<Symbol> (*)(uintptr_t address);
void SetSymbolizer(Symbolizer symbolizer);

// What the address stands for, looked up once in a process. Several where functions are inlined, the
// innermost first.
std::vector<Symbol> SymbolsOf(uintptr_t address);

}  // namespace lazuli::ir
