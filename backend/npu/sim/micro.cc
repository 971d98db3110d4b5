#include "backend/npu/sim/micro.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "backend/npu/sim/numerics.h"
#include "ir/recipes/recipes.h"

namespace lazuli::npu {
namespace {

enum Arithmetic { kFloatType, kSignedType, kUnsignedType };

template <class F>
void MapFloat(const Lanes& a, Lanes& d, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    d[at] = std::bit_cast<uint32_t>(Canonical(f(std::bit_cast<float>(a[at]))));
  }
}
template <class F>
void MapFloat(const Lanes& a, const Lanes& b, Lanes& d, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    d[at] = std::bit_cast<uint32_t>(
        Canonical(f(std::bit_cast<float>(a[at]), std::bit_cast<float>(b[at]))));
  }
}
template <class F>
void MapBits(const Lanes& a, const Lanes& b, Lanes& d, int64_t n, F f) {
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    d[at] = f(a[at], b[at]);
  }
}
int32_t Signed(uint32_t bits) { return static_cast<int32_t>(bits); }

template <class F>
void Compare(const Lanes& a, const Lanes& b, Lanes& d, int64_t n, int type, F f) {
  if (type == kFloatType)
    return MapBits(a, b, d, n, [f](uint32_t x, uint32_t y) {
      return uint32_t{f(std::bit_cast<float>(x), std::bit_cast<float>(y))};
    });
  if (type == kSignedType)
    return MapBits(a, b, d, n,
                   [f](uint32_t x, uint32_t y) { return uint32_t{f(Signed(x), Signed(y))}; });
  MapBits(a, b, d, n, [f](uint32_t x, uint32_t y) { return uint32_t{f(x, y)}; });
}

uint32_t DivideBits(uint32_t a, uint32_t b, int type) {
  if (b == 0) return ~0u;
  if (type == kUnsignedType) return a / b;
  if (b == ~0u) return 0u - a;
  return static_cast<uint32_t>(Signed(a) / Signed(b));
}
uint32_t RemainderBits(uint32_t a, uint32_t b, int type) {
  if (b == 0) return a;
  if (type == kUnsignedType) return a % b;
  return b == ~0u ? 0u : static_cast<uint32_t>(Signed(a) % Signed(b));
}

uint32_t Truncated(float value, int type) {
  if (value != value) return 0;
  if (type == kUnsignedType)
    return value <= 0 ? 0 : value >= 4294967296.0f ? ~0u : static_cast<uint32_t>(value);
  if (value >= 2147483648.0f) return 0x7fffffffu;
  return value < -2147483648.0f ? 0x80000000u : static_cast<uint32_t>(static_cast<int32_t>(value));
}

// The special functions: the evaluator's recipes.
void Special(const MicroInstruction& m, const Lanes& a, const Lanes& b, Lanes& d, int64_t n) {
  namespace r = hlo::recipes;
  switch (m.op) {
    case Micro::kRcp:
      return MapFloat(a, d, n, [](float x) { return 1.0f / x; });
    case Micro::kSqrt:
      return MapFloat(a, d, n, [](float x) { return r::Sqrt(x); });
    case Micro::kRsqrt:
      return MapFloat(a, d, n, [](float x) { return r::Rsqrt(x); });
    case Micro::kCbrt:
      return MapFloat(a, d, n, [](float x) { return r::Cbrt(x); });
    case Micro::kExp:
      return MapFloat(a, d, n, [](float x) { return r::Exp(x); });
    case Micro::kExpm1:
      return MapFloat(a, d, n, [](float x) { return r::Expm1(x); });
    case Micro::kLog:
      return MapFloat(a, d, n, [](float x) { return r::Log(x); });
    case Micro::kLog1p:
      return MapFloat(a, d, n, [](float x) { return r::Log1p(x); });
    case Micro::kTanh:
      return MapFloat(a, d, n, [](float x) { return r::Tanh(x); });
    case Micro::kLogistic:
      return MapFloat(a, d, n, [](float x) { return r::Logistic(x); });
    case Micro::kErf:
      return MapFloat(a, d, n, [](float x) { return r::Erf(x); });
    case Micro::kSin:
      return MapFloat(a, d, n, [](float x) { return r::Sin(x); });
    case Micro::kCos:
      return MapFloat(a, d, n, [](float x) { return r::Cos(x); });
    case Micro::kTan:
      return MapFloat(a, d, n, [](float x) { return r::Tan(x); });
    case Micro::kPow:
      return MapFloat(a, b, d, n, [](float x, float y) { return r::Power(x, y); });
    case Micro::kAtan2:
      return MapFloat(a, b, d, n, [](float x, float y) { return r::Atan2(x, y); });
    case Micro::kDiv:
      if (m.type == kFloatType) return MapFloat(a, b, d, n, [](float x, float y) { return x / y; });
      return MapBits(a, b, d, n, [&m](uint32_t x, uint32_t y) { return DivideBits(x, y, m.type); });
    case Micro::kRem:
      if (m.type == kFloatType)
        return MapFloat(a, b, d, n, [](float x, float y) { return r::Remainder(x, y); });
      return MapBits(a, b, d, n,
                     [&m](uint32_t x, uint32_t y) { return RemainderBits(x, y, m.type); });
    default:
      return;
  }
}

