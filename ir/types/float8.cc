#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "ir/types/half.h"

namespace lazuli::ir {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// What the top codes mean.
enum class Specials : uint8_t {
  kIeee,          // the top exponent is infinity and NaNs
  kNaNOnly,       // all exponent and mantissa bits set is NaN; no infinity
  kUnsignedZero,  // 0x80 is NaN; neither infinity nor negative zero
  kNone,          // every code is finite
};

struct Float8Format {
  int exponent_bits, mantissa_bits, bias;
  Specials specials;
};

constexpr Float8Format kFormats[] = {
    {},                                   // formats are numbered from 1 (dtype.def)
    {5, 2, 15, Specials::kIeee},          // f8e5m2
    {4, 3, 7, Specials::kIeee},           // f8e4m3
    {4, 3, 7, Specials::kNaNOnly},        // f8e4m3fn
    {4, 3, 11, Specials::kUnsignedZero},  // f8e4m3b11fnuz
    {4, 3, 8, Specials::kUnsignedZero},   // f8e4m3fnuz
    {5, 2, 16, Specials::kUnsignedZero},  // f8e5m2fnuz
    {3, 4, 3, Specials::kIeee},           // f8e3m4
    {8, 0, 127, Specials::kNaNOnly},      // f8e8m0fnu: no sign bit
    {2, 1, 1, Specials::kNone},           // f4e2m1fn
};
constexpr int kPowerOfTwo = 8;  // f8e8m0fnu

// Value of `code` (without sign) read as if every code were finite.
double FiniteValue(const Float8Format& f, int code) {
  const int mantissa = code & ((1 << f.mantissa_bits) - 1);
  const int exponent = code >> f.mantissa_bits;
  const double fraction = std::ldexp(mantissa, -f.mantissa_bits);
  return exponent == 0 ? std::ldexp(fraction, 1 - f.bias)
                       : std::ldexp(1 + fraction, exponent - f.bias);
}

// The values of a format's codes without sign, ascending.
struct Table {
  std::array<float, 256> value{};
  int last_finite = 0;  // code of the greatest finite value
  double overflow = 0;  // the value that would follow it
};

Table MakeTable(int format) {
  const Float8Format& f = kFormats[format];
  Table table;
  const int codes = 1 << (f.exponent_bits + f.mantissa_bits);
  for (int code = 0; code < codes; ++code) {
    const int exponent = code >> f.mantissa_bits;
    float value = static_cast<float>(format == kPowerOfTwo ? std::ldexp(1.0, code - f.bias)
                                                           : FiniteValue(f, code));
    if (f.specials == Specials::kIeee && exponent == (1 << f.exponent_bits) - 1) {
      value = (code & ((1 << f.mantissa_bits) - 1)) == 0 ? kInf : kNaN;
    }
    if (f.specials == Specials::kNaNOnly && code == codes - 1) value = kNaN;
    table.value[static_cast<std::size_t>(code)] = value;
    if (std::isfinite(value)) table.last_finite = code;
  }
  const int next = table.last_finite + 1;
  table.overflow = format == kPowerOfTwo ? std::ldexp(1.0, next - f.bias) : FiniteValue(f, next);
  return table;
}

const Table& TableOf(int format) {
  static const auto tables = [] {
    std::array<Table, std::size(kFormats)> made;
    for (std::size_t i = 1; i < made.size(); ++i) made[i] = MakeTable(static_cast<int>(i));
    return made;
  }();
  return tables[static_cast<std::size_t>(format)];
}

// The code whose value is nearest to `magnitude`; on a tie the even one, or the upper one for
// powers of two (as ml_dtypes does); last_finite + 1 on overflow.
int Nearest(const Table& table, double magnitude, bool ties_up = false) {
  const float* begin = table.value.data();
  const float* end = begin + table.last_finite + 1;
  const auto above = static_cast<int>(std::lower_bound(begin, end, magnitude) - begin);
  if (above == 0) return 0;
  const double low = table.value[static_cast<std::size_t>(above - 1)];
  const double high =
      above > table.last_finite ? table.overflow : table.value[static_cast<std::size_t>(above)];
  const double from_low = magnitude - low, from_high = high - magnitude;
  if (from_low == from_high) return ties_up || above % 2 == 0 ? above : above - 1;
  return from_low < from_high ? above - 1 : above;
}

uint8_t Encode(int format, float value) {
  const Float8Format& f = kFormats[format];
  const Table& table = TableOf(format);
  const int width = 1 + f.exponent_bits + f.mantissa_bits;
  const bool negative = std::signbit(value);
  if (format == kPowerOfTwo) {
    if (!(value > 0) || std::isinf(value)) return 0xff;  // no zero, no sign, no infinity
    return static_cast<uint8_t>(std::min(0xff, Nearest(table, value, /*ties_up=*/true)));
  }
  const int sign = negative ? 1 << (width - 1) : 0;
  const int inf = ((1 << f.exponent_bits) - 1) << f.mantissa_bits;
  int code = 0;
  if (std::isnan(value)) {
    switch (f.specials) {
      case Specials::kIeee:
        code = inf | (1 << (f.mantissa_bits - 1));
        break;
      case Specials::kNaNOnly:
        code = (1 << (width - 1)) - 1;
        break;
      case Specials::kUnsignedZero:
        return 0x80;
      case Specials::kNone:
        return static_cast<uint8_t>(1 << (width - 1));  // negative zero
    }
    return static_cast<uint8_t>(sign | code);
  }
  code = std::isinf(value) ? table.last_finite + 1
                           : Nearest(table, std::fabs(static_cast<double>(value)));
  if (code > table.last_finite) {
    if (f.specials == Specials::kUnsignedZero) return 0x80;
    code = f.specials == Specials::kNone ? table.last_finite : table.last_finite + 1;
  }
  if (code == 0 && f.specials == Specials::kUnsignedZero) return 0;
  return static_cast<uint8_t>(sign | code);
}

float Decode(int format, uint8_t bits) {
  const Float8Format& f = kFormats[format];
  if (format == kPowerOfTwo) return TableOf(format).value[bits];
  const int width = 1 + f.exponent_bits + f.mantissa_bits;
  if (f.specials == Specials::kUnsignedZero && bits == 0x80) return -kNaN;
  const int magnitude = bits & ((1 << (width - 1)) - 1);
  const float value = TableOf(format).value[static_cast<std::size_t>(magnitude)];
  return (bits >> (width - 1)) & 1 ? -value : value;
}

}  // namespace

template <int kFormat>
Float8<kFormat>::Float8(float value) : bits(Encode(kFormat, value)) {}

template <int kFormat>
Float8<kFormat>::operator float() const {
  return Decode(kFormat, bits);
}

template struct Float8<1>;
template struct Float8<2>;
template struct Float8<3>;
template struct Float8<4>;
template struct Float8<5>;
template struct Float8<6>;
template struct Float8<7>;
template struct Float8<8>;
template struct Float8<9>;

}  // namespace lazuli::ir
