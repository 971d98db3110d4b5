#include "lazy/ops/core/gradient_ops.h"

#include "lazy/ops/core/wide.h"

namespace lazuli::lazy {

Tensors SharedGradientOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor x = s.x(0), value = BroadcastTo(s.x(1), x.shape().dims()), wide = Wide(dy);
  const Tensor chosen = LogicalOr(Eq(x, value), LogicalAnd(Ne(x, x), Ne(value, value)));
  const Tensor share = BroadcastTo(wide / To(Sum(chosen), wide.dtype()), x.shape().dims());
  return {To(Where(chosen, share, Constant(0, wide.dtype())), dy.dtype()), Tensor()};
}

Tensor Unaffected(const Tensor& x, const Tensor& y) {
  const Operand other(y);
  return WantsGrad(absl::MakeConstSpan(&other, 1)) ? Record(UnaffectedOp{}, x, y) : x;
}

}  // namespace lazuli::lazy
