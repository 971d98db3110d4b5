// CompiledKernel: the kernel of a fused body, in one of two tiers.
//
// With machine code a kernel runs that. Without it runs are interpreted (interpret_kernel.h) until there
// is code. Who makes the code, and when:
//
//   first run of a program    interpreted: a program that runs once pays nothing for LLVM
//   second run, or the first  interpreted, and the kernel goes to the background compiler
//   run of another program
//   later runs                interpreted until the code is there; a kernel whose interpretation has cost
//                             as much as a compile is compiled on the spot
//
// Kernels that differ in their sizes alone share their code (generic_kernel.h), and what interpretation has
// cost is added up over all of them: after some milliseconds the code is made.
//
// Where no code can be made, the evaluator goes on for the run that is under way, because a run must not
// end in the middle. The next run does not begin (IsFinal).
//
// Both tiers give the same bits. Runs on several threads may overlap with each other and with the
// compile: the code is published by one atomic pointer, which every run loads once.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/statusor.h"

#include "backend/cpu/codegen/generic_kernel.h"
#include "backend/cpu/codegen/kernel.h"
#include "backend/cpu/codegen/kernel_code.h"
#include "backend/cpu/codegen/kernel_store.h"

namespace lazuli::cpu {

class CompiledKernel final : public Kernel, public std::enable_shared_from_this<CompiledKernel> {
 public:
  // With code, once Load() has linked it.
  explicit CompiledKernel(StoredKernel stored);
  // Without code, for now. The body is copied; `text` is its canonical text.
  // Its code will be that of `generic` if that is given.
  CompiledKernel(const hlo::Computation& body, std::string text, KernelShape shape,
                 std::shared_ptr<const GenericKernel> generic = nullptr);
  ~CompiledKernel() override;

  absl::Status Load() override;
  // Makes code, unless it is there. The caller holds CompileMutex(). No exception passes through LLVM.
  absl::Status Compile() const noexcept;
  absl::Status Complete() const override;
  // Whether all runs from now on are of code. An error if there will be none.
  absl::StatusOr<bool> IsFinal() const;
  bool has_code() const { return code_.load(std::memory_order_acquire) != nullptr; }

  const KernelShape& shape() const { return shape_; }
  // What generic code takes as its last argument, and only reads.
  std::byte* numbers() const {
    return reinterpret_cast<std::byte*>(const_cast<int64_t*>(shape_.numbers.data()));
  }
  int64_t scratch_bytes() const override { return shape_.scratch_bytes; }
  int64_t code_bytes() const override;
  std::string Details() const override;
  std::string_view part_kind() const override { return "kernel"; }
  // It has code (Complete).
  void WritePart(ProgramWriter& out) const override;

  // Another program uses it, too.
  void Share() const { runs_again_.store(true, std::memory_order_relaxed); }
  // `ran` is the caller's: whether it had this kernel run before.
  absl::Status Run(std::byte* const* args, std::atomic<bool>& ran) const {
    const KernelCode* const code = code_.load(std::memory_order_acquire);
    if (code == nullptr) [[unlikely]]
      return RunWithoutCode(args, ran);
    RunCode(*code, args);
    return absl::OkStatus();
  }
  // It has code.
  void RunPart(std::byte* const* args, Part part) const {
    const int64_t items = shape_.items / part.count;
    code_.load(std::memory_order_acquire)->run(args, part.index * items, (part.index + 1) * items);
  }

 private:
  struct KernelSource;

  void RunCode(const KernelCode& code, std::byte* const* args) const;
  absl::Status RunWithoutCode(std::byte* const* args, std::atomic<bool>& ran) const;
  absl::Status Interpret(std::byte* const* args) const;
  bool CompileNow() const;
  bool AskForCode() const;
  bool TakesGenericCode() const;
  WaitForCode& waiting() const { return generic_ == nullptr ? waiting_ : generic_->waiting(); }
  absl::Status MakeCode() const;

  const KernelShape shape_;
  const std::shared_ptr<const GenericKernel> generic_;  // null: it has code of its own
  const std::unique_ptr<const KernelSource> source_;    // null: it was made with code
  std::string object_;                                  // to be linked by Load()
  mutable std::atomic<bool> runs_again_{false};
  mutable WaitForCode waiting_;
  mutable std::atomic<bool> failed_{false};
  mutable std::mutex compiling_;
  mutable absl::Status failure_;  // written once, before failed_
  mutable std::unique_ptr<const KernelCode> owned_;
  mutable std::atomic<const KernelCode*> code_{nullptr};
};

}  // namespace lazuli::cpu
