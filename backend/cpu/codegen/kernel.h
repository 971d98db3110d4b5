// Kernels: fused computations as machine code, and the thunk that runs one in parallel.
//
// Without LLVM (LAZULI_CPU_JIT=OFF) KernelsAvailable() is false and nothing here is called.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "backend/runtime/thunk_data.h"
#include "ir/hlo/module.h"

namespace lazuli::cpu {

bool KernelsAvailable();
// What compiles kernels, for reports: "LLVM 19.1.7 for znver3, 8 floats a vector".
std::string KernelEngine();
// The same with all features of the processor: what kernels are good for.
std::string KernelEngineAndHost();

// Whether the instruction may stand in the body of a fusion: elementwise on types that fit
// registers, changes of index, iota, scalar constants; a reduction by a monoid as the root.
bool KernelSupports(const hlo::Instruction& instruction);

// Whether a body with a loop in it makes a kernel: see passes/fuse_loops.h.
bool KernelSupportsLoop(const hlo::Computation& body);

// Parameters and results of one body together.
inline constexpr std::size_t kMaxKernelArgs = 64;

// The kernel of a body, with machine code or, for now, without. Opaque; shared by all fusions whose bodies are
// equal.
class Kernel : public ProgramPart {
 public:
  virtual int64_t scratch_bytes() const = 0;
  virtual int64_t code_bytes() const = 0;
  virtual std::string Details() const = 0;
};

struct KernelOptions {
  std::string override_dir{};  // codegen/override.h
  // A kernel whose interpretation costs at most so many element operations gets its code later
  // (codegen/compiled_kernel.h). 0: all get it now.
  int64_t interpreted_ops = 0;
  // With so many sizes of one kernel its code serves all sizes (codegen/generic_kernel.h). 0: never.
  int64_t generic_from = 2;
};

// One kernel for each body, equal ones shared, compiled on several threads. The caller holds
// CompileMutex().
absl::StatusOr<std::vector<std::shared_ptr<const Kernel>>> CompileKernels(
    absl::Span<const hlo::Computation* const> bodies, const KernelOptions& options = {});

// `operands` and `results` in the order of the body's parameters and root; scratch may be -1 if the
// kernel needs none.
std::unique_ptr<Thunk> MakeKernelThunk(const hlo::Instruction& fusion,
                                       std::shared_ptr<const Kernel> kernel,
                                       std::vector<BufferId> operands,
                                       std::vector<BufferId> results, BufferId scratch);
ThunkKind KernelThunkKind();
PartKind KernelPartKind();

}  // namespace lazuli::cpu
