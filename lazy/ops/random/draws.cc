#include "lazy/ops/random/draws.h"

#include <array>
#include <limits>
#include <numbers>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/default_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/create/create.h"
#include "lazy/ops/index/sort.h"
#include "lazy/ops/random/philox.h"

namespace lazuli::lazy {
namespace {

using lowering::Opcode;

// Bits of u64 arrays.
lowering::Op Filled(lowering::Op like, double v) { return like.builder()->Full(like.shape(), v); }
lowering::Op Left(lowering::Op x, int count) {
  return x.builder()->Binary(Opcode::kShiftLeft, x, Filled(x, count));
}
lowering::Op Right(lowering::Op x, int count) {
  return x.builder()->Binary(Opcode::kShiftRightLogical, x, Filled(x, count));
}
lowering::Op Low(lowering::Op x, int count) {
  return x.builder()->Binary(Opcode::kAnd, x, Filled(x, std::ldexp(1.0, count) - 1));
}
lowering::Op Or(lowering::Op x, lowering::Op y) { return x.builder()->Binary(Opcode::kOr, x, y); }

// Of two u32 the 64 bits whose top 53 are those of UnitDouble.
lowering::Op Random64(lowering::Builder& b, lowering::Op high, lowering::Op low) {
  high = b.Convert(high, DType::kU64);
  low = b.Convert(low, DType::kU64);
  const lowering::Op top = Or(Left(Right(high, 5), 37), Left(Right(low, 6), 11));
  return Or(top, Or(Left(Low(high, 5), 6), Low(low, 6)));
}

// The upper half of the product of two u64.
lowering::Op MultiplyHigh(lowering::Op x, lowering::Op y) {
  lowering::Builder& b = *x.builder();
  const lowering::Op x1 = Right(x, 32), x0 = Low(x, 32), y1 = Right(y, 32), y0 = Low(y, 32);
  const lowering::Op cross = b.Times(x0, y1);
  // Three numbers below 2^32 at most beside the largest product: no carry out of 64 bits.
  const lowering::Op middle =
      b.Plus(b.Plus(Right(b.Times(x0, y0), 32), Low(cross, 32)), b.Times(x1, y0));
  return b.Plus(b.Plus(b.Times(x1, y1), Right(cross, 32)), Right(middle, 32));
}

}  // namespace

lowering::Op UniformOp::Lower(lowering::Builder& b, lowering::Op seed_low, lowering::Op seed_high,
                              lowering::Op offset_low, lowering::Op offset_high) const {
  const int64_t n = Count(dims);
  const lowering::Op bits =
      RandomBits(b, NumbersFor(dtype, n), {seed_low, seed_high, offset_low, offset_high});
  return b.Reshape(b.Convert(Uniform(b, bits, 0, n, dtype), dtype), dims);
}

lowering::Op NormalOp::Lower(lowering::Builder& b, lowering::Op seed_low, lowering::Op seed_high,
                             lowering::Op offset_low, lowering::Op offset_high) const {
  const int64_t n = Count(dims);
  const lowering::Op bits =
      RandomBits(b, 2 * NumbersFor(dtype, n), {seed_low, seed_high, offset_low, offset_high});
  const DType wide = dtype == DType::kF64 ? dtype : DType::kF32;
  const lowering::Op u = Uniform(b, bits, 0, n, wide), v = Uniform(b, bits, 1, n, wide);
  // 1 - u is in (0, 1], so the logarithm is finite.
  const lowering::Op one = b.Full(u.shape(), 1), minus_two = b.Full(u.shape(), -2);
  const lowering::Op radius =
      b.Unary(Opcode::kSqrt, b.Times(minus_two, b.Unary(Opcode::kLog, b.Minus(one, u))));
  const lowering::Op angle =
      b.Unary(Opcode::kCosine, b.Times(b.Full(v.shape(), 6.283185307179586), v));
  return b.Reshape(b.Convert(b.Times(radius, angle), dtype), dims);
}

lowering::Op RandomIntegerOp::Lower(lowering::Builder& b, lowering::Op low, lowering::Op range,
                                    lowering::Op seed_low, lowering::Op seed_high,
                                    lowering::Op offset_low, lowering::Op offset_high) const {
  const int64_t n = Count(dims);
  const lowering::Op bits = RandomBits(b, 2 * n, {seed_low, seed_high, offset_low, offset_high});
  const lowering::Op u = Random64(b, Piece(bits, 0, n), Piece(bits, 1, n));
  const lowering::Op drawn = MultiplyHigh(u, b.Broadcast(range, {n}, {}));
  const lowering::Op first = b.Broadcast(b.Convert(low, DType::kU64), {n}, {});
  return b.Reshape(b.Convert(b.Convert(b.Plus(drawn, first), DType::kS64), dtype), dims);
}

lowering::Op RandomPermutationOp::Lower(lowering::Builder& b, lowering::Op seed_low,
                                        lowering::Op seed_high, lowering::Op offset_low,
                                        lowering::Op offset_high) const {
  const lowering::Op bits =
      RandomBits(b, 2 * count, {seed_low, seed_high, offset_low, offset_high});
  const lowering::Op keys = Random64(b, Piece(bits, 0, count), Piece(bits, 1, count));
  return b.Convert(SortOp{0, /*descending=*/false}.Lower(b, keys)[1], dtype);
}

namespace {

void CheckRandom(std::string_view op, absl::Span<const int64_t> dims, DType dtype) {
  CheckShape(op, dims, dtype);
  if (!IsFloat(dtype) || ByteWidth(dtype) < 2) {
    ThrowRecordError(op, WrongType("makes f16, bf16, f32 or f64, not ", DTypeText(dtype)));
  }
}

}  // namespace

Tensor Rand(absl::Span<const int64_t> dims, std::optional<DType> given, backend::Device device,
            Generator& generator) {
  const DType dtype = given.value_or(DefaultFloat());
  if (dtype == DType::kC64 || dtype == DType::kC128) {
    const DType part = hlo::PartType(dtype);
    const Tensor real = Rand(dims, part, device, generator);
    return Complex(real, Rand(dims, part, device, generator));
  }
  CheckRandom("rand", dims, dtype);
  UniformOp op{Dims(dims.begin(), dims.end()), dtype};
  return RecordRandom(op, NumbersFor(dtype, Count(op.dims)), device, generator);
}

Tensor Randn(absl::Span<const int64_t> dims, std::optional<DType> given, backend::Device device,
             Generator& generator) {
  const DType dtype = given.value_or(DefaultFloat());
  if (dtype == DType::kC64 || dtype == DType::kC128) {  // two parts of half the variance
    const DType part = hlo::PartType(dtype);
    const Tensor real = Randn(dims, part, device, generator);
    return Complex(real, Randn(dims, part, device, generator)) * std::numbers::sqrt2 / 2.0;
  }
  CheckRandom("randn", dims, dtype);
  NormalOp op{Dims(dims.begin(), dims.end()), dtype};
  return RecordRandom(op, 2 * NumbersFor(dtype, Count(op.dims)), device, generator);
}

namespace {

// The least and the greatest integer that the dtype holds, within those of an s64.
struct IntegerBounds {
  int64_t low, high;
};
IntegerBounds BoundsOf(DType dtype) {
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min(), kHigh = ~kLow;
  if (IsFloat(dtype)) {
    // What is finite: above the digits it holds, a float is the nearest one.
    const double largest = dtype == DType::kF16 ? 65504 : 0x1p63;
    return largest >= 0x1p63
               ? IntegerBounds{kLow, kHigh}
               : IntegerBounds{-static_cast<int64_t>(largest), static_cast<int64_t>(largest)};
  }
  if (dtype == DType::kPred) return {0, 1};
  const int bits = Row(dtype).bits;
  if (IsUnsigned(dtype)) return {0, bits == 64 ? kHigh : (int64_t{1} << bits) - 1};
  return {kLow >> (64 - bits), kHigh >> (64 - bits)};
}

void CheckHolds(std::string_view op, DType dtype, int64_t low, int64_t last) {
  if (IsComplex(dtype)) {
    ThrowRecordError(op, WrongType("makes integers or floats, not ", DTypeText(dtype)));
  }
  const IntegerBounds bounds = BoundsOf(dtype);
  if (low >= bounds.low && last <= bounds.high) return;
  ThrowRecordError(op,
                   InvalidArgument("integers from ", low, " to ", last, " are not all within ",
                                   DTypeText(dtype), ", [", bounds.low, ", ", bounds.high, "]"));
}

}  // namespace

Tensor Randint(int64_t low, int64_t high, absl::Span<const int64_t> dims, DType dtype,
               backend::Device device, Generator& generator) {
  CheckShape("randint", dims, dtype);
  if (low >= high) {
    ThrowRecordError("randint", InvalidArgument("low must be below high, but ", low, " >= ", high));
  }
  CheckHolds("randint", dtype, low, high - 1);
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  const std::array<Value, 2> values{Number(low).Slot(DType::kS64), Number(range).Slot(DType::kU64)};
  const std::array<Operand, 2> numbers{values[0], values[1]};
  RandomIntegerOp op{Dims(dims.begin(), dims.end()), dtype};
  return RecordRandom(op, 2 * Count(op.dims), device, generator, numbers);
}
Tensor Randint(int64_t high, absl::Span<const int64_t> dims, DType dtype, backend::Device device,
               Generator& generator) {
  return Randint(0, high, dims, dtype, device, generator);
}

Tensor Randperm(int64_t count, DType dtype, backend::Device device, Generator& generator) {
  CheckShape("randperm", {count}, dtype);
  if (count > 0) CheckHolds("randperm", dtype, 0, count - 1);
  return RecordRandom(RandomPermutationOp{count, dtype}, 2 * count, device, generator);
}

Tensor RandLike(const Tensor& x, std::optional<DType> dtype,
                const std::optional<backend::Device>& device, Generator& generator) {
  return Rand(x.shape().dims(), dtype.value_or(x.dtype()), device.value_or(x.device()), generator);
}
Tensor RandnLike(const Tensor& x, std::optional<DType> dtype,
                 const std::optional<backend::Device>& device, Generator& generator) {
  return Randn(x.shape().dims(), dtype.value_or(x.dtype()), device.value_or(x.device()), generator);
}
Tensor RandintLike(const Tensor& x, int64_t low, int64_t high, std::optional<DType> dtype,
                   const std::optional<backend::Device>& device, Generator& generator) {
  return Randint(low, high, x.shape().dims(), dtype.value_or(x.dtype()),
                 device.value_or(x.device()), generator);
}
Tensor RandintLike(const Tensor& x, int64_t high, std::optional<DType> dtype,
                   const std::optional<backend::Device>& device, Generator& generator) {
  return RandintLike(x, 0, high, dtype, device, generator);
}

}  // namespace lazuli::lazy
