#include "lazy/ops/loss/regression.h"

#include <cmath>
#include <numbers>

#include "ir/hlo/monoid.h"
#include "ir/support/wrong_type.h"
#include "lazy/ops/core/wide.h"
#include "lazy/ops/elementwise/elementwise.h"
#include "lazy/ops/loss/reduction.h"

namespace lazuli::lazy {
namespace {

using hlo::ComparisonDirection;
using lowering::Opcode;

}  // namespace

lowering::Op HuberOp::Lower(lowering::Builder& b, lowering::Op x, lowering::Op number) const {
  if (number.shape().rank() != 0)
    return b.Error(InvalidArgument("delta must be a number, is ", number.shape()));
  const lowering::Op d = b.Unary(Opcode::kAbs, x), half = b.Full(x.shape(), 0.5);
  const lowering::Op delta = b.BroadcastTo(b.Convert(number, x.dtype()), x.shape().dims());
  const lowering::Op square = b.Times(b.Times(d, d), half);
  const lowering::Op beyond = b.Minus(d, b.Times(delta, half));
  const lowering::Op is_near = b.Compare(ComparisonDirection::kLe, d, delta);
  return smooth_l1 ? b.Select(is_near, b.DividedBy(square, delta), beyond)
                   : b.Select(is_near, square, b.Times(delta, beyond));
}
Tensors HuberOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor delta = s.x(1), slope = ClampBetween(s.x(0), -delta, delta);
  return {dy * (smooth_l1 ? slope / delta : slope), Tensor()};
}

namespace {

// A loss of pairs takes floats that broadcast, and other real numbers beside floats.
void CheckLoss(std::string_view op, const Tensor& x, const Tensor& y) {
  if (!BroadcastDims(x.shape(), y.shape()).ok()) {
    ThrowRecordError(
        op, InvalidArgument("shapes ", x.shape(), " and ", y.shape(), " do not broadcast"));
  }
  const bool is_complex = IsComplex(x.dtype()) || IsComplex(y.dtype());
  if (!is_complex && (IsFloat(x.dtype()) || IsFloat(y.dtype()))) return;
  ThrowRecordError(
      op, WrongType("takes floats, not ", x.shape(), " and ", y.shape(), "; convert with to()"));
}

// A number beside x in the type that sums of x are computed in.
Value BesideWide(const Number& number, const Tensor& x) {
  return number.As(number.TypeBeside(hlo::AccumulationType(x.dtype())));
}

void CheckAboveZero(std::string_view op, std::string_view what, const Number& number,
                    std::string_view hint) {
  if (number.as_double() > 0) return;
  ThrowRecordError(op, InvalidArgument(what, " must be above 0, is ", number.as_double(), hint));
}

// loss(x, y) of each element and what is made of them, wide; the result as arithmetic of x and y
// has it.
template <class F>
Tensor PairLoss(const Tensor& x, const Tensor& y, Reduction reduction, F&& loss) {
  const auto floats = [](const Tensor& v, const Tensor& beside) {
    return Wide(IsFloat(v.dtype()) ? v : To(v, beside.dtype()));
  };
  const Tensor wide = Reduced(loss(floats(x, y), floats(y, x)), reduction);
  return To(wide, Promote(x.dtype(), y.dtype()).value_or(wide.dtype()));
}

}  // namespace

Tensor MseLoss(const Tensor& x, const Tensor& y, Reduction reduction) {
  CheckLoss("mse_loss", x, y);
  return PairLoss(x, y, reduction, [](const Tensor& a, const Tensor& b) {
    const Tensor difference = a - b;
    return difference * difference;
  });
}
Tensor L1Loss(const Tensor& x, const Tensor& y, Reduction reduction) {
  if (IsComplex(x.dtype()) || IsComplex(y.dtype())) return Reduced(Abs(x - y), reduction);
  CheckLoss("l1_loss", x, y);
  return PairLoss(x, y, reduction, [](const Tensor& a, const Tensor& b) { return Abs(a - b); });
}
Tensor SmoothL1Loss(const Tensor& x, const Tensor& y, const Number& beta, Reduction reduction) {
  CheckLoss("smooth_l1_loss", x, y);
  if (beta.as_double() == 0) return L1Loss(x, y, reduction);  // the limit
  CheckAboveZero("smooth_l1_loss", "beta", beta, "");
  return PairLoss(x, y, reduction, [&](const Tensor& a, const Tensor& b) {
    return Record(HuberOp{true}, a - b, BesideWide(beta, a));
  });
}
Tensor HuberLoss(const Tensor& x, const Tensor& y, Reduction reduction, const Number& delta) {
  CheckLoss("huber_loss", x, y);
  CheckAboveZero("huber_loss", "delta", delta, "");
  return PairLoss(x, y, reduction, [&](const Tensor& a, const Tensor& b) {
    return Record(HuberOp{false}, a - b, BesideWide(delta, a));
  });
}
Tensor KlDiv(const Tensor& log_probs, const Tensor& target, bool log_target, Reduction reduction) {
  CheckLoss("kl_div", log_probs, target);
  return PairLoss(log_probs, target, reduction, [&](const Tensor& q, const Tensor& p) {
    if (log_target) return Exp(p) * (p - q);
    // The limit of p log(p) at 0 is 0.
    const Tensor some = Ne(p, Constant(0, p.dtype()));
    return p * Log(Where(some, p, Constant(1, p.dtype()))) - p * q;
  });
}

namespace {

Value NoLoss(const Tensor& x) { return Constant(0, x.dtype()); }

}  // namespace

Tensor PoissonNllLoss(const Tensor& in, const Tensor& target, bool log_input, bool full, double eps,
                      Reduction reduction) {
  const Tensor x = Floating(in);
  Tensor loss = log_input ? Exp(x) - target * x : x - target * Log(x + eps);
  if (full) {
    // Stirling's approximation of log(target!).
    const Tensor t = Floating(target), some = Gt(t, Constant(1, t.dtype()));
    const Tensor safe = Where(some, t, Constant(1, t.dtype()));
    const Tensor more = safe * Log(safe) - safe + Log(safe * (2 * std::numbers::pi)) * 0.5;
    loss = loss + Where(some, more, NoLoss(more));
  }
  return Reduced(loss, reduction);
}

Tensor GaussianNllLoss(const Tensor& x, const Tensor& target, const Tensor& in_var, bool full,
                       double eps, Reduction reduction) {
  Tensor var = in_var;
  if (!SameDims(var.shape(), x.shape())) {
    const bool one_less = var.rank() + 1 == x.rank();
    if (one_less) var = Unsqueeze(var, -1);
    if (var.rank() != x.rank() || !BroadcastDims(var.shape(), x.shape()).ok())
      ThrowRecordError("gaussian_nll_loss",
                       InvalidArgument("var is of incorrect size: ", in_var.shape()));
  }
  const Value least = Constant(eps, var.dtype());
  var = var + Detach(Maximum(var, least) - var);  // which the gradient does not see
  const Tensor apart = x - target;
  Tensor loss = (Log(var) + apart * apart / var) * 0.5;
  if (full) loss = loss + 0.5 * std::log(2 * std::numbers::pi);
  return Reduced(loss, reduction);
}

}  // namespace lazuli::lazy
