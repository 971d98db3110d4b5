// Formulas that compute in f64, whatever float type their operand has: on builder ops (InDouble), and on
// tensors (InDoubles).
#pragma once

#include <cstddef>
#include <initializer_list>
#include <utility>

#include "ir/support/wrong_type.h"
#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli::lazy {

// Formulas on builder ops read as on numbers.
struct Wide64 {
  lowering::Builder& b;
  lowering::Op like;
  lowering::Op operator()(double v) const { return b.Full(like.shape(), v); }
  lowering::Op Plus(lowering::Op x, double y) const { return b.Plus(x, (*this)(y)); }
  lowering::Op Times(lowering::Op x, double y) const { return b.Times(x, (*this)(y)); }
  // The polynomial with these coefficients, the highest first.
  lowering::Op Polynomial(lowering::Op x, std::initializer_list<double> coefficients) const {
    lowering::Op sum;
    for (const double c : coefficients) sum = sum.valid() ? Plus(b.Times(sum, x), c) : (*this)(c);
    return sum;
  }
  // The sum of c[k] T_k(t) by the recurrence of Clenshaw; t in [-1, 1].
  template <std::size_t kSize>
  lowering::Op Chebyshev(lowering::Op t, const double (&c)[kSize]) const {
    const lowering::Op twice = Times(t, 2);
    lowering::Op d = (*this)(c[kSize - 1]), dd;
    for (std::size_t k = kSize - 1; --k > 0;) {
      const lowering::Op more = Plus(b.Times(twice, d), c[k]);
      dd = std::exchange(d, dd.valid() ? b.Minus(more, dd) : more);
    }
    return Plus(dd.valid() ? b.Minus(b.Times(t, d), dd) : b.Times(t, d), c[0]);
  }
};

// f of x in f64, which is rounded to x's own float type at the end.
template <class F>
lowering::Op InDouble(lowering::Builder& b, lowering::Op in, F&& f) {
  const lowering::Op x = Prepare(Accepts::kFloat, in);
  if (!IsFloat(x.dtype())) return b.Error(WrongType("takes real numbers, not ", in.shape()));
  const lowering::Op wide = b.Convert(x, DType::kF64);
  return b.Convert(f(wide, Wide64{b, wide}), x.dtype());
}

// f of a real x in f64, in the float type of x.
template <class F>
Tensor InDoubles(std::string_view op, const Tensor& in, F&& f) {
  const Tensor x = Floating(in);
  if (!IsFloat(x.dtype())) ThrowRecordError(op, WrongType("takes real numbers, not ", in.shape()));
  return To(f(To(x, DType::kF64)), x.dtype());
}

inline Value F64(double v) { return Constant(v, DType::kF64); }

}  // namespace lazuli::lazy
