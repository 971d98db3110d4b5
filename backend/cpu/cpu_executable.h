// CpuExecutable: runs a Program.
#pragma once

#include <memory>
#include <string>

#include "backend/client/client.h"
#include "backend/cpu/program.h"
#include "backend/cpu/runtime/allocator.h"

namespace lazuli::backend {

// `device` is where outputs of a run without buffers lie.
ExecutablePtr MakeCpuExecutable(Program program, std::shared_ptr<Allocator> allocator,
                                Device device);

}  // namespace lazuli::backend
