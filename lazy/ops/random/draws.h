// Random numbers: uniform, normal, integers, a permutation. Each draws from the generator's counter.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

// Uniform in [0, 1) from as many random bits as the dtype has digits: 24 for f32, 53 for f64. Seed
// and offset are 64-bit numbers in halves: slots, so that every step runs the same program.
struct UniformOp {
  Dims dims;
  DType dtype;
  LAZULI_OP("rand", "aten::rand", dims, dtype);
  static constexpr OpDoc kDoc{"Uniform random numbers in [0, 1), Philox 4x32-10.",
                              {"seed_low", "seed_high", "offset_low", "offset_high"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op seed_low, lowering::Op seed_high,
                     lowering::Op offset_low, lowering::Op offset_high) const;
};

// Standard normal by the transform of Box and Muller (1958) of two uniform numbers per element, of
// as many random bits as UniformOp's: two 32-bit numbers, of f64 four.
struct NormalOp {
  Dims dims;
  DType dtype;
  LAZULI_OP("randn", "aten::randn", dims, dtype);
  static constexpr OpDoc kDoc{"Normal random numbers, mean 0 and deviation 1.",
                              {"seed_low", "seed_high", "offset_low", "offset_high"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op seed_low, lowering::Op seed_high,
                     lowering::Op offset_low, lowering::Op offset_high) const;
};

// low + floor(u * range), exactly, of 64 random bits u below 1: each integer has its share of them
// but for one part in 2^64 / range. The range is unsigned: it may be all of s64. The top 53 bits
// are those of a uniform f64.
struct RandomIntegerOp {
  Dims dims;
  DType dtype;
  LAZULI_OP("randint", "aten::randint", dims, dtype);
  static constexpr OpDoc kDoc{
      "Random integers in [low, low + range), Philox 4x32-10.",
      {"low", "range", "seed_low", "seed_high", "offset_low", "offset_high"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op low, lowering::Op range,
                     lowering::Op seed_low, lowering::Op seed_high, lowering::Op offset_low,
                     lowering::Op offset_high) const;
};

// Positions in the order of 64-bit random numbers. Two of n are equal, and then in order, with a
// probability of n^2 / 2^65.
struct RandomPermutationOp {
  int64_t count;
  DType dtype;
  LAZULI_OP("randperm", "aten::randperm", count, dtype);
  static constexpr OpDoc kDoc{"The integers below count in a random order, Philox 4x32-10.",
                              {"seed_low", "seed_high", "offset_low", "offset_high"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op seed_low, lowering::Op seed_high,
                     lowering::Op offset_low, lowering::Op offset_high) const;
};

}  // namespace lazuli::lazy
