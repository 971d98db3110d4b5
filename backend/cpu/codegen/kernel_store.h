// KernelStore: compiled kernels kept on disk between processes (XLA_PERSISTENT_CACHE_PATH).
//
// A kernel is found by the text of its body, this build of lazuli, the version of LLVM and the
// processor with its features: whatever could change its code. Thread count and other options of a
// run do not: they are not in a kernel. A store that cannot be used costs a warning, never a run.
#pragma once

#include <optional>
#include <string>

#include "backend/cpu/codegen/kernel_shape.h"

namespace lazuli::cpu {

struct StoredKernel {
  KernelShape shape;
  std::string object;  // for MachineCode::Load
  LAZULI_ATTRS(shape, object);
};

// The kernel of this body in the user's store, if there is a store and it is there.
std::optional<StoredKernel> FindStoredKernel(const std::string& body);
void StoreKernel(const std::string& body, const StoredKernel& kernel);

}  // namespace lazuli::cpu
