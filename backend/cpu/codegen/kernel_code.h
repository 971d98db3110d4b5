// KernelCode: the functions of a kernel, linked.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "backend/cpu/codegen/kernel_store.h"
#include "backend/cpu/codegen/machine_code.h"

namespace lazuli::cpu {

struct KernelCode {
  using Function = void (*)(std::byte* const* args, int64_t begin, int64_t end);

  static absl::StatusOr<std::unique_ptr<const KernelCode>> Link(StoredKernel kernel,
                                                                bool is_generic);

  int64_t bytes() const { return linked->bytes() + static_cast<int64_t>(object.size()); }

  std::string object;
  std::unique_ptr<const MachineCode> linked;
  Function run = nullptr, finish = nullptr;
  bool is_generic = false;
};

}  // namespace lazuli::cpu
