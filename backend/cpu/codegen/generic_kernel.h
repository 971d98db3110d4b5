// GenericKernel: the code that kernels of one structure share whatever their sizes are (generic_form.h).
//
// It is made when bodies of several sizes have come. Of a structure that comes in one size alone, kernels
// have code of their own, which LLVM makes better since it knows the sizes.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"

#include "backend/cpu/codegen/kernel_code.h"
#include "ir/hlo/module.h"

namespace lazuli::cpu {

// What a kernel without code has done until now.
struct WaitForCode {
  std::atomic<int64_t> spent{0};   // nanoseconds, in runs of the evaluator
  std::atomic<bool> asked{false};  // the background compiler has it
};

class GenericKernel {
 public:
  // That of a structure, the same for all who ask in this process.
  static std::shared_ptr<GenericKernel> Of(const std::string& structure);

  explicit GenericKernel(std::string structure) : structure_(std::move(structure)) {}

  // A body with these numbers has come.
  void Count(const std::vector<int64_t>& numbers, int64_t most);
  // How many variants of numbers there have been, of which at most `most` are counted.
  int64_t count() const { return count_.load(std::memory_order_relaxed); }
  // Makes the code from a body of the structure, unless it is there. The caller holds CompileMutex().
  absl::Status Compile(const hlo::Computation& body) const;
  // Null if it is not there.
  const KernelCode* code() const { return code_.load(std::memory_order_acquire); }
  // Of all kernels of this structure together.
  WaitForCode& waiting() const { return waiting_; }

 private:
  const std::string structure_;
  std::mutex counting_;
  std::atomic<int64_t> count_{0};
  std::vector<std::vector<int64_t>> variants_;
  mutable std::mutex compiling_;
  mutable std::unique_ptr<const KernelCode> owned_;
  mutable std::atomic<const KernelCode*> code_{nullptr};
  mutable WaitForCode waiting_;
};

}  // namespace lazuli::cpu
