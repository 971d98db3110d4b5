#include <llvm/ADT/SmallString.h>
#include <llvm/FileCheck/FileCheck.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/SourceMgr.h>
#include <llvm/Support/raw_ostream.h>

#include "tests/support/pass_test.h"

namespace lazuli {
namespace {

llvm::StringRef ToLlvm(std::string_view text) { return {text.data(), text.size()}; }

// A buffer of the source manager over the text as FileCheck wants it.
llvm::StringRef AddBuffer(llvm::FileCheck& check, llvm::SourceMgr& sources, std::string_view text,
                          const char* name) {
  const auto original = llvm::MemoryBuffer::getMemBufferCopy(ToLlvm(text), name);
  llvm::SmallString<4096> space;
  const llvm::StringRef canonical = check.CanonicalizeFile(*original, space);
  auto copy = llvm::MemoryBuffer::getMemBufferCopy(canonical, name);
  const llvm::StringRef buffer = copy->getBuffer();
  sources.AddNewSourceBuffer(std::move(copy), llvm::SMLoc());
  return buffer;
}

}  // namespace

bool HasFileCheck() { return true; }

std::string FileCheckError(std::string_view checks, std::string_view output) {
  llvm::FileCheckRequest request;
  request.CheckPrefixes = {"CHECK"};
  llvm::FileCheck check(request);
  if (!check.ValidateCheckPrefixes()) return "bad prefixes";

  std::string errors;
  llvm::SourceMgr sources;
  sources.setDiagHandler(
      [](const llvm::SMDiagnostic& diagnostic, void* context) {
        llvm::raw_string_ostream out(*static_cast<std::string*>(context));
        diagnostic.print("FileCheck", out, /*ShowColors=*/false);
      },
      &errors);
  if (check.readCheckFile(sources, AddBuffer(check, sources, checks, "test"))) {
    return errors.empty() ? "no CHECK lines" : errors;
  }
  if (check.checkInput(sources, AddBuffer(check, sources, output, "result"))) return "";
  return errors.empty() ? "FileCheck failed" : errors;
}

}  // namespace lazuli
