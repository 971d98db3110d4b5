#include "lazy/ops/special/modified_bessel.h"

#include <cmath>
#include <numbers>

#include "lazy/ops/elementwise/composite.h"
#include "lazy/ops/elementwise/in_double.h"

namespace lazuli::lazy {
namespace {

using lowering::Opcode;
using Direction = hlo::ComparisonDirection;

}  // namespace

// Up to 20 the power series, beyond the asymptotic one, whose terms shrink there.
lowering::Op BesselIOp::Lower(lowering::Builder& b, lowering::Op in) const {
  return InDouble(b, in, [&](lowering::Op x, const Wide64& w) {
    constexpr double kFar = 20;
    constexpr int kTerms = 60, kFarTerms = 20;
    const auto n = static_cast<double>(order);
    const lowering::Op size = b.Unary(Opcode::kAbs, x);
    const lowering::Op is_far = b.Compare(Direction::kGt, size, w(kFar));
    const lowering::Op near = b.Select(is_far, w(kFar), size);
    const lowering::Op half = w.Times(near, 0.5), square = b.Times(half, half);
    lowering::Op series = w(1);
    for (int k = kTerms; k > 0; --k)
      series = w.Plus(b.Times(series, w.Times(square, 1 / (k * (k + n)))), 1);
    if (order == 1) series = b.Times(series, half);
    const lowering::Op decay = b.Unary(Opcode::kExponential, b.Unary(Opcode::kNegate, near));
    if (scaled) series = b.Times(series, decay);
    const lowering::Op far = b.Select(is_far, size, w(kFar)), inverse = b.DividedBy(w(1), far);
    lowering::Op tail = w(1);
    for (int k = kFarTerms; k > 0; --k) {
      const double odd = 2.0 * k - 1;
      tail = w.Plus(b.Times(tail, w.Times(inverse, (odd * odd - 4 * n * n) / (8.0 * k))), 1);
    }
    // What is infinite anyway has a root that is not 0: their product would be no number.
    const lowering::Op held = scaled ? far : b.Binary(Opcode::kMinimum, far, w(1e4));
    const lowering::Op root =
        w.Times(b.Unary(Opcode::kRsqrt, held), 1 / std::sqrt(2 * std::numbers::pi));
    lowering::Op end = b.Times(tail, root);
    if (!scaled) end = b.Times(end, b.Unary(Opcode::kExponential, far));
    const lowering::Op y = b.Select(is_far, end, series);
    const lowering::Op signed_y =
        order == 1 ? b.Select(b.Compare(Direction::kLt, x, w(0)), b.Unary(Opcode::kNegate, y), y)
                   : y;
    return b.Select(b.Compare(Direction::kEq, x, x), signed_y, x);
  });
}

// i0' = i1, and i1' = i0 - i1 / x; scaled ones lose themselves with the sign of x.
Tensors BesselIOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Tensor x = s.x();
  const Tensor other = Record(BesselIOp{1 - order, scaled}, x);
  Tensor slope = other;
  if (order == 1) {
    // Next to 0, where half of x may be no number.
    const Tensor none = Lt(Abs(Detach(x)), Constant(1e-30, x.dtype()));
    const Tensor ratio = s.y() / Where(none, Number1(x), x);
    slope = Where(none, Constant(0.5, x.dtype()), other - ratio);
  }
  if (scaled) slope = slope - Sign(x) * s.y();
  return {dy * slope};
}

Tensor I0(const Tensor& x) { return Record(BesselIOp{0, false}, Floating(x)); }

Tensor I0e(const Tensor& x) { return Record(BesselIOp{0, true}, Floating(x)); }
Tensor I1(const Tensor& x) { return Record(BesselIOp{1, false}, Floating(x)); }
Tensor I1e(const Tensor& x) { return Record(BesselIOp{1, true}, Floating(x)); }

}  // namespace lazuli::lazy
