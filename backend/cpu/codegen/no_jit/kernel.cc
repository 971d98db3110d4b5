#include "backend/cpu/codegen/kernel.h"

#include "backend/cpu/codegen/symbolizer.h"
#include "ir/support/status.h"

namespace lazuli::cpu {

bool KernelsAvailable() { return false; }
std::string KernelEngine() { return "the evaluator for loops (LAZULI_CPU_JIT=OFF)"; }
std::string KernelEngineAndHost() { return KernelEngine(); }
bool KernelSupports(const hlo::Instruction&) { return false; }
bool KernelSupportsLoop(const hlo::Computation&) { return false; }

absl::StatusOr<std::vector<std::shared_ptr<const Kernel>>> CompileKernels(
    absl::Span<const hlo::Computation* const>, const KernelOptions&) {
  return Unimplemented("this build compiles no kernels (LAZULI_CPU_JIT=OFF)");
}

std::unique_ptr<Thunk> MakeKernelThunk(const hlo::Instruction&, std::shared_ptr<const Kernel>,
                                       std::vector<BufferId>, std::vector<BufferId>, BufferId) {
  return nullptr;
}

ThunkKind KernelThunkKind() { return {"kernel", nullptr}; }
PartKind KernelPartKind() { return {"kernel", nullptr}; }

void InstallSymbolizer() {}  // the linker's symbols do

}  // namespace lazuli::cpu
