#include "ir/support/symbols.h"

#include <atomic>
#include <cstdlib>
#include <mutex>

#include "absl/container/flat_hash_map.h"
#include <cxxabi.h>
#include <dlfcn.h>

#include "ir/support/fork.h"

namespace lazuli::ir {
namespace {

std::vector<Symbol> LinkerSymbol(uintptr_t address) {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(address), &info) == 0) return {};
  Symbol symbol{.function = "?", .file = info.dli_fname != nullptr ? info.dli_fname : "?"};
  if (info.dli_sname != nullptr) {
    int status = 0;
    char* const name = abi::__cxa_demangle(info.dli_sname, nullptr, nullptr, &status);
    symbol.function = name != nullptr ? name : info.dli_sname;
    std::free(name);
  }
  return {symbol};
}

std::atomic<Symbolizer> current_symbolizer{nullptr};

struct KnownSymbols {
  ForkMutex mutex;
  absl::flat_hash_map<uintptr_t, std::vector<Symbol>> of;
};

}  // namespace

void SetSymbolizer(Symbolizer symbolizer) { current_symbolizer = symbolizer; }

std::vector<Symbol> SymbolsOf(uintptr_t address) {
  static auto* const known = new KnownSymbols;
  const std::lock_guard lock(known->mutex);
  const auto [it, added] = known->of.try_emplace(address);
  if (added) {
    const Symbolizer symbolizer = current_symbolizer;
    if (symbolizer != nullptr) it->second = symbolizer(address);
    if (it->second.empty()) it->second = LinkerSymbol(address);
  }
  return it->second;
}

}  // namespace lazuli::ir
