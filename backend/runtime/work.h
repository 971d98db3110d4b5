// How much an instruction computes and moves, whatever runs it: for deciding where it runs and for
// reports. Estimates, not measurements.
#pragma once

#include "ir/hlo/module.h"

namespace lazuli::backend {

struct Work {
  // Operations: two for each product of a dot or a convolution; one for each element that an
  // elementwise opcode gives or a reduction takes.
  double flops = 0;
  double product_flops = 0;  // of dots and convolutions alone
  double bytes = 0;          // of operands and results
  Work& operator+=(const Work& other) {
    flops += other.flops;
    product_flops += other.product_flops;
    bytes += other.bytes;
    return *this;
  }
};

// A loop counts as kAssumedTrips times its body: how often it runs is not known.
inline constexpr int64_t kAssumedTrips = 16;
Work WorkOf(const hlo::Instruction& instruction);
// What the instruction as a whole reads and writes: each operand once, and nothing of what lies
// between the instructions of a fusion.
double BytesMoved(const hlo::Instruction& instruction);

}  // namespace lazuli::backend
