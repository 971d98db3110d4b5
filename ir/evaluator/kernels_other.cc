// Elementwise opcodes whose meaning depends on attributes or on two types: compare, select, clamp,
// convert, reduce-precision, copy.

#include <algorithm>
#include <cstring>

#include "ir/evaluator/complex_ops.h"
#include "ir/evaluator/kernels.h"
#include "ir/evaluator/scalar_ops.h"

namespace lazuli::hlo {
namespace {

// The type in which values of host type T are compared.
template <class T>
auto Comparable(T x) {
  if constexpr (recipes::SmallFloat<T>) {
    return static_cast<float>(x);
  } else {
    return x;
  }
}

// Integers in the total order of floats: -NaN < -inf < ... < -0 < 0 < ... < inf < NaN.
int32_t TotalOrder(float x) {
  const auto bits = std::bit_cast<int32_t>(x);
  return bits < 0 ? bits ^ INT32_MAX : bits;
}
int64_t TotalOrder(double x) {
  const auto bits = std::bit_cast<int64_t>(x);
  return bits < 0 ? bits ^ INT64_MAX : bits;
}

template <class T, class Key, class Order>
void CompareLoop(const std::byte* const* operands, std::byte* result, int64_t count, Key key,
                 Order order) {
  const auto* x = reinterpret_cast<const T*>(operands[0]);
  const auto* y = reinterpret_cast<const T*>(operands[1]);
  auto* to = reinterpret_cast<bool*>(result);
  for (int64_t i = 0; i < count; ++i) to[i] = order(key(Comparable(x[i])), key(Comparable(y[i])));
}

template <class T, class Key>
void CompareByKey(ComparisonDirection direction, const std::byte* const* operands,
                  std::byte* result, int64_t count, Key key) {
  auto run = [&](auto order) { CompareLoop<T>(operands, result, count, key, order); };
  if (direction == ComparisonDirection::kEq) return run([](auto a, auto b) { return a == b; });
  if (direction == ComparisonDirection::kNe) return run([](auto a, auto b) { return a != b; });
  if constexpr (!recipes::kIsComplex<T>) {
    switch (direction) {
      case ComparisonDirection::kLt:
        return run([](auto a, auto b) { return a < b; });
      case ComparisonDirection::kLe:
        return run([](auto a, auto b) { return a <= b; });
      case ComparisonDirection::kGt:
        return run([](auto a, auto b) { return a > b; });
      case ComparisonDirection::kGe:
        return run([](auto a, auto b) { return a >= b; });
      default:
        return;
    }
  }
}

template <class T>
void Compare(const Instruction& instruction, const std::byte* const* operands, std::byte* result,
             int64_t count) {
  const auto& attrs = instruction.attrs_as<CompareAttrs>();
  if constexpr (std::is_floating_point_v<decltype(Comparable(T()))>) {
    if (attrs.type == ComparisonType::kTotalOrder) {
      return CompareByKey<T>(attrs.direction, operands, result, count,
                             [](auto x) { return TotalOrder(x); });
    }
  }
  CompareByKey<T>(attrs.direction, operands, result, count, [](auto x) { return x; });
}

struct Bytes16 {
  uint64_t low, high;
};

template <class T>
void Select(const Instruction&, const std::byte* const* operands, std::byte* result,
            int64_t count) {
  const auto* mask = reinterpret_cast<const bool*>(operands[0]);
  const auto* yes = reinterpret_cast<const T*>(operands[1]);
  const auto* no = reinterpret_cast<const T*>(operands[2]);
  auto* to = reinterpret_cast<T*>(result);
  for (int64_t i = 0; i < count; ++i) to[i] = mask[i] ? yes[i] : no[i];
}

template <class T>
void Clamp(const Instruction&, const std::byte* const* operands, std::byte* result, int64_t count) {
  const auto* low = reinterpret_cast<const T*>(operands[0]);
  const auto* x = reinterpret_cast<const T*>(operands[1]);
  const auto* high = reinterpret_cast<const T*>(operands[2]);
  auto* to = reinterpret_cast<T*>(result);
  for (int64_t i = 0; i < count; ++i)
    to[i] = recipes::Minimum(recipes::Maximum(x[i], low[i]), high[i]);
}

void Convert(const Instruction& instruction, const std::byte* const* operands, std::byte* result,
             int64_t count) {
  const Shape from(instruction.operand(0)->shape().dtype(), {count});
  const Literal converted =
      Literal::Foreign(from, operands[0], {}).Converted(instruction.shape().dtype());
  std::memcpy(result, converted.raw(), static_cast<std::size_t>(converted.byte_size()));
}

void Copy(const Instruction& instruction, const std::byte* const* operands, std::byte* result,
          int64_t count) {
  std::memcpy(result, operands[0],
              static_cast<std::size_t>(count * ByteWidth(instruction.shape().dtype())));
}

// `x` rounded to a format of fewer bits (to nearest even); what is too large becomes infinite, what
// would be subnormal zero.
template <class S>
S ReducePrecision(S x, int exponent_bits, int mantissa_bits) {
  using I = typename recipes::Ops<S>::Int::Unsigned;
  using Format = recipes::internal::Format<S>;
  constexpr I kSign = I{1} << (sizeof(I) * 8 - 1);
  constexpr I kMantissaMask = (I{1} << Format::kMantissa) - 1;
  constexpr I kExponentMask = ~(kSign | kMantissaMask);
  if (std::isnan(x)) return x;
  I bits = std::bit_cast<I>(x);
  const I sign = bits & kSign;
  if (mantissa_bits < Format::kMantissa) {
    const int dropped = Format::kMantissa - mantissa_bits;
    const I last = (bits >> dropped) & 1;
    bits = (bits + ((I{1} << (dropped - 1)) - 1) + last) & ~((I{1} << dropped) - 1);
  }
  constexpr int kExponentBits = static_cast<int>(sizeof(I)) * 8 - 1 - Format::kMantissa;
  if (exponent_bits < kExponentBits) {
    const int reduced_bias = (1 << (exponent_bits - 1)) - 1;
    const I exponent = bits & kExponentMask;
    const I largest = static_cast<I>(Format::kBias + reduced_bias) << Format::kMantissa;
    const I smallest = static_cast<I>(Format::kBias - reduced_bias) << Format::kMantissa;
    if (exponent > largest) bits = sign | kExponentMask;
    if (exponent <= smallest) bits = sign;
  }
  return std::bit_cast<S>(bits);
}

template <class T>
void ReducePrecisionLoop(const Instruction& instruction, const std::byte* const* operands,
                         std::byte* result, int64_t count) {
  const auto& attrs = instruction.attrs_as<ReducePrecisionAttrs>();
  const auto* x = reinterpret_cast<const T*>(operands[0]);
  auto* to = reinterpret_cast<T*>(result);
  for (int64_t i = 0; i < count; ++i) {
    to[i] = T(ReducePrecision(Comparable(x[i]), static_cast<int>(attrs.exponent_bits),
                              static_cast<int>(attrs.mantissa_bits)));
  }
}

// To an integer type: truncated, one more in magnitude if the fraction exceeds the random number
// (scaled to [0, 1)).
void StochasticConvert(const Instruction& instruction, const std::byte* const* operands,
                       std::byte* result, int64_t count) {
  const auto random_bits = Row(instruction.operand(1)->shape().dtype()).bits;
  const Literal x =
      Literal::Foreign(Shape(instruction.operand(0)->shape().dtype(), {count}), operands[0], {})
          .Converted(DType::kF64);
  const Literal random =
      Literal::Foreign(Shape(instruction.operand(1)->shape().dtype(), {count}), operands[1], {})
          .Converted(DType::kU64);
  Literal rounded = Literal::Uninitialized(x.shape());
  for (int64_t i = 0; i < count; ++i) {
    const auto index = static_cast<std::size_t>(i);
    const double value = x.data<double>()[index];
    const double whole = std::trunc(value);
    const double fraction = std::ldexp(std::fabs(value - whole), random_bits);
    const bool away = fraction > static_cast<double>(random.data<uint64_t>()[index]);
    rounded.mutable_data<double>()[index] = whole + (away ? std::copysign(1.0, value) : 0.0);
  }
  const Literal converted = rounded.Converted(instruction.shape().dtype());
  std::memcpy(result, converted.raw(), static_cast<std::size_t>(converted.byte_size()));
}

Kernel SelectOfWidth(int width) {
  switch (width) {
    case 1:
      return Select<uint8_t>;
    case 2:
      return Select<uint16_t>;
    case 4:
      return Select<uint32_t>;
    case 8:
      return Select<uint64_t>;
    default:
      return Select<Bytes16>;
  }
}

}  // namespace

Kernel FindKernel(const Instruction& instruction) {
  if (!instruction.shape().IsArray()) return nullptr;
  const DType dtype =
      instruction.operand_count() > 0 ? instruction.operand(0)->shape().dtype() : DType::kTuple;
  switch (instruction.opcode()) {
    case Opcode::kConvert:
      return Convert;
    case Opcode::kCopy:
      return Copy;
    case Opcode::kStochasticConvert:
      return StochasticConvert;
    case Opcode::kSelect:
      return SelectOfWidth(ByteWidth(instruction.shape().dtype()));
    case Opcode::kCompare:
      return VisitDType(dtype, []<DType kType>() -> Kernel { return Compare<HostType<kType>>; });
    case Opcode::kClamp:
      return VisitDType(dtype, []<DType kType>() -> Kernel {
        using T = HostType<kType>;
        if constexpr (recipes::kIsComplex<T>) {
          return nullptr;
        } else {
          return Clamp<T>;
        }
      });
    case Opcode::kReducePrecision:
      return VisitDType(dtype, []<DType kType>() -> Kernel {
        using T = HostType<kType>;
        if constexpr (recipes::SmallFloat<T> || std::is_floating_point_v<T>) {
          return ReducePrecisionLoop<T>;
        } else {
          return nullptr;
        }
      });
    default:
      return FindReferenceKernel(instruction.opcode(), dtype);
  }
}

}  // namespace lazuli::hlo
