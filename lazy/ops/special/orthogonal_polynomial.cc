// Orthogonal polynomials by their recurrences, in the floats of the operands as PyTorch has them.
#include "lazy/ops/special/orthogonal_polynomial.h"

#include <limits>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/wide.h"
#include "lazy/ops/elementwise/loops.h"

namespace lazuli::lazy {
namespace {

using Relation = hlo::ComparisonDirection;

// Numbers beside arrays of one shape, of a builder that may be a region's.
struct Arrays {
  lowering::Builder& b;
  Shape shape;
  lowering::Op operator()(double v) const { return b.Full(shape, v); }
  lowering::Op Is(lowering::Op x, Relation relation, double v) const {
    return b.Compare(relation, x, (*this)(v));
  }
  lowering::Op Both(lowering::Op x, lowering::Op y) const {
    return b.Binary(lowering::Opcode::kAnd, x, y);
  }
  lowering::Op Linear(double factor, lowering::Op x, double constant) const {
    return b.Plus(b.Times(x, (*this)(factor)), (*this)(constant));
  }
};

constexpr bool IsChebyshev(Polynomial p) { return p <= Polynomial::kW; }

// The polynomial of degree 1.
lowering::Op FirstDegree(const Arrays& r, Polynomial kind, lowering::Op x) {
  switch (kind) {
    case Polynomial::kU:
    case Polynomial::kH:
      return r.Linear(2, x, 0);
    case Polynomial::kV:
      return r.Linear(2, x, -1);
    case Polynomial::kW:
      return r.Linear(2, x, 1);
    case Polynomial::kLaguerre:
      return r.Linear(-1, x, 1);
    default:
      return x;
  }
}

// The one of degree k + 1 of those of degrees k, which is q, and k - 1.
lowering::Op NextDegree(const Arrays& r, Polynomial kind, lowering::Op x, lowering::Op k,
                        lowering::Op p, lowering::Op q) {
  lowering::Builder& b = r.b;
  const lowering::Op next = r.Linear(1, k, 1);
  switch (kind) {
    case Polynomial::kH:
      return b.Minus(b.Times(r.Linear(2, x, 0), q), b.Times(r.Linear(2, k, 0), p));
    case Polynomial::kHe:
      return b.Minus(b.Times(x, q), b.Times(k, p));
    case Polynomial::kLaguerre: {
      const lowering::Op factor = b.Plus(r.Linear(2, k, 0), r.Linear(-1, x, 1));
      return b.DividedBy(b.Minus(b.Times(factor, q), b.Times(k, p)), next);
    }
    case Polynomial::kLegendre: {
      const lowering::Op factor = b.Times(r.Linear(2, k, 1), x);
      return b.DividedBy(b.Minus(b.Times(factor, q), b.Times(k, p)), next);
    }
    default:
      return b.Minus(b.Times(r.Linear(2, x, 0), q), p);
  }
}

// Chebyshev's between -1 and 1, of any degree.
lowering::Op ByAngle(const Arrays& r, Polynomial kind, lowering::Op x, lowering::Op n) {
  lowering::Builder& b = r.b;
  const auto sine = [&](lowering::Op v) { return b.Unary(lowering::Opcode::kSine, v); };
  const auto cosine = [&](lowering::Op v) { return b.Unary(lowering::Opcode::kCosine, v); };
  const lowering::Op rest =
      b.Unary(lowering::Opcode::kSqrt, b.Times(r.Linear(-1, x, 1), r.Linear(1, x, 1)));
  const lowering::Op angle = b.Binary(lowering::Opcode::kAtan2, rest, x);
  const lowering::Op half = r.Linear(0.5, angle, 0);
  const lowering::Op middle = b.Times(r.Linear(1, n, 0.5), angle);
  const lowering::Op above = b.Times(r.Linear(1, n, 1), angle);
  switch (kind) {
    case Polynomial::kU:
      return b.DividedBy(sine(above), sine(angle));
    case Polynomial::kV:
      return b.DividedBy(cosine(middle), cosine(half));
    case Polynomial::kW:
      return b.DividedBy(sine(middle), sine(half));
    default:
      return cosine(b.Times(n, angle));
  }
}

// Where polynomials of any degree are known: Chebyshev's and Legendre's at 1 and -1, Laguerre's at 0. Their recurrences end nowhere
// else but at the degree, which may be beyond counting.
lowering::Op IsKnown(const Arrays& r, Polynomial kind, lowering::Op x) {
  if (kind == Polynomial::kLaguerre) return r.Is(x, Relation::kEq, 0);
  return r.Is(r.b.Unary(lowering::Opcode::kAbs, x), Relation::kEq, 1);
}
lowering::Op Known(const Arrays& r, Polynomial kind, lowering::Op x, lowering::Op n) {
  lowering::Builder& b = r.b;
  if (kind == Polynomial::kLaguerre) return r(1);
  const lowering::Op half = b.Unary(lowering::Opcode::kFloor, r.Linear(0.5, n, 0));
  const lowering::Op is_even = b.Compare(Relation::kEq, r.Linear(2, half, 0), n);
  const lowering::Op is_above = r.Is(x, Relation::kGt, 0);
  const lowering::Op sign =
      b.Select(b.Binary(lowering::Opcode::kOr, is_above, is_even), r(1), r(-1));
  const lowering::Op width = r.Linear(2, n, 1);
  switch (kind) {
    case Polynomial::kU:
      return b.Times(sign, r.Linear(1, n, 1));
    case Polynomial::kV:
      return b.Select(is_above, sign, b.Times(sign, width));
    case Polynomial::kW:
      return b.Select(is_above, width, sign);
    default:
      return sign;
  }
}

// The arrays k, x, n, p and q: p becomes q and q that of degree k + 1 where n is above k, as long as
// there is such an element whose q is a number. Degrees are counted in f64.
lowering::Op AtDegree(lowering::Builder& builder, Polynomial kind, lowering::Op x, lowering::Op n) {
  const Shape shape = x.shape();  // NOLINT: a copy, for the original moves as more is built
  const auto goes_on = [&](lowering::Builder& b, const Wide64&, const lowering::Ops& s) {
    const lowering::Op below = b.Compare(Relation::kLt, s[0], s[2]);
    return Arrays{b, shape}.Both(below, b.Compare(Relation::kEq, s[4], s[4]));
  };
  const auto step = [&](lowering::Builder& b, const Wide64& w, const lowering::Ops& s) {
    const lowering::Op k = s[0], p = s[3], q = s[4], more = goes_on(b, w, s);
    const lowering::Op next =
        NextDegree(Arrays{b, shape}, kind, s[1], b.Convert(k, shape.dtype()), p, q);
    return lowering::Ops{w.Plus(k, 1), s[1], s[2], b.Select(more, q, p), b.Select(more, next, q)};
  };
  const Arrays r{builder, shape};
  const lowering::Op one = builder.Full(Shape(DType::kF64, shape.dims()), 1);
  return LoopWhile(builder,
                   {one, x, builder.Convert(n, DType::kF64), r(1), FirstDegree(r, kind, x)},
                   goes_on, step)[4];
}

// Hermite's of higher degrees are no numbers, as in PyTorch.
double HighestDegree(Polynomial kind, DType dtype) {
  if (kind != Polynomial::kH && kind != Polynomial::kHe)
    return std::numeric_limits<double>::infinity();
  return dtype == DType::kF64 ? 512 : 128;
}

}  // namespace

lowering::Op PolynomialOp::Lower(lowering::Builder& b, lowering::Op in_x, lowering::Op in_n) const {
  const auto [narrow_x, narrow_n] = Prepare(Accepts::kFloat, in_x, in_n);
  if (!IsFloat(narrow_x.dtype()))
    return b.Error(WrongType("takes real numbers, not ", in_x.shape(), " and ", in_n.shape()));
  if (b.shapes_only()) return narrow_x;
  const lowering::Op x = Wide(narrow_x), given = Wide(narrow_n);
  const Arrays r{b, x.shape()};
  const lowering::Op towards_zero =
      b.Select(r.Is(given, Relation::kLt, 0), b.Unary(lowering::Opcode::kCeil, given),
               b.Unary(lowering::Opcode::kFloor, given));
  const double most = HighestDegree(kind, x.dtype());
  const lowering::Op too_high =
      most < std::numeric_limits<double>::infinity()
          ? r.Is(towards_zero, Relation::kGt, most)
          : r.Is(b.Unary(lowering::Opcode::kAbs, given), Relation::kEq, most);
  const lowering::Op n = b.Select(too_high, r(0), towards_zero);
  lowering::Op steps = n, by_angle, of_angle;
  if (IsChebyshev(kind)) {
    const double most_steps = kind == Polynomial::kT ? 6 : 8;
    by_angle = r.Both(r.Is(n, Relation::kGt, most_steps),
                      r.Is(b.Unary(lowering::Opcode::kAbs, x), Relation::kLt, 1));
    of_angle = ByAngle(r, kind, x, n);
    steps = b.Select(by_angle, r(0), n);
  }
  lowering::Op is_known;
  if (kind != Polynomial::kH && kind != Polynomial::kHe) {
    is_known = IsKnown(r, kind, x);
    steps = b.Select(is_known, r(0), steps);
  }
  const lowering::Op looped = AtDegree(b, kind, x, steps);
  lowering::Op y = b.Select(r.Is(n, Relation::kEq, 0), r(1), looped);
  if (by_angle.valid()) y = b.Select(by_angle, of_angle, y);
  if (is_known.valid()) y = b.Select(is_known, Known(r, kind, x, n), y);
  y = b.Select(r.Is(n, Relation::kLt, 0), r(0), y);
  y = b.Select(too_high, r(std::numeric_limits<double>::quiet_NaN()), y);
  return b.Convert(y, narrow_x.dtype());
}

namespace {

Tensor OfOperand(const Operand& o, backend::Device device) {
  return o.tensor() != nullptr ? Detach(*o.tensor()) : Full({}, o.number(), device);
}

// `shifted`: at 2 x - 1.
Tensor PolynomialOf(Polynomial kind, const Operand& in_x, const Operand& in_n,
                    bool shifted = false) {
  const backend::Device device = (in_x.tensor() != nullptr ? in_x : in_n).tensor()->device();
  const Tensor x = OfOperand(in_x, device), n = OfOperand(in_n, device);
  return Record(PolynomialOp{kind}, shifted ? Floating(x) * 2.0 - 1.0 : x, n);
}

}  // namespace

Tensor ChebyshevPolynomialT(const Operand& x, const Operand& n) {
  return PolynomialOf(Polynomial::kT, x, n);
}
Tensor ChebyshevPolynomialU(const Operand& x, const Operand& n) {
  return PolynomialOf(Polynomial::kU, x, n);
}
Tensor ChebyshevPolynomialV(const Operand& x, const Operand& n) {
  return PolynomialOf(Polynomial::kV, x, n);
}
Tensor ChebyshevPolynomialW(const Operand& x, const Operand& n) {
  return PolynomialOf(Polynomial::kW, x, n);
}
Tensor ShiftedChebyshevPolynomialT(const Operand& x, const Operand& n) {
  return PolynomialOf(Polynomial::kT, x, n, /*shifted=*/true);
}
Tensor ShiftedChebyshevPolynomialU(const Operand& x, const Operand& n) {
  return PolynomialOf(Polynomial::kU, x, n, /*shifted=*/true);
}
Tensor ShiftedChebyshevPolynomialV(const Operand& x, const Operand& n) {
  return PolynomialOf(Polynomial::kV, x, n, /*shifted=*/true);
}
Tensor ShiftedChebyshevPolynomialW(const Operand& x, const Operand& n) {
  return PolynomialOf(Polynomial::kW, x, n, /*shifted=*/true);
}
Tensor HermitePolynomialH(const Operand& x, const Operand& n) {
  return PolynomialOf(Polynomial::kH, x, n);
}
Tensor HermitePolynomialHe(const Operand& x, const Operand& n) {
  return PolynomialOf(Polynomial::kHe, x, n);
}
Tensor LaguerrePolynomialL(const Operand& x, const Operand& n) {
  return PolynomialOf(Polynomial::kLaguerre, x, n);
}
Tensor LegendrePolynomialP(const Operand& x, const Operand& n) {
  return PolynomialOf(Polynomial::kLegendre, x, n);
}

}  // namespace lazuli::lazy
