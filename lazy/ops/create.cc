#include "lazy/ops/create.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

#include "ir/support/wrong_type.h"
#include "lazy/ops/default_type.h"
#include "lazy/ops/index.h"
#include "lazy/ops/random.h"
#include "lazy/tensor/random.h"

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

lowering::Op Join64(lowering::Builder& b, lowering::Op low, lowering::Op high) {
  return Or(Left(b.Convert(high, DType::kU64), 32), b.Convert(low, DType::kU64));
}

// The words of the generator's state that an op takes as numbers.
struct PhiloxWords {
  lowering::Op seed_low, seed_high, offset_low, offset_high;
};

// `count` random u32 as a flat array.
lowering::Op RandomBits(lowering::Builder& b, int64_t count, const PhiloxWords& s) {
  const lowering::Op state = b.Concatenate({b.Reshape(Join64(b, s.seed_low, s.seed_high), {1}),
                                            b.Reshape(Join64(b, s.offset_low, s.offset_high), {1})},
                                           0);
  return b.RngBitGenerator(hlo::RngAlgorithm::kPhilox, state, Shape(DType::kU32, {count})).second;
}

// The i-th of pieces of `count`.
lowering::Op Piece(lowering::Op bits, int64_t i, int64_t count) {
  return bits.builder()->Slice(bits, {i * count}, {(i + 1) * count}, {1});
}

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

// The i-th `count` uniform numbers: in f64, or in f32 with the bits of a narrower dtype.
lowering::Op Uniform(lowering::Builder& b, lowering::Op bits, int64_t i, int64_t count,
                     DType dtype) {
  if (dtype != DType::kF64) return UnitFloat(b, Piece(bits, i, count), UniformBits(dtype));
  return UnitDouble(b, Piece(bits, 2 * i, count), Piece(bits, 2 * i + 1, count));
}

