// Proves of a compiled program, without running it, what the simulator's strict mode finds in a run:
//
//   bounds    every operand lies in the scratchpad, the accumulators or the array that it names,
//             whatever loops and loaded indices make of it
//   races     of two units that touch the same bytes, one writing, one waits for the other
//   tokens    each wait finds its tokens, which one unit gives and one takes; none are left, not
//             even those between devices
//   reads     of the scratchpad and of results and temporaries what has been written before
//
// The sequencer's code is followed; registers are intervals. A branch on what is loaded at run time
// goes both ways, and everything must be idle there. Units are followed in the order of the program:
// tokens of a semaphore have one giver and one taker, which are in order, so what waits for what does not depend on
// the time that anything takes. Operands are ranges of bytes, from the first to the last. For what the compiler
// makes, and no more: no hardware loops, no calls.
#pragma once

#include "absl/status/status.h"

#include "backend/npu/sim/config.h"
#include "backend/npu/sim/program.h"

namespace lazuli::npu {

// The first thing that is wrong: "pc 12 (dma.ld.0 ..., dot r): ...". Of a program whose devices talk to each
// other, for all devices of the configuration.
absl::Status Verify(const Program& program, const Config& config);

}  // namespace lazuli::npu
