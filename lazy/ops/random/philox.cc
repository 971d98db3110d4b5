#include "lazy/ops/random/philox.h"

#include <cmath>

#include "lazy/tensor/outside.h"

namespace lazuli::lazy {
namespace {

using lowering::Opcode;

lowering::Op JoinWords(lowering::Builder& b, lowering::Op low, lowering::Op high) {
  high = b.Convert(high, DType::kU64);
  low = b.Convert(low, DType::kU64);
  high = b.Binary(Opcode::kShiftLeft, high, b.Full(high.shape(), 32));
  return b.Reshape(b.Binary(Opcode::kOr, high, low), {1});
}

// How many random bits a uniform number of the dtype has: as many as it can hold below 1 without
// rounding up to it.
int UniformBits(DType dtype) {
  switch (dtype) {
    case DType::kF16:
      return 11;
    case DType::kBF16:
      return 8;
    default:
      return 24;
  }
}

// The top bits as an f32 in [0, 1): every value is a multiple of 2^-count, so nothing rounds.
lowering::Op UnitFloat(lowering::Builder& b, lowering::Op bits, int count) {
  const Shape shape = bits.shape();  // NOLINT: a copy, for the original moves as more is built
  lowering::Op top = b.Binary(Opcode::kShiftRightLogical, bits, b.Full(shape, 32 - count));
  top = b.Convert(top, DType::kF32);
  return b.Times(top, b.Full(top.shape(), std::ldexp(1.0, -count)));
}

// The same as an f64 from the top 27 and 26 bits of two.
lowering::Op UnitDouble(lowering::Builder& b, lowering::Op high, lowering::Op low) {
  const Shape shape = high.shape();
  high = b.Convert(b.Binary(Opcode::kShiftRightLogical, high, b.Full(shape, 5)), DType::kF64);
  low = b.Convert(b.Binary(Opcode::kShiftRightLogical, low, b.Full(shape, 6)), DType::kF64);
  const auto full = [&](double v) { return b.Full(Shape(DType::kF64, shape.dims()), v); };
  return b.Times(b.Plus(b.Times(high, full(0x1p26)), low), full(0x1p-53));
}

}  // namespace

Tensors TracedWords(const Generator& generator, PhiloxState begin, PhiloxState end) {
  Outside* const outside = Outside::Of(Context::Current());
  if (outside == nullptr || !outside->draws_from_parameter()) [[likely]]
    return {};
  if (&generator != &DefaultGenerator()) {
    throw StatusError(FailedPrecondition(
        "random numbers inside of a loop or branch come from the default generator; draw those of "
        "another one outside"));
  }
  const std::optional<Outside::Draw> draw = outside->DrawOf(begin, end);
  if (!draw) return {};
  const auto number = [&](uint64_t value) {
    return FullConstant(Shape(DType::kU32), static_cast<double>(value & 0xffffffffu),
                        draw->state.device());
  };
  Tensors words;
  for (int64_t i = 0; i < 4; ++i)
    words.push_back(Reshape(Narrow(draw->state, /*dim=*/0, i, 1), {}));
  const Tensor low = Add(words[2], number(draw->blocks));
  const Tensor carry = To(Lt(low, words[2]), DType::kU32);
  words[3] = Add(Add(words[3], number(draw->blocks >> 32)), carry);
  words[2] = low;
  return words;
}

lowering::Op PhiloxArray(lowering::Builder& b, const PhiloxWords& s) {
  return b.Concatenate(
      {JoinWords(b, s.seed_low, s.seed_high), JoinWords(b, s.offset_low, s.offset_high)}, 0);
}

lowering::Op RandomBits(lowering::Builder& b, int64_t count, const PhiloxWords& s) {
  return b
      .RngBitGenerator(hlo::RngAlgorithm::kPhilox, PhiloxArray(b, s), Shape(DType::kU32, {count}))
      .second;
}

lowering::Op Piece(lowering::Op bits, int64_t i, int64_t count) {
  return bits.builder()->Slice(bits, {i * count}, {(i + 1) * count}, {1});
}

int64_t NumbersFor(DType dtype, int64_t count) { return dtype == DType::kF64 ? 2 * count : count; }

lowering::Op Uniform(lowering::Builder& b, lowering::Op bits, int64_t i, int64_t count,
                     DType dtype) {
  if (dtype != DType::kF64) return UnitFloat(b, Piece(bits, i, count), UniformBits(dtype));
  return UnitDouble(b, Piece(bits, 2 * i, count), Piece(bits, 2 * i + 1, count));
}

}  // namespace lazuli::lazy
