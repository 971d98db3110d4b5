// Jit: object files from LLVM IR, opinionated: host processor, level 2, no fast-math, no
// contraction. MachineCode makes them callable.
//
// Compile() may be called from several threads at once; each call uses a target machine of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace llvm {
class Error;
class Module;
}  // namespace llvm

namespace lazuli::cpu {

absl::Status FromLlvm(llvm::Error error, std::string_view what);

class Jit {
 public:
  // The one of this process.
  static Jit& Get();

  // Prepares an empty module for the host: data layout, triple.
  void Prepare(llvm::Module& module) const;
  // What a kernel is on its way to code: LLVM IR before and after optimisation, assembly, an object
  // file.
  enum class Stage : uint8_t { kWritten, kOptimised, kAssembly, kObject };
  struct Show {
    std::function<void(Stage, std::string_view contents)> call;  // empty: nobody looks
    bool assembly = false;                                       // which is made for this alone
  };
  // Optimises the module and generates code: an object file, which may be kept and loaded later.
  // `show` is called for each stage.
  absl::StatusOr<std::string> Compile(llvm::Module& module, const Show& show);

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

}  // namespace lazuli::cpu
