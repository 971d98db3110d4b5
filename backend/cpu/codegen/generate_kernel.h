// From a fused body to an object file, by LLVM.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "backend/cpu/codegen/generic_form.h"
#include "backend/cpu/codegen/kernel_shape.h"
#include "backend/cpu/codegen/kernel_store.h"
#include "ir/hlo/dump/module_dump.h"
#include "ir/hlo/module.h"

namespace lazuli::cpu {

// The functions of an object file.
inline constexpr char kKernelFunction[] = "kernel", kFinishFunction[] = "kernel_finish";

struct KernelJob {
  const hlo::Computation* body;
  std::string text;  // the body's, canonical
  hlo::ModuleDump* dump = nullptr;
  std::string override_file{};  // what takes its code's place
  bool is_generic = false;      // the code is generic, and `text` the structure
};

// Stands for what a kernel computes, from process to process.
std::string HashOfKernel(const std::string& text);

// Whether somebody wants to read the LLVM IR of every kernel.
bool PrintsKernels();

// What GenerateKernel would say, in microseconds; describes the kernel in `generic` unless that is null.
absl::StatusOr<KernelShape> ShapeOfKernel(const hlo::Computation& body,
                                          GenericForm* generic = nullptr);

// The kernel from the user's store of kernels, or a new one, which goes there. Code that is to be seen,
// or that is somebody's own, is made anew. The caller holds CompileMutex().
absl::StatusOr<StoredKernel> GenerateKernel(const KernelJob& job);

// The LLVM IR of the body's generic code as it is written: for tests.
absl::StatusOr<std::string> GenericIr(const hlo::Computation& body);

// The next kernel that LLVM is to compile fails with this error: for tests.
void FailNextKernel(absl::Status error);

}  // namespace lazuli::cpu
