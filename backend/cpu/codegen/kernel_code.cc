#include "backend/cpu/codegen/kernel_code.h"

#include <utility>

#include "backend/cpu/codegen/generate_kernel.h"
#include "ir/support/status.h"

namespace lazuli::cpu {

absl::StatusOr<std::unique_ptr<const KernelCode>> KernelCode::Link(StoredKernel kernel,
                                                                   bool is_generic) {
  auto code = std::make_unique<KernelCode>();
  code->object = std::move(kernel.object);
  code->is_generic = is_generic;
  LAZULI_ASSIGN_OR_RETURN(code->linked, MachineCode::Load(code->object));
  code->run = reinterpret_cast<Function>(code->linked->Lookup(kKernelFunction));
  if (kernel.shape.finish_items > 0)
    code->finish = reinterpret_cast<Function>(code->linked->Lookup(kFinishFunction));
  return code;
}

}  // namespace lazuli::cpu
