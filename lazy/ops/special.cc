// Special functions, as torch.special has them.
#include <cmath>
#include <limits>
#include <numbers>

#include "ir/support/wrong_type.h"
#include "lazy/ops/elementwise.h"
#include "lazy/ops/functions.h"
#include "lazy/ops/pointwise.h"
#include "lazy/ops/wide.h"
#include "lazy/ops/zeta.h"

namespace lazuli::lazy {
namespace {

constexpr double kEndless = std::numeric_limits<double>::infinity();
constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();

// f of a real x in f64, in the float type of x.
template <class F>
Tensor InDoubles(std::string_view op, const Tensor& in, F&& f) {
  const Tensor x = Floating(in);
  if (!IsFloat(x.dtype())) ThrowRecordError(op, WrongType("takes real numbers, not ", in.shape()));
  return To(f(To(x, DType::kF64)), x.dtype());
}

Value F64(double v) { return Constant(v, DType::kF64); }

}  // namespace

Tensor Erfcx(const Tensor& x) { return Record(ErfcxOp{}, Floating(x)); }

Tensor Entr(const Tensor& in) {
  return InDoubles("entr", in, [](const Tensor& x) {
    const Tensor some = Gt(x, F64(0)), safe = Where(some, x, F64(1));
    const Tensor rest = Where(Eq(x, F64(0)), F64(0), Where(Lt(x, F64(0)), F64(-kEndless), x));
    return Where(some, -(safe * Log(safe)), rest);
  });
}

Tensor Ndtr(const Tensor& in) {
  return InDoubles("ndtr", in,
                   [](const Tensor& x) { return Erfc(x * -(std::numbers::sqrt2 / 2)) * 0.5; });
}

Tensor LogNdtr(const Tensor& in) {
  return InDoubles("log_ndtr", in, [](const Tensor& x) {
    const Tensor t = x * (std::numbers::sqrt2 / 2), below = Lt(x, F64(-1));
    const Tensor low = Where(below, t, F64(-1)), high = Where(below, F64(0), t);
    return Where(below, Log(Erfcx(-low) * 0.5) - low * low, Log1p(Erfc(high) * -0.5));
  });
}

namespace {
// Where ndtr() is p, which is above 0 and small: steps of Newton on log(ndtr()), which is nearly a parabola there. From the
// first guess on each has twice the digits; the last one knows p, so that it has the gradient.
Tensor LowQuantile(const Tensor& p) {
  constexpr int kSteps = 4;
  const Tensor log = Log(p), given = Detach(log);
  const Tensor far = Sqrt(given * -2.0);
  Tensor x = (Log(far) + 0.5 * std::log(2 * std::numbers::pi)) / far - far;
  for (int i = 1; i <= kSteps; ++i) {
    const Tensor scaled = Erfcx(x * -(std::numbers::sqrt2 / 2));
    const Tensor miss = Log(scaled * 0.5) - x * x * 0.5 - (i == kSteps ? log : given);
    x = x - miss * scaled * std::sqrt(std::numbers::pi / 2);
  }
  return x;
}
}  // namespace

Tensor Ndtri(const Tensor& in) {
  return InDoubles("ndtri", in, [](const Tensor& p) {
    // 1 - 2 p has few digits of a small p, and none of one that is below 0. The tails are alike.
    constexpr double kSmall = 0.02;
    const Tensor is_high = Gt(p, F64(0.5)), tail = Where(is_high, 1.0 - p, p);
    const Tensor is_small = LogicalAnd(Gt(tail, F64(0)), Lt(tail, F64(kSmall)));
    const Tensor far = LowQuantile(Where(is_small, tail, F64(kSmall)));
    const Tensor rest = Where(is_small, F64(0.5), Where(Lt(p, F64(0)), p - 1.0, p));
    return Where(is_small, Where(is_high, -far, far),
                 Erfinv(rest * 2.0 - 1.0) * std::numbers::sqrt2);
  });
}

Tensor I0e(const Tensor& x) { return Record(BesselIOp{0, true}, Floating(x)); }
Tensor I1(const Tensor& x) { return Record(BesselIOp{1, false}, Floating(x)); }
Tensor I1e(const Tensor& x) { return Record(BesselIOp{1, true}, Floating(x)); }

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
      LogicalOr(Le(y, Constant(-1, y.dtype())), Eq(y, Constant(kEndless, y.dtype())));
  const Tensor none = LogicalAnd(Eq(x, zero), endless);
  return x * Log1p(Where(none, zero, y));
}

namespace {
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
  const Tensor given_x = Detach(tensor(in_x)), given_q = tensor(in_q);
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

Tensor Mvlgamma(const Tensor& in, int64_t p) {
  if (p < 1)
    ThrowRecordError("mvlgamma", InvalidArgument("p has to be greater than or equal to 1, is ", p));
  const Tensor x = Floating(in);
  if (!IsFloat(x.dtype()))
    ThrowRecordError("mvlgamma", WrongType("takes real numbers, not ", in.shape()));
  const auto n = static_cast<double>(p);
  return InWide(x, [&](const Tensor& wide) {
    const Tensor less = Arange(p, wide.dtype(), x.device()) * 0.5;
    const Tensor sum = Sum(Lgamma(Unsqueeze(wide, -1) - less), {-1});
    return sum + n * (n - 1) / 4 * std::log(std::numbers::pi);
  });
}

}  // namespace lazuli::lazy
