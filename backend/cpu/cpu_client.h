// The platform "cpu": compiles modules to LLVM kernels and library calls, and runs them in this
// process.
#pragma once

namespace lazuli::cpu {

// Makes "cpu:0", "cpu:1", ... known to the registry; their number is the flag CPU_NUM_DEVICES when
// first asked for.
void RegisterCpu();

}  // namespace lazuli::cpu
