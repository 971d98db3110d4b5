#include "backend/cpu/codegen/machine_code.h"

#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "llvm/ExecutionEngine/JITLink/JITLink.h"
#include "llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h"
#include <dlfcn.h>

#include "backend/cpu/codegen/jit.h"
#include "ir/support/check.h"
#include "ir/support/status.h"

namespace lazuli::cpu {
namespace {

namespace jitlink = llvm::jitlink;
using llvm::orc::ExecutorAddr;
using llvm::orc::ExecutorSymbolDef;

constexpr std::string_view kDoing = "loading a kernel";

class LinkedCode final : public MachineCode {
 public:
  LinkedCode(std::unique_ptr<jitlink::InProcessMemoryManager> memory, int64_t bytes)
      : memory_(std::move(memory)), bytes_(bytes) {}
  ~LinkedCode() override {
    if (code_) llvm::consumeError(memory_->deallocate(std::move(code_)));
  }

  void* Lookup(std::string_view function) const override {
    const auto found =
        absl::c_find_if(functions_, [&](const auto& entry) { return entry.first == function; });
    LAZULI_CHECK(found != functions_.end(), "no function ", function);
    return found->second;
  }
  int64_t bytes() const override { return bytes_; }

 private:
  friend class Link;
  std::unique_ptr<jitlink::InProcessMemoryManager> memory_;
  jitlink::JITLinkMemoryManager::FinalizedAlloc code_;
  std::vector<std::pair<std::string, void*>> functions_;
  int64_t bytes_;
};

// What the linker asks while it links `code`. Each question is answered at once, so that it is done
// when link() returns.
class Link final : public jitlink::JITLinkContext {
 public:
  Link(LinkedCode& code, absl::Status& status)
      : JITLinkContext(nullptr), code_(code), status_(status) {}

  jitlink::JITLinkMemoryManager& getMemoryManager() override { return *code_.memory_; }
  void notifyFailed(llvm::Error error) override { status_ = FromLlvm(std::move(error), kDoing); }
  void lookup(const LookupMap& names,
              std::unique_ptr<jitlink::JITLinkAsyncLookupContinuation> answer) override {
    jitlink::AsyncLookupResult found;
    for (const auto& [name, flags] : names) {
      void* const address = dlsym(RTLD_DEFAULT, name.str().c_str());
      if (address == nullptr && flags == jitlink::SymbolLookupFlags::RequiredSymbol) {
        return answer->run(llvm::make_error<llvm::StringError>(
            "the process has no function " + name, llvm::inconvertibleErrorCode()));
      }
      found[name] = ExecutorSymbolDef(ExecutorAddr::fromPtr(address), {});
    }
    answer->run(std::move(found));
  }
  llvm::Error notifyResolved(jitlink::LinkGraph& graph) override {
    for (const jitlink::Symbol* symbol : graph.defined_symbols()) {
      if (symbol->hasName() && symbol->isCallable())
        code_.functions_.emplace_back(symbol->getName(), symbol->getAddress().toPtr<void*>());
    }
    return llvm::Error::success();
  }
  void notifyFinalized(jitlink::JITLinkMemoryManager::FinalizedAlloc code) override {
    code_.code_ = std::move(code);
  }

 private:
  LinkedCode& code_;
  absl::Status& status_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<const MachineCode>> MachineCode::Load(std::string_view object) {
  auto graph = jitlink::createLinkGraphFromObject({{object.data(), object.size()}, "kernel"});
  if (!graph) return FromLlvm(graph.takeError(), kDoing);
  auto memory = jitlink::InProcessMemoryManager::Create();
  if (!memory) return FromLlvm(memory.takeError(), kDoing);
  auto code = std::make_unique<LinkedCode>(std::move(*memory), static_cast<int64_t>(object.size()));
  absl::Status status;
  jitlink::link(std::move(*graph), std::make_unique<Link>(*code, status));
  LAZULI_RETURN_IF_ERROR(status);
  return code;
}

}  // namespace lazuli::cpu
