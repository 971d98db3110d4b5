#include "lazy/ops/special/zeta.h"

#include <limits>

#include "ir/support/wrong_type.h"
#include "lazy/ops/elementwise/elementwise.h"
#include "lazy/ops/elementwise/in_double.h"

namespace lazuli::lazy {
namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

// The sum of (q + k)^-x of a q that is no pole. Of a q below 0 the terms are those of its fraction f, those of 1 - f with the sign
// of an odd x, and without those that come before q.
Tensor ZetaAnywhere(const Tensor& x, const Tensor& q) {
  const Tensor below = Lt(q, F64(0)), f = q - Detach(Floor(q));
  const auto from = [&](const Tensor& of_negative, const Tensor& other) {
    return HurwitzZeta(x, Where(below, of_negative, other));
  };
  const Tensor one = Detach(q) * 0.0 + 1.0;
  const Tensor odd = x - Floor(x * 0.5) * 2.0;
  const Tensor others = from(1.0 - f, one) - from(1.0 - q, one);
  const Tensor sum = from(f, q);
  return Where(below, sum + Where(Eq(odd, F64(0)), others, -others), sum);
}

}  // namespace

Tensor Zeta(const Operand& in_x, const Operand& in_q) {
  const backend::Device device = (in_x.tensor() != nullptr ? in_x : in_q).tensor()->device();
  const auto tensor = [&](const Operand& o) {
    return o.tensor() != nullptr ? *o.tensor() : Full({}, o.number(), device);
  };
  const Tensor given_x = tensor(in_x), given_q = tensor(in_q);
  const absl::StatusOr<DType> common = CommonType(given_x.shape(), given_q.shape());
  if (!common.ok()) ThrowRecordError("zeta", common.status());
  const DType dtype = Floating(To(given_x, *common)).dtype();
  if (!IsFloat(dtype))
    ThrowRecordError("zeta", WrongType("takes real numbers, not ", given_x.shape()));
  const Tensor x = To(To(given_x, dtype), DType::kF64), q = To(To(given_q, dtype), DType::kF64);
  const Tensor pole = LogicalAnd(Le(q, F64(0)), Eq(q, Floor(q)));
  const Tensor sum = ZetaAnywhere(x, Where(pole, F64(1), q));
  const Tensor none = LogicalOr(Lt(x, F64(1)), LogicalAnd(Lt(q, F64(0)), Ne(x, Floor(x))));
  const Tensor finite = Where(pole, F64(kEndless), Where(none, F64(kNoNumber), sum));
  return To(Where(Eq(x, F64(1)), F64(kEndless), Where(Lt(x, F64(1)), F64(kNoNumber), finite)),
            dtype);
}

}  // namespace lazuli::lazy