// The numbers, then those of the generator's state.
template <class T>
Tensor RecordRandom(T op, int64_t reserved, backend::Device device, Generator& generator,
                    absl::Span<const Value> numbers = {}) {
  const PhiloxState state = generator.Reserve(reserved);
  Context::Current().NoteDraw(generator, state, After(state, reserved));
  auto slot = [](uint64_t half) {
    return Number(static_cast<int64_t>(half & 0xffffffffu)).Slot(DType::kU32);
  };
  const std::array<Value, 4> slots{slot(state.seed), slot(state.seed >> 32), slot(state.offset),
                                   slot(state.offset >> 32)};
  absl::InlinedVector<Operand, 6> in(numbers.begin(), numbers.end());
  in.insert(in.end(), slots.begin(), slots.end());
  return RecordOne(std::move(op), in, device);
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

void CheckDims(std::string_view op, absl::Span<const int64_t> dims, DType dtype) {
  absl::StatusOr<Shape> shape = Shape::Make(dtype, dims);
  if (!shape.ok()) ThrowRecordError(op, shape.status());
}

void CheckRandom(std::string_view op, absl::Span<const int64_t> dims, DType dtype) {
  CheckDims(op, dims, dtype);
  if (!IsFloat(dtype) || ByteWidth(dtype) < 2) {
    ThrowRecordError(op, WrongType("makes f16, bf16, f32 or f64, not ", DTypeText(dtype)));
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

namespace {
void CheckCounts(DType dtype) {
  if (dtype == DType::kPred)
    ThrowRecordError("arange", WrongType("counts in numbers, not in pred"));
}
}  // namespace

Tensor Arange(int64_t count, DType dtype, backend::Device device) {
  CheckCounts(dtype);
  return RecordOne(PositionsOp{Dims{count}, 0, dtype}, {}, device);
}

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
struct Bounds {
  int64_t low, high;
};
Bounds BoundsOf(DType dtype) {
  constexpr int64_t kLow = std::numeric_limits<int64_t>::min(), kHigh = ~kLow;
  if (IsFloat(dtype)) {
    // What is finite: above the digits it holds, a float is the nearest one.
    const double largest = dtype == DType::kF16 ? 65504 : 0x1p63;
    return largest >= 0x1p63
               ? Bounds{kLow, kHigh}
               : Bounds{-static_cast<int64_t>(largest), static_cast<int64_t>(largest)};
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
  const Bounds bounds = BoundsOf(dtype);
  if (low >= bounds.low && last <= bounds.high) return;
  ThrowRecordError(op,
                   InvalidArgument("integers from ", low, " to ", last, " are not all within ",
                                   DTypeText(dtype), ", [", bounds.low, ", ", bounds.high, "]"));
}

}  // namespace

Tensor Randint(int64_t low, int64_t high, absl::Span<const int64_t> dims, DType dtype,
               backend::Device device, Generator& generator) {
  CheckDims("randint", dims, dtype);
  if (low >= high) {
    ThrowRecordError("randint", InvalidArgument("low must be below high, but ", low, " >= ", high));
  }
  CheckHolds("randint", dtype, low, high - 1);
  const uint64_t range = static_cast<uint64_t>(high) - static_cast<uint64_t>(low);
  const std::array<Value, 2> numbers{Number(low).Slot(DType::kS64),
                                     Number(range).Slot(DType::kU64)};
  RandomIntegerOp op{Dims(dims.begin(), dims.end()), dtype};
  return RecordRandom(op, 2 * Count(op.dims), device, generator, numbers);
}
Tensor Randint(int64_t high, absl::Span<const int64_t> dims, DType dtype, backend::Device device,
               Generator& generator) {
  return Randint(0, high, dims, dtype, device, generator);
}

Tensor Randperm(int64_t count, DType dtype, backend::Device device, Generator& generator) {
  CheckDims("randperm", {count}, dtype);
  if (count > 0) CheckHolds("randperm", dtype, 0, count - 1);
  return RecordRandom(RandomPermutationOp{count, dtype}, 2 * count, device, generator);
}

Tensor Dropout(const Tensor& x, double probability) {
  if (!IsFloat(x.dtype())) ThrowRecordError("dropout", WrongType("takes floats, not ", x.shape()));
  if (!(probability >= 0 && probability <= 1)) {
    ThrowRecordError("dropout", InvalidArgument("p must be in [0, 1], is ", probability));
  }
  const Tensor keep =
      Ge(Rand(x.shape().dims(), DType::kF32, x.device()), Number(probability).Slot(DType::kF32));
  const double scale = probability < 1 ? 1 / (1 - probability) : 0;
  return Mul(Mul(x, To(keep, x.dtype())), Number(scale).Slot(x.dtype()));
}

Tensor Full(absl::Span<const int64_t> dims, const Number& value, std::optional<DType> dtype,
            backend::Device device) {
  return Full(dims, value.As(dtype.value_or(value.DefaultType())), device);
}

namespace {
Tensor Filled(std::string_view op, absl::Span<const int64_t> dims, double value, DType dtype,
              backend::Device device) {
  const absl::StatusOr<Shape> shape = Shape::Make(dtype, dims);
  if (!shape.ok()) ThrowRecordError(op, shape.status());
  return FullConstant(*shape, value, device);
}
}  // namespace

Tensor Zeros(absl::Span<const int64_t> dims, std::optional<DType> dtype, backend::Device device) {
  return Filled("zeros", dims, 0, dtype.value_or(DefaultFloat()), device);
}
Tensor Ones(absl::Span<const int64_t> dims, std::optional<DType> dtype, backend::Device device) {
  return Filled("ones", dims, 1, dtype.value_or(DefaultFloat()), device);
}
Tensor Empty(absl::Span<const int64_t> dims, std::optional<DType> dtype, backend::Device device) {
  return Filled("empty", dims, 0, dtype.value_or(DefaultFloat()), device);
}
Tensor ZerosLike(const Tensor& x, std::optional<DType> dtype,
                 const std::optional<backend::Device>& device) {
  return FullConstant(Shape(dtype.value_or(x.dtype()), x.shape().dims()), 0,
                      device.value_or(x.device()));
}
Tensor OnesLike(const Tensor& x, std::optional<DType> dtype,
                const std::optional<backend::Device>& device) {
  return FullConstant(Shape(dtype.value_or(x.dtype()), x.shape().dims()), 1,
                      device.value_or(x.device()));
}
Tensor EmptyLike(const Tensor& x, std::optional<DType> dtype,
                 const std::optional<backend::Device>& device) {
  return ZerosLike(x, dtype, device);
}
Tensor FullLike(const Tensor& x, const Number& value, std::optional<DType> dtype,
                const std::optional<backend::Device>& device) {
  return Full(x.shape().dims(), value.As(dtype.value_or(x.dtype())), device.value_or(x.device()));
}
Tensor Constant(double value, std::optional<DType> dtype, backend::Device device) {
  return Filled("constant", {}, value, dtype.value_or(DefaultFloat()), device);
}

Tensor Arange(const Number& end, std::optional<DType> dtype, backend::Device device) {
  if (dtype && IsIntegral(*dtype) && !end.is_whole()) return Arange(0, end, 1, dtype, device);
  const double count = std::ceil(end.as_double());
  if (!(count >= 0 && count < 0x1p53)) {
    ThrowRecordError("arange",
                     InvalidArgument("end must be at least 0 and finite, is ", end.as_double()));
  }
  return Arange(static_cast<int64_t>(count),
                dtype.value_or(end.is_whole() ? DType::kS64 : DefaultFloat()), device);
}

Tensor Arange(const Number& start, const Number& end, const Number& step,
              std::optional<DType> dtype, backend::Device device) {
  const bool all_whole = start.is_whole() && end.is_whole() && step.is_whole();
  const DType type = dtype.value_or(all_whole ? DType::kS64 : DefaultFloat());
  CheckCounts(type);
  const bool is_whole = IsIntegral(type);
  // An array of whole numbers counts in them. Of integers a long double has all bits.
  const auto whole = [](const Number& n) {
    return n.is_whole() ? n : Number(static_cast<int64_t>(n.as_double()));
  };
  const Number first = is_whole ? whole(start) : start, by = is_whole ? whole(step) : step;
  const auto value = [](const Number& n) {
    const auto integer = n.as_integer();
    return integer ? static_cast<long double>(*integer) : static_cast<long double>(n.as_double());
  };
  const bool exact = type == DType::kS64;
  const long double length = value(exact ? whole(end) : end) - value(exact ? first : start);
  const long double each = value(exact ? by : step);
  if (!std::isfinite(length)) {
    ThrowRecordError(
        "arange", InvalidArgument(start.Text(), " to ", end.Text(), " is not a range of numbers"));
  }
  if (each == 0) ThrowRecordError("arange", InvalidArgument("step is 0"));
  if (length * each < 0) {
    ThrowRecordError("arange", InvalidArgument("steps of ", step.Text(), " lead from ",
                                               start.Text(), " away from ", end.Text()));
  }
  const long double count = std::ceil(
      all_whole || exact ? length / each : static_cast<double>(length) / static_cast<double>(each));
  if (!(count < 0x1p53L)) {
    ThrowRecordError(
        "arange", InvalidArgument(start.Text(), " to ", end.Text(), " is not a range of numbers"));
  }
  const DType wide = is_whole ? DType::kS64 : DType::kF64;
  const Tensor positions = Arange(static_cast<int64_t>(count), wide, device);
  return To(Add(Mul(positions, by.As(wide)), first.As(wide)), type);
}

namespace {
// From both ends, so that each is exact.
Tensor Between(const Tensor& start, const Tensor& end, int64_t steps, std::optional<DType> dtype) {
  if (steps < 0)
    ThrowRecordError("linspace", InvalidArgument("steps must not be negative, is ", steps));
  if (start.rank() != 0 || end.rank() != 0) {
    ThrowRecordError("linspace", InvalidArgument("start and end must be numbers or of rank 0, are ",
                                                 start.shape(), " and ", end.shape()));
  }
  const bool is_complex = IsComplex(start.dtype()) || IsComplex(end.dtype());
  const DType wide = is_complex ? DType::kC128 : DType::kF64;
  const auto widened = [&](const Tensor& t) {  // of integers whole numbers
    return To(dtype && IsIntegral(*dtype) ? To(Detach(t), *dtype) : Detach(t), wide);
  };
  const Tensor first = widened(start), last = widened(end);
  const Tensor step = (last - first) / static_cast<double>(std::max<int64_t>(steps - 1, 1));
  const Tensor i = Arange(steps, DType::kS64, start.device());
  const Tensor before = To(i, wide), after = To(static_cast<double>(steps - 1) - i, wide);
  const int64_t half = std::max<int64_t>(steps / 2, 1);
  const Tensor is_early = Lt(i, Constant(static_cast<double>(half), DType::kS64));
  return To(Where(is_early, first + before * step, last - after * step),
            dtype.value_or(is_complex ? DefaultComplex() : DefaultFloat()));
}
Tensor RankZero(const Number& number, backend::Device device) {
  return Full({}, number.As(number.is_complex() ? DType::kC128 : DType::kF64), device);
}
}  // namespace

Tensor Linspace(const Number& start, const Number& end, int64_t steps, std::optional<DType> dtype,
                backend::Device device) {
  return Between(RankZero(start, device), RankZero(end, device), steps, dtype);
}
Tensor Linspace(const Tensor& start, const Tensor& end, int64_t steps, std::optional<DType> dtype,
                backend::Device /*device*/) {
  return Between(start, end, steps, dtype);
}
Tensor Linspace(const Tensor& start, const Number& end, int64_t steps, std::optional<DType> dtype,
                backend::Device /*device*/) {
  return Between(start, RankZero(end, start.device()), steps, dtype);
}
Tensor Linspace(const Number& start, const Tensor& end, int64_t steps, std::optional<DType> dtype,
                backend::Device /*device*/) {
  return Between(RankZero(start, end.device()), end, steps, dtype);
}

namespace {
Tensor Powers(const Tensor& start, const Tensor& end, int64_t steps, double base,
              std::optional<DType> dtype) {
  const bool is_complex = IsComplex(start.dtype()) || IsComplex(end.dtype());
  const DType wide = is_complex ? DType::kC128 : DType::kF64;
  const auto whole = [&](const Tensor& t) {
    return dtype && IsIntegral(*dtype) ? To(Detach(t), *dtype) : t;
  };
  return To(Pow(Constant(base, wide), Between(whole(start), whole(end), steps, wide)),
            dtype.value_or(is_complex ? DefaultComplex() : DefaultFloat()));
}
}  // namespace

Tensor Logspace(const Number& start, const Number& end, int64_t steps, double base,
                std::optional<DType> dtype, backend::Device device) {
  return Powers(RankZero(start, device), RankZero(end, device), steps, base, dtype);
}
Tensor Logspace(const Tensor& start, const Tensor& end, int64_t steps, double base,
                std::optional<DType> dtype, backend::Device /*device*/) {
  return Powers(start, end, steps, base, dtype);
}
Tensor Logspace(const Tensor& start, const Number& end, int64_t steps, double base,
                std::optional<DType> dtype, backend::Device /*device*/) {
  return Powers(start, RankZero(end, start.device()), steps, base, dtype);
}
Tensor Logspace(const Number& start, const Tensor& end, int64_t steps, double base,
                std::optional<DType> dtype, backend::Device /*device*/) {
  return Powers(RankZero(start, end.device()), end, steps, base, dtype);
}

Tensor Eye(int64_t n, std::optional<DType> dtype, backend::Device device) {
  return Eye(n, n, dtype, device);
}
Tensor Eye(int64_t n, int64_t m, std::optional<DType> dtype, backend::Device device) {
  if (n < 0 || m < 0)
    ThrowRecordError(
        "eye", InvalidArgument(n < 0 ? "n" : "m", " must not be negative, is ", n < 0 ? n : m));
  const Dims dims{n, m};
  return To(Eq(Positions(dims, 0, device), Positions(dims, 1, device)),
            dtype.value_or(DefaultFloat()));
}

Tensor ScalarTensor(const Number& s, std::optional<DType> dtype, backend::Device device) {
  return Full({}, s, dtype.value_or(DefaultFloat()), device);
}

Tensor EmptyStrided(absl::Span<const int64_t> size, absl::Span<const int64_t> stride,
                    std::optional<DType> dtype, backend::Device device) {
  constexpr char kOp[] = "empty_strided";
  if (size.size() != stride.size()) {
    ThrowRecordError(kOp, InvalidArgument("mismatch in the numbers of sizes (", Join(size, ", "),
                                          ") and strides (", Join(stride, ", "), ")"));
  }
  int64_t count = 1;
  bool empty = false;
  for (std::size_t i = 0; i < size.size(); ++i) {
    int64_t length = 0;
    if (size[i] < 0 || stride[i] < 0 || __builtin_mul_overflow(size[i] - 1, stride[i], &length) ||
        (size[i] > 0 && __builtin_add_overflow(count, length, &count))) {
      ThrowRecordError(kOp, InvalidArgument("sizes (", Join(size, ", "), ") and strides (",
                                            Join(stride, ", "), ") do not lie in memory"));
    }
    empty = empty || size[i] == 0;
  }
  const Dims row{empty ? 0 : count};
  return AsStridedView(Zeros(row, dtype, device), size, stride, std::nullopt);
}

Tensor EmptyPermuted(absl::Span<const int64_t> size, absl::Span<const int64_t> physical_layout,
                     std::optional<DType> dtype, backend::Device device) {
  constexpr char kOp[] = "empty_permuted";
  const auto rank = static_cast<int64_t>(size.size());
  Dims order, dims, back(size.size());
  for (const int64_t d : physical_layout) {
    const bool known =
        d >= 0 && d < rank && std::find(order.begin(), order.end(), d) == order.end();
    if (!known || physical_layout.size() != size.size()) break;
    back[static_cast<std::size_t>(d)] = static_cast<int64_t>(order.size());
    order.push_back(d);
    dims.push_back(size[static_cast<std::size_t>(d)]);
  }
  if (order.size() != size.size() || physical_layout.size() != size.size()) {
    ThrowRecordError(kOp,
                     InvalidArgument("physical_layout (", Join(physical_layout, ", "),
                                     ") is not an order of the dims of (", Join(size, ", "), ")"));
  }
  return PermuteView(Zeros(dims, dtype, device), back);
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
