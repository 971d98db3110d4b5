// Rounding: trunc, frac, and round to decimals.
#include <cmath>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/wide.h"
#include "lazy/ops/elementwise/composite.h"

namespace lazuli::lazy {

Tensor Trunc(const Tensor& x) {
  if (IsFloat(x.dtype())) return Where(Lt(x, Number0(x)), Ceil(x), Floor(x));
  if (IsIntegral(x.dtype())) return Clone(x);
  ThrowRecordError("trunc", WrongType("takes integers or floats, not ", x.shape()));
}

Tensor Frac(const Tensor& x) {
  if (!IsFloat(x.dtype())) ThrowRecordError("frac", WrongType("takes floats, not ", x.shape()));
  return x - Trunc(x);
}

Tensor Round(const Tensor& x, int64_t decimals) {
  if (!IsFloat(x.dtype())) {
    if (IsIntegral(x.dtype())) return Clone(x);
    ThrowRecordError("round", WrongType("takes integers or floats, not ", x.shape()));
  }
  return InWide(x, [&](const Tensor& wide) {
    const double power = std::pow(10.0, std::abs(static_cast<double>(decimals)));
    return decimals < 0 ? Round(wide / power) * power : Round(wide * power) / power;
  });
}

}  // namespace lazuli::lazy
