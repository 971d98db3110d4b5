// How ops of random numbers are lowered: bits of Philox 4x32-10, and uniform numbers made from them.
#pragma once

#include <array>
#include <utility>

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"
#include "lazy/tensor/random.h"
#include "lazy/tensor/sampled_draws.h"
#include "lazy/tensor/watch.h"

namespace lazuli::lazy {

// The words of the generator's state that an op takes as numbers.
struct PhiloxWords {
  lowering::Op seed_low, seed_high, offset_low, offset_high;
};

// The words as the state of rng-bit-generator, u64[2].
lowering::Op PhiloxArray(lowering::Builder& b, const PhiloxWords& s);

// `count` random u32 as a flat array.
lowering::Op RandomBits(lowering::Builder& b, int64_t count, const PhiloxWords& s);

// The i-th of pieces of `count`.
lowering::Op Piece(lowering::Op bits, int64_t i, int64_t count);

// How many 32-bit numbers `count` uniform elements take.
int64_t NumbersFor(DType dtype, int64_t count);

// The i-th `count` uniform numbers in [0, 1): in f64, or in f32 with the bits of a narrower dtype.
lowering::Op Uniform(lowering::Builder& b, lowering::Op bits, int64_t i, int64_t count,
                     DType dtype);

// The words as tensors, where a function is traced whose draws differ from run to run; else none.
Tensors TracedWords(const Generator& generator, PhiloxState begin, PhiloxState end);

// Records an op with the operands, which refer to tensors and values of the caller, and the state of
// the generator, which moves on by `reserved` numbers.
template <class T>
Tensor RecordRandom(T op, int64_t reserved, backend::Device device, Generator& generator,
                    absl::Span<const Operand> operands = {}) {
  reserved = SampledDraws::NumbersFor(reserved);
  const PhiloxState state = generator.Reserve(reserved);
  Context::Current().NoteDraw(generator, state, After(state, reserved));
  auto slot = [](uint64_t half) {
    return Number(static_cast<int64_t>(half & 0xffffffffu)).Slot(DType::kU32);
  };
  const std::array<Value, 4> slots{slot(state.seed), slot(state.seed >> 32), slot(state.offset),
                                   slot(state.offset >> 32)};
  if (Watch* const watch = Watch::Current()) [[unlikely]]
    watch->Draw(generator, reserved, slots);
  absl::InlinedVector<Operand, 6> in(operands.begin(), operands.end());
  const Tensors traced = TracedWords(generator, state, After(state, reserved));
  if (traced.empty()) [[likely]]
    in.insert(in.end(), slots.begin(), slots.end());
  else
    in.insert(in.end(), traced.begin(), traced.end());
  return RecordOne(std::move(op), in, device);
}

}  // namespace lazuli::lazy
