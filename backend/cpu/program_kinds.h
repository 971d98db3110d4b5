// What programs of the CPU are made of, for reading saved ones.
#pragma once

#include "backend/runtime/thunk_data.h"

namespace lazuli::cpu {

const ProgramKinds& CpuProgramKinds();

}  // namespace lazuli::cpu