void Simple(const MicroInstruction& m, const Lanes& a, const Lanes& b, const Lanes& c, Lanes& d,
            int64_t n) {
  namespace r = hlo::recipes;
  const bool f = m.type == kFloatType, s = m.type == kSignedType;
  switch (m.op) {
    case Micro::kMov:
      std::copy_n(a.begin(), n, d.begin());
      return;
    case Micro::kAdd:
      if (f) return MapFloat(a, b, d, n, [](float x, float y) { return x + y; });
      return MapBits(a, b, d, n, [](uint32_t x, uint32_t y) { return x + y; });
    case Micro::kSub:
      if (f) return MapFloat(a, b, d, n, [](float x, float y) { return x - y; });
      return MapBits(a, b, d, n, [](uint32_t x, uint32_t y) { return x - y; });
    case Micro::kMul:
      if (f) return MapFloat(a, b, d, n, [](float x, float y) { return x * y; });
      return MapBits(a, b, d, n, [](uint32_t x, uint32_t y) { return x * y; });
    case Micro::kFma:
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i)
        d[i] = std::bit_cast<uint32_t>(Canonical(std::fma(
            std::bit_cast<float>(a[i]), std::bit_cast<float>(b[i]), std::bit_cast<float>(c[i]))));
      return;
    case Micro::kMax:
      if (f) return MapFloat(a, b, d, n, [](float x, float y) { return r::Maximum(x, y); });
      return MapBits(a, b, d, n, [s](uint32_t x, uint32_t y) {
        return (s ? Signed(x) > Signed(y) : x > y) ? x : y;
      });
    case Micro::kMin:
      if (f) return MapFloat(a, b, d, n, [](float x, float y) { return r::Minimum(x, y); });
      return MapBits(a, b, d, n, [s](uint32_t x, uint32_t y) {
        return (s ? Signed(x) < Signed(y) : x < y) ? x : y;
      });
    case Micro::kSel:
      for (std::size_t i = 0; i < static_cast<std::size_t>(n); ++i) d[i] = a[i] != 0 ? b[i] : c[i];
      return;
    case Micro::kAnd:
      return MapBits(a, b, d, n, [](uint32_t x, uint32_t y) { return x & y; });
    case Micro::kOr:
      return MapBits(a, b, d, n, [](uint32_t x, uint32_t y) { return x | y; });
    case Micro::kXor:
      return MapBits(a, b, d, n, [](uint32_t x, uint32_t y) { return x ^ y; });
    case Micro::kShl:
      return MapBits(a, b, d, n, [](uint32_t x, uint32_t y) { return y < 32 ? x << y : 0u; });
    case Micro::kShr:
      return MapBits(a, b, d, n, [s](uint32_t x, uint32_t y) {
        if (s) return static_cast<uint32_t>(Signed(x) >> std::min(y, 31u));
        return y < 32 ? x >> y : 0u;
      });
    case Micro::kAbs:
      if (f) return MapFloat(a, d, n, [](float x) { return r::Abs(x); });
      return MapBits(a, a, d, n,
                     [s](uint32_t x, uint32_t) { return s && Signed(x) < 0 ? 0u - x : x; });
    case Micro::kNeg:
      if (f) return MapFloat(a, d, n, [](float x) { return -x; });
      return MapBits(a, a, d, n, [](uint32_t x, uint32_t) { return 0u - x; });
    case Micro::kFlr:
      return MapFloat(a, d, n, [](float x) { return r::Floor(x); });
    case Micro::kRnd:
      return MapFloat(a, d, n, [](float x) { return r::RoundNearestEven(x); });
    case Micro::kSgn:
      if (f) return MapFloat(a, d, n, [](float x) { return r::Sign(x); });
      return MapBits(a, a, d, n, [s](uint32_t x, uint32_t) {
        return static_cast<uint32_t>(x == 0 ? 0 : s && Signed(x) < 0 ? -1 : 1);
      });
    case Micro::kToF:
      return MapBits(a, a, d, n, [&m](uint32_t x, uint32_t) {
        return std::bit_cast<uint32_t>(m.type == kUnsignedType ? static_cast<float>(x)
                                                               : static_cast<float>(Signed(x)));
      });
    case Micro::kToI:
      return MapBits(a, a, d, n, [&m](uint32_t x, uint32_t) {
        return Truncated(std::bit_cast<float>(x), m.type == kFloatType ? kSignedType : m.type);
      });
    case Micro::kBf:
      return MapFloat(a, d, n, [](float x) { return RoundToBf16(x); });
    case Micro::kCmpEq:
      return Compare(a, b, d, n, m.type, [](auto x, auto y) { return x == y; });
    case Micro::kCmpNe:
      return Compare(a, b, d, n, m.type, [](auto x, auto y) { return x != y; });
    case Micro::kCmpLt:
      return Compare(a, b, d, n, m.type, [](auto x, auto y) { return x < y; });
    case Micro::kCmpLe:
      return Compare(a, b, d, n, m.type, [](auto x, auto y) { return x <= y; });
    case Micro::kCmpGt:
      return Compare(a, b, d, n, m.type, [](auto x, auto y) { return x > y; });
    case Micro::kCmpGe:
      return Compare(a, b, d, n, m.type, [](auto x, auto y) { return x >= y; });
    default:
      return;
  }
}

}  // namespace

void Compute(const MicroInstruction& micro, const Lanes& a, const Lanes& b, const Lanes& c,
             Lanes& d, int64_t n) {
  if (static_cast<int>(micro.op) >= static_cast<int>(Micro::kRcp))
    Special(micro, a, b, d, n);
  else
    Simple(micro, a, b, c, d, n);
}

}  // namespace lazuli::npu
