#include "backend/cpu/codegen/override.h"

#include <filesystem>
#include <memory>
#include <system_error>
#include <vector>

#include "llvm/IR/Function.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include "ir/support/status.h"

namespace lazuli::cpu {
namespace {

constexpr std::string_view kOverride = "LAZULI_OVERRIDE_KERNEL_DIR: ";

std::string TypeText(const llvm::Function& function) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  function.getFunctionType()->print(stream);
  return text;
}

absl::Status CheckSame(const llvm::Module& own, const llvm::Module& given) {
  for (const llvm::Function& function : own) {
    if (function.isDeclaration() || function.hasLocalLinkage()) continue;
    const std::string name(function.getName());
    const llvm::Function* const there = given.getFunction(function.getName());
    if (there == nullptr || there->isDeclaration())
      return InvalidArgument("it does not define the function @", name, ", ", TypeText(function));
    if (there->getFunctionType() != function.getFunctionType())
      return InvalidArgument("@", name, " is ", TypeText(*there), ", but the kernel is called as ",
                             TypeText(function));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> FindOverride(const std::string& folder, std::string_view hash) {
  namespace fs = std::filesystem;
  std::string found;
  std::error_code error;
  for (fs::directory_iterator file(folder, error), end; !error && file != end;
       file.increment(error)) {
    const std::string name = file->path().filename().string();
    if (!name.ends_with(".ll") || name.find(hash) == std::string::npos) continue;
    if (!found.empty())
      return InvalidArgument(kOverride, found, " and ", file->path().string(),
                             " are of one kernel; remove one of them");
    found = file->path().string();
  }
  if (error)
    return InvalidArgument(kOverride, "cannot read the folder ", folder, ": ", error.message());
  return found;
}

absl::Status ReadOverride(const std::string& path, llvm::Module& module) {
  llvm::SMDiagnostic problem;
  std::unique_ptr<llvm::Module> given = llvm::parseIRFile(path, problem, module.getContext());
  if (given == nullptr)
    return InvalidArgument(kOverride, path, ":", problem.getLineNo(), ":",
                           problem.getColumnNo() + 1, ": ", problem.getMessage().str());
  LAZULI_RETURN_IF_ERROR(Prefixed(CheckSame(module, *given), Str(kOverride, path, ": ")));
  for (llvm::Function& function : module) function.deleteBody();
  given->setDataLayout(module.getDataLayout());
  given->setTargetTriple(module.getTargetTriple());
  if (llvm::Linker::linkModules(module, std::move(given)))
    return InvalidArgument(kOverride, path, ": it cannot take the kernel's place");
  return absl::OkStatus();
}

}  // namespace lazuli::cpu
