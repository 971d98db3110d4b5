// MachineCode: functions of an object file, made callable by LLVM's linker for this process
// (JITLink).
//
// The code lives as long as the object. Nothing is shared between two of them: their functions may
// have the same names, and they are made and destroyed on any threads.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace lazuli::cpu {

class MachineCode {
 public:
  // The object file is one of Jit::Compile. What it calls is looked for in the process.
  static absl::StatusOr<std::unique_ptr<const MachineCode>> Load(std::string_view object);

  virtual ~MachineCode() = default;
  // Address of an external function of the object file; it exists.
  virtual void* Lookup(std::string_view function) const = 0;
  virtual int64_t bytes() const = 0;
};

}  // namespace lazuli::cpu
