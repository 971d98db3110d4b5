// Elements kept within bounds (clamp), and the larger or smaller of two of which one may be NaN (fmax,
// fmin).
#include <limits>

#include "lazy/ops/core/functions.h"
#include "lazy/ops/elementwise/composite.h"
#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli::lazy {

Tensor Clamp(const Tensor& in, const std::optional<Number>& low,
             const std::optional<Number>& high) {
  if (!low && !high) ThrowRecordError("clamp", InvalidArgument("takes a bound"));
  // A bound of floats makes integers floats, as in arithmetic.
  DType dtype = in.dtype();
  if (low) dtype = low->TypeBeside(dtype);
  if (high) dtype = high->TypeBeside(dtype);
  const Tensor x = To(in, dtype);
  if (!IsFloat(dtype)) {  // which has no infinity to stand for what is absent
    const Tensor above = low ? Maximum(x, low->As(dtype, Overflow::kRefuseAny)) : x;
    return high ? Minimum(above, high->As(dtype, Overflow::kRefuseAny)) : above;
  }
  return ClampBetween(x, low ? low->As(dtype) : Constant(-kInfinity, dtype),
                      high ? high->As(dtype) : Constant(kInfinity, dtype));
}

namespace {

// The one that `wins`, or that is alone a number; the first of equals.
Tensor AmongNumbers(std::string_view op, const Tensor& in_x, const Tensor& in_y,
                    Tensor (*wins)(const Operand&, const Operand&)) {
  const absl::StatusOr<DType> common = CommonType(in_x.shape(), in_y.shape());
  if (!common.ok()) ThrowRecordError(op, common.status());
  const Tensor x = To(in_x, *common), y = To(in_y, *common);
  return Where(LogicalOr(wins(x, y), Ne(y, y)), x, y);
}

}  // namespace

Tensor Fmax(const Tensor& x, const Tensor& y) { return AmongNumbers("fmax", x, y, &Ge); }
Tensor Fmin(const Tensor& x, const Tensor& y) { return AmongNumbers("fmin", x, y, &Le); }

Tensor Clamp(const Tensor& in, const Tensor& low, const Tensor& high) {
  if (!low.defined() && !high.defined())
    ThrowRecordError("clamp", InvalidArgument("takes a bound"));
  Tensor x = in;
  // The gradient is that of what is chosen; where one of them is NaN, nothing is.
  const auto bounded = [](const Tensor& beside, const Tensor& inside, const Tensor& outside,
                          const Tensor& bound) {
    const Tensor chosen = Where(inside, beside, bound);
    if (!IsFloat(chosen.dtype())) return chosen;
    const Value none = Constant(std::numeric_limits<double>::quiet_NaN(), chosen.dtype());
    return Where(LogicalOr(inside, outside), chosen, none);
  };
  if (low.defined()) x = bounded(x, Ge(x, low), Lt(x, low), low);
  if (high.defined()) x = bounded(x, Le(x, high), Gt(x, high), high);
  return x;
}

Tensor ClampMin(const Tensor& x, const Number& low) { return Clamp(x, low, std::nullopt); }
Tensor ClampMin(const Tensor& x, const Tensor& low) { return Clamp(x, low, Tensor()); }
Tensor ClampMax(const Tensor& x, const Number& high) { return Clamp(x, std::nullopt, high); }
Tensor ClampMax(const Tensor& x, const Tensor& high) { return Clamp(x, Tensor(), high); }

}  // namespace lazuli::lazy
