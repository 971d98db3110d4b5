// Distance of a result from the exact value, in units in the last place of the result's type.
#pragma once

#include <cmath>
#include <limits>

namespace lazuli {

// 0 for the same infinity, both NaN, or zeros of one sign; huge where these differ. Subnormals
// count in their own unit. A finite result next to a rounding boundary of infinity is one unit away
// from it.
template <class S>
double Ulps(S got, long double exact) {
  constexpr double kWrong = 1e30;
  using Limits = std::numeric_limits<S>;
  if (std::isnan(exact)) return std::isnan(got) ? 0 : kWrong;
  if (std::isnan(got)) return kWrong;
  const S rounded = static_cast<S>(exact);
  if (std::isinf(rounded) || std::isinf(got)) {
    if (rounded == got) return 0;
    const bool adjacent = std::isinf(rounded) != std::isinf(got) && (rounded > 0) == (got > 0) &&
                          std::fabs(std::isinf(rounded) ? got : rounded) == Limits::max();
    return adjacent ? 1 : kWrong;
  }
  if (rounded == 0 && got == 0) return std::signbit(rounded) == std::signbit(got) ? 0 : kWrong;
  int exponent;
  std::frexp(std::fmax(std::fabs(static_cast<long double>(rounded)),
                       static_cast<long double>(Limits::min())),
             &exponent);
  const long double unit = std::ldexp(1.0L, exponent - Limits::digits);
  return static_cast<double>(std::fabs(static_cast<long double>(got) - exact) / unit);
}

}  // namespace lazuli
