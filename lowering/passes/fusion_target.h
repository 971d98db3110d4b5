// FusionTarget: what the passes that make kernels need to know of a device.
//
// A device fills it in once (backend/cpu/compiler.cc) and runs Fuse and FuseLoops with it. The
// limits are properties of a code generator and of a processor, so they have no defaults that would
// suit every device; 0 and an empty function mean "none".
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "ir/hlo/module.h"

namespace lazuli::lowering {

struct FusionTarget {
  std::string device;  // prefix of the passes' names: "cpu" makes cpu_fuse
  // Whether a kernel can compute the instruction.
  std::function<bool(const hlo::Instruction&)> supports;
  // Whether one kernel can be made of a body with a loop in it. Empty: of none.
  std::function<bool(const hlo::Computation&)> supports_loop;
  std::size_t max_args = 0;       // parameters and outputs of one kernel together
  std::size_t max_members = 500;  // instructions of one kernel: what compiles in reasonable time
  std::size_t max_siblings = 4;   // reductions of one kernel: what registers can accumulate
  // Elements that lie next to each other along the innermost dimension, from which on a reduction
  // and the values it reduces gain from sharing a kernel.
  int64_t vector_line = 8;
  // Bytes of a gathered window's line from which on copying the windows is best.
  int64_t copied_line_bytes = 128;

  std::string PassName(std::string_view pass) const {
    return device.empty() ? std::string(pass) : device + "_" + std::string(pass);
  }
};

}  // namespace lazuli::lowering
