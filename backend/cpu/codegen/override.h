// LAZULI_OVERRIDE_KERNEL_DIR: LLVM IR that somebody edited, in place of a kernel's own.
//
// A file belongs to a kernel if the kernel's hash is in its name, as in that of the dump which it was
// made from: "module_0003.SyncTensorsGraph.3.fused_computation_1f3a5b7c9d2e4f60_kernel_module.ir-no-opt.ll".
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace llvm {
class Module;
}  // namespace llvm

namespace lazuli::cpu {

// The file in the folder for the kernel with this hash, or "". An error if there are two.
absl::StatusOr<std::string> FindOverride(const std::string& folder, std::string_view hash);

// Replaces what is in the module by the file's. The file must define the module's functions with the
// types that they have.
absl::Status ReadOverride(const std::string& path, llvm::Module& module);

}  // namespace lazuli::cpu
