#include "backend/cpu/codegen/symbolizer.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "llvm/DebugInfo/Symbolize/Symbolize.h"
#include <dlfcn.h>
#include <link.h>

#include "ir/support/symbols.h"

namespace lazuli::cpu {
namespace {

using ir::Symbol;

// The file that the address was loaded from, and the address in it.
std::pair<std::string, uint64_t> InFile(uintptr_t address) {
  Dl_info info{};
  link_map* loaded = nullptr;
  if (dladdr1(reinterpret_cast<void*>(address), &info, reinterpret_cast<void**>(&loaded),
              RTLD_DL_LINKMAP) == 0 ||
      loaded == nullptr)
    return {};
  const std::string name = loaded->l_name;  // empty of the program itself
  return {name.empty() ? "/proc/self/exe" : name, address - loaded->l_addr};
}

// Called by one thread at a time.
std::vector<Symbol> Symbolize(uintptr_t address) {
  static auto* const symbolizer = new llvm::symbolize::LLVMSymbolizer;
  const auto [file, offset] = InFile(address);
  if (file.empty()) return {};
  auto found = symbolizer->symbolizeInlinedCode(
      file, {offset, llvm::object::SectionedAddress::UndefSection});
  if (!found) {
    llvm::consumeError(found.takeError());
    return {};
  }
  std::vector<Symbol> symbols;
  for (uint32_t i = 0; i < found->getNumberOfFrames(); ++i) {
    const llvm::DILineInfo& frame = found->getFrame(i);
    if (frame.FunctionName == llvm::DILineInfo::BadString) continue;
    const bool has_line = frame.FileName != llvm::DILineInfo::BadString;
    symbols.push_back({frame.FunctionName, has_line ? frame.FileName : file, frame.Line});
  }
  return symbols;
}

}  // namespace

void InstallSymbolizer() { ir::SetSymbolizer(&Symbolize); }

}  // namespace lazuli::cpu
