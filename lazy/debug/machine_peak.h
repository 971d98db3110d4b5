// What this machine's processor computes and its memory moves at most: what kernels are measured
// against.
#pragma once

namespace lazuli::lazy {

struct MachinePeak {
  double gflops = 0;  // f32, two for a fused multiply-add, all threads of kernels; 0: not known
  double gbs = 0;     // GB/s of reads and writes
};

// LAZULI_PEAK_GFLOPS and LAZULI_PEAK_GBS, or else measured once, which takes some 50 ms; a machine
// that others use looks slower than it is.
MachinePeak GetMachinePeak();

}  // namespace lazuli::lazy
