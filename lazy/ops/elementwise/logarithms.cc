#include "lazy/ops/elementwise/logarithms.h"

#include <limits>
#include <numbers>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/wide.h"
#include "lazy/ops/elementwise/composite.h"
#include "lazy/ops/elementwise/elementwise.h"
#include "lazy/ops/elementwise/in_double.h"

namespace lazuli::lazy {
namespace {

using lowering::Opcode;

}  // namespace

lowering::Op LogitOp::Lower(lowering::Builder& b, lowering::Op in) const {
  const lowering::Op x = Prepare(Accepts::kFloat, in);
  if (!IsFloat(x.dtype())) return b.Error(WrongType("takes real numbers, not ", in.shape()));
  const lowering::Op rest = b.Minus(b.Full(x.shape(), 1), x);
  return b.Unary(Opcode::kLog, b.DividedBy(x, rest));
}

// NaN outside [0, 1], where the logarithm is not defined.
Tensors LogitOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor x = s.x(), product = x * (1.0 - x);
  const Tensor outside = LogicalOr(Lt(x, Number0(x)), Gt(x, Number1(x)));
  const Value nan = Constant(std::numeric_limits<double>::quiet_NaN(), x.dtype());
  return {dy / Where(outside, nan, product)};
}

Tensor Exp2(const Tensor& in) {
  const Tensor x = Floating(in);
  if (!IsComplex(x.dtype())) return Pow(Constant(2, x.dtype()), x);
  // Each part by itself, as in LogToBase(): a product of complex numbers is NaN where one is
  // infinite.
  return Exp(Complex(Real(x) * std::numbers::ln2, Imag(x) * std::numbers::ln2));
}

namespace {

// log(x) over the logarithm of a base.
Tensor LogToBase(const Tensor& x, double log_base) {
  return InWide(Floating(x), [&](const Tensor& wide) {
    const Tensor log = Log(wide);
    // Each part by itself: a quotient of complex numbers is NaN where one is infinite.
    if (IsComplex(log.dtype())) return Complex(Real(log) / log_base, Imag(log) / log_base);
    return log / log_base;
  });
}

}  // namespace

Tensor Log2(const Tensor& x) { return LogToBase(x, std::numbers::ln2); }
Tensor Log10(const Tensor& x) { return LogToBase(x, std::numbers::ln10); }

Tensor Logit(const Tensor& in, std::optional<double> eps) {
  const Tensor x = Floating(in);
  if (!eps) return Record(LogitOp{}, x);
  return Record(LogitOp{},
                ClampBetween(x, Constant(*eps, x.dtype()), Constant(1 - *eps, x.dtype())));
}

namespace {

// log(exp(x) + exp(y)) of x and y times `scale`, over it.
Tensor LogOfSum(const Tensor& x, const Tensor& y, double scale) {
  if (IsComplex(x.dtype())) {  // whose order is that of their real parts
    const Tensor first = Ge(Real(x), Real(y));
    const Tensor same = LogicalAnd(Eq(x, y), Eq(Abs(Real(x)), Infinite(Real(x))));
    const Tensor large = Where(first, x, y), small = Where(first, y, x);
    const Tensor apart = Where(same, Number0(x), small - large) * scale;
    return large + Log1p(Exp(apart)) / scale;
  }
  const Tensor same = LogicalAnd(Eq(x, y), Eq(Abs(x), Infinite(x)));
  const Tensor apart = Where(same, Number0(x), x - y) * scale;
  return Where(same, x,
               Where(Ge(x, y), x - LogSigmoid(apart) / scale, y - LogSigmoid(-apart) / scale));
}

}  // namespace

Tensor Logaddexp(const Tensor& in_x, const Tensor& in_y) {
  const auto [x, y] = Together("logaddexp", in_x, in_y);
  return LogOfSum(x, y, 1);
}
Tensor Logaddexp2(const Tensor& in_x, const Tensor& in_y) {
  const auto [x, y] = Together("logaddexp2", in_x, in_y);
  return LogOfSum(x, y, std::numbers::ln2);
}

Tensor Xlogy(const Operand& in_x, const Operand& in_y) {
  const auto [x, y] = Together("xlogy", in_x, in_y);
  // What would make NaN of a product with 0.
  const Tensor endless = LogicalOr(Le(y, Number0(y)), Eq(y, Infinite(y)));
  const Tensor none = LogicalAnd(Eq(x, Number0(x)), endless);
  return x * Log(Where(none, Number1(y), y));
}

Tensor Entr(const Tensor& in) {
  return InDoubles("entr", in, [](const Tensor& x) {
    const Tensor some = Gt(x, F64(0)), safe = Where(some, x, F64(1));
    const Tensor rest = Where(Eq(x, F64(0)), F64(0), Where(Lt(x, F64(0)), F64(-kInfinity), x));
    return Where(some, -(safe * Log(safe)), rest);
  });
}

Tensor Xlog1py(const Operand& in_x, const Operand& in_y) {
  const backend::Device device = (in_x.tensor() != nullptr ? in_x : in_y).tensor()->device();
  const auto tensor = [&](const Operand& o) {
    return o.tensor() != nullptr ? *o.tensor() : Full({}, o.number(), device);
  };
  const Tensor given_x = tensor(in_x), given_y = tensor(in_y);
  const absl::StatusOr<DType> common = CommonType(given_x.shape(), given_y.shape());
  if (!common.ok()) ThrowRecordError("xlog1py", common.status());
  const Tensor x = Floating(To(given_x, *common)), y = Floating(To(given_y, *common));
  const Value zero = Constant(0, x.dtype());
  const Tensor endless =
      LogicalOr(Le(y, Constant(-1, y.dtype())), Eq(y, Constant(kInfinity, y.dtype())));
  const Tensor none = LogicalAnd(Eq(x, zero), endless);
  return x * Log1p(Where(none, zero, y));
}

}  // namespace lazuli::lazy
