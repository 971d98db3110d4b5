#include "lazy/ops/create.h"

#include <array>
#include <cmath>
#include <numeric>

#include "lazy/tensor/random.h"

namespace lazuli::lazy {
namespace {

using lowering::Opcode;

lowering::Op Join64(lowering::Builder& b, lowering::Op low, lowering::Op high) {
  const lowering::Op wide = b.Convert(high, DType::kU64);
  const lowering::Op shifted = b.Binary(Opcode::kShiftLeft, wide, b.Scalar(DType::kU64, 32));
  return b.Reshape(b.Binary(Opcode::kOr, shifted, b.Convert(low, DType::kU64)), {1});
}

// `count` random u32 as a flat array.
lowering::Op RandomBits(lowering::Builder& b, int64_t count, lowering::Op seed_low,
                        lowering::Op seed_high, lowering::Op offset_low, lowering::Op offset_high) {
  const lowering::Op state =
      b.Concatenate({Join64(b, seed_low, seed_high), Join64(b, offset_low, offset_high)}, 0);
  return b.RngBitGenerator(hlo::RngAlgorithm::kPhilox, state, Shape(DType::kU32, {count})).second;
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

int64_t Count(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

// 32-bit numbers that `count` uniform elements take.
int64_t NumbersFor(DType dtype, int64_t count) { return dtype == DType::kF64 ? 2 * count : count; }

template <class T>
Tensor RecordRandom(T op, int64_t numbers, backend::Device device) {
  const PhiloxState state = ReservePhilox(numbers);
  auto slot = [](uint64_t half) {
    return Number(static_cast<int64_t>(half & 0xffffffffu)).Slot(DType::kU32);
  };
  const std::array<Value, 4> slots{slot(state.seed), slot(state.seed >> 32), slot(state.offset),
                                   slot(state.offset >> 32)};
  const std::array<Operand, 4> in{slots[0], slots[1], slots[2], slots[3]};
  return RecordOne(std::move(op), in, device);
}

}  // namespace

lowering::Op UniformOp::Lower(lowering::Builder& b, lowering::Op seed_low, lowering::Op seed_high,
                              lowering::Op offset_low, lowering::Op offset_high) const {
  const int64_t n = Count(dims);
  const lowering::Op bits =
      RandomBits(b, NumbersFor(dtype, n), seed_low, seed_high, offset_low, offset_high);
  if (dtype != DType::kF64)
    return b.Reshape(b.Convert(UnitFloat(b, bits, UniformBits(dtype)), dtype), dims);
  return b.Reshape(UnitDouble(b, b.Slice(bits, {0}, {n}, {1}), b.Slice(bits, {n}, {2 * n}, {1})),
                   dims);
}

lowering::Op NormalOp::Lower(lowering::Builder& b, lowering::Op seed_low, lowering::Op seed_high,
                             lowering::Op offset_low, lowering::Op offset_high) const {
  const int64_t n = Count(dims);
  const lowering::Op bits = RandomBits(b, 2 * n, seed_low, seed_high, offset_low, offset_high);
  const lowering::Op unit = UnitFloat(b, bits, 24);
  const lowering::Op u = b.Slice(unit, {0}, {n}, {1}), v = b.Slice(unit, {n}, {2 * n}, {1});
  // 1 - u is in (0, 1], so the logarithm is finite.
  const lowering::Op one = b.Full(u.shape(), 1), minus_two = b.Full(u.shape(), -2);
  const lowering::Op radius =
      b.Unary(Opcode::kSqrt, b.Times(minus_two, b.Unary(Opcode::kLog, b.Minus(one, u))));
  const lowering::Op angle =
      b.Unary(Opcode::kCosine, b.Times(b.Full(v.shape(), 6.283185307179586), v));
  return b.Reshape(b.Convert(b.Times(radius, angle), dtype), dims);
}

namespace {

void CheckDims(std::string_view op, absl::Span<const int64_t> dims, DType dtype) {
  absl::StatusOr<Shape> shape = Shape::Make(dtype, dims);
  if (!shape.ok()) ThrowRecordError(op, shape.status());
}

void CheckRandom(std::string_view op, absl::Span<const int64_t> dims, DType dtype) {
  CheckDims(op, dims, dtype);
  if (!IsFloat(dtype) || ByteWidth(dtype) < 2) {
    ThrowRecordError(op, InvalidArgument("makes f16, bf16, f32 or f64, not ", DTypeText(dtype)));
  }
}

}  // namespace

Tensor Full(absl::Span<const int64_t> dims, const Value& value, backend::Device device) {
  CheckDims("full", dims, value.shape().dtype());
  const Operand in(value);
  return RecordOne(FullOp{Dims(dims.begin(), dims.end())}, absl::MakeConstSpan(&in, 1), device);
}

Tensor FullConstant(const Shape& shape, double value, backend::Device device) {
  const Value number = Constant(value, shape.dtype());
  const Operand in(number);
  return RecordOne(FullOp{Dims(shape.dims().begin(), shape.dims().end())},
                   absl::MakeConstSpan(&in, 1), device);
}

Tensor Positions(absl::Span<const int64_t> dims, int64_t dim, backend::Device device) {
  return RecordOne(PositionsOp{Dims(dims.begin(), dims.end()), dim, DType::kS64}, {}, device);
}

Tensor Arange(int64_t count, DType dtype, backend::Device device) {
  return RecordOne(PositionsOp{Dims{count}, 0, dtype}, {}, device);
}

Tensor Rand(absl::Span<const int64_t> dims, DType dtype, backend::Device device) {
  CheckRandom("rand", dims, dtype);
  UniformOp op{Dims(dims.begin(), dims.end()), dtype};
  return RecordRandom(op, NumbersFor(dtype, Count(op.dims)), device);
}

Tensor Randn(absl::Span<const int64_t> dims, DType dtype, backend::Device device) {
  CheckRandom("randn", dims, dtype);
  NormalOp op{Dims(dims.begin(), dims.end()), dtype};
  return RecordRandom(op, 2 * Count(op.dims), device);
}

Tensor Dropout(const Tensor& x, const Number& p) {
  if (!IsFloat(x.dtype()))
    ThrowRecordError("dropout", InvalidArgument("takes floats, not ", x.shape()));
  const double probability = p.as_double();
  if (!(probability >= 0 && probability <= 1)) {
    ThrowRecordError("dropout", InvalidArgument("p must be in [0, 1], is ", probability));
  }
  const Tensor keep = Ge(Rand(x.shape().dims(), DType::kF32, x.device()), p.Slot(DType::kF32));
  const double scale = probability < 1 ? 1 / (1 - probability) : 0;
  return Mul(Mul(x, To(keep, x.dtype())), Number(scale).Slot(x.dtype()));
}

}  // namespace lazuli::lazy
