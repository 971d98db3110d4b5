// What lies where in a program's memory, as XLA's files of a dump say it.
#pragma once

#include <string>

#include "backend/runtime/program.h"

namespace lazuli::backend {

// BufferAssignment:
// allocation 0: size 1024, parameter 0, shape |f32[16,16]| at ShapeIndex {}:
//  value: <0 p0.1{} @0> (size=1024,offset=0): f32[16,16]
// allocation 3: size 4096, preallocated-temp:
//  value: <5 fusion.12{} @0> (size=1024,offset=64): f32[16,16]
std::string BufferAssignmentText(const ThunkProgram& program);

// The allocations, the largest first, with a running sum.
std::string MemoryUsageText(const ThunkProgram& program);

}  // namespace lazuli::backend
