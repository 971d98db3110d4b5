// Jit: machine code from LLVM IR, in this process. The only user of ORC, and opinionated: host
// processor, level 2, no fast-math, no contraction.
//
// Compile() and Load() may be called from several threads at once; each call uses a target machine
// of its own. Code lives as long as somebody holds its JitCode.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace lazuli::backend {

// Functions of one module, loaded.
class JitCode {
 public:
  virtual ~JitCode() = default;
  // Address of an external function of the module; it exists.
  virtual void* Lookup(const std::string& function) const = 0;
  virtual int64_t bytes() const = 0;
};

class Jit {
 public:
  // The one of this process.
  static Jit& Get();

  // Prepares an empty module for the host: data layout, triple.
  void Prepare(llvm::Module& module) const;
  // Optimises the module and generates code: an object file, which may be kept and loaded later.
  absl::StatusOr<std::string> Compile(std::unique_ptr<llvm::LLVMContext> context,
                                      std::unique_ptr<llvm::Module> module);
  // Makes the code of an object file callable. Two that are loaded may have functions of one name.
  absl::StatusOr<std::shared_ptr<const JitCode>> Load(std::string_view object);

  // Elements of f32 that one vector register of the host holds, at most 16.
  int vector_width() const { return vector_width_; }
  const std::string& host() const { return host_; }  // processor and features, for keys of caches

 private:
  Jit();
  struct State;
  std::shared_ptr<State> state_;
  int vector_width_ = 4;
  std::string host_;
};

}  // namespace lazuli::backend
