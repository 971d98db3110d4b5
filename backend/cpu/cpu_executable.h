// CpuExecutable: runs a ThunkProgram.
#pragma once

#include <memory>
#include <string>

#include "backend/client/client.h"
#include "backend/runtime/allocator.h"
#include "backend/runtime/program.h"

namespace lazuli::cpu {

// `device` is where outputs of a run without buffers lie.
ExecutablePtr MakeCpuExecutable(ThunkProgram program, std::shared_ptr<Allocator> allocator,
                                Device device);

}  // namespace lazuli::cpu
