// Tangent rules of LAPACK's custom calls: JAX's formulas for the factorisations, of what the routines read.
//
// getrf and gesdd: Giles, "Collected matrix derivative results for forward and reverse mode algorithmic
// differentiation" (2008), and for LU of matrices that are not square the completed factors.
#include <algorithm>
#include <charconv>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "lowering/transforms/formula.h"
#include "lowering/transforms/householder.h"
#include "lowering/transforms/matrices.h"
#include "lowering/transforms/tangents.h"

namespace lazuli::lowering {
namespace {

using Direction = hlo::ComparisonDirection;

// An attribute of backend_config, which is the code of a letter: "uplo = 76 : ui8".
char Letter(const hlo::Instruction& i, std::string_view name, char otherwise) {
  for (const auto& [key, text] : i.extra_attrs()) {
    const std::size_t at = key == "backend_config" ? text.find(Str(name, " = ")) : text.npos;
    if (at == text.npos) continue;
    int value = 0;
    const char* const begin = text.data() + at + name.size() + 3;
    if (std::from_chars(begin, text.data() + text.size(), value).ec == std::errc())
      return static_cast<char>(value);
  }
  return otherwise;
}

int64_t Rows(Op m) { return m.shape().dim(m.rank() - 2); }
int64_t Columns(Op m) { return m.shape().dim(m.rank() - 1); }

// The elements of a row for each column of m, and of a column for each row.
Value AsRows(Builder& b, Op vector, Op m) {
  ir::Dims dims;
  for (int64_t d = 0; d < m.rank(); ++d) {
    if (d != m.rank() - 2) dims.push_back(d);
  }
  const Shape shape = m.shape();  // NOLINT: a copy, for the original moves
  return b.Broadcast(vector, shape.dims(), dims);
}
Value AsColumns(Builder& b, Op vector, Op m) {
  ir::Dims dims;
  for (int64_t d = 0; d + 1 < m.rank(); ++d) dims.push_back(d);
  const Shape shape = m.shape();  // NOLINT: a copy, for the original moves
  return b.Broadcast(vector, shape.dims(), dims);
}
Value IsDiagonal(Builder& b, Op m) {
  const Shape numbers(DType::kS32, m.shape().dims());
  return b.Compare(Direction::kEq, b.Iota(numbers, m.rank() - 2), b.Iota(numbers, m.rank() - 1));
}
// The diagonal as a vector.
Value DiagonalOf(Builder& b, Op m) {
  return b.Reduce(Opcode::kAdd, Diagonal(b, m), {m.rank() - 1});
}

// --- getrf

// The first rows and columns, with zeros or a diagonal of ones behind them where there are more.
Op Resized(Builder& b, Op m, int64_t rows, int64_t columns) {
  const auto r = static_cast<std::size_t>(m.rank()) - 2, c = r + 1;
  const Shape shape = m.shape();  // NOLINT: a copy, for the original moves
  ir::Dims low(c + 1, 0), limits(shape.dims().begin(), shape.dims().end()), high = low;
  const ir::Dims steps(c + 1, 1), none = low;
  limits[r] = std::min(limits[r], rows);
  limits[c] = std::min(limits[c], columns);
  high[r] = rows - limits[r];
  high[c] = columns - limits[c];
  const Op cut = b.Slice(m, low, limits, steps);
  return b.Pad(cut, b.Scalar(shape.dtype(), 0), low, high, none);
}

// The rows of x in the order of LAPACK's exchanges: row i with row pivots[i] - 1, one after the other.
Op Exchanged(Builder& b, Op x, Op pivots) {
  const int64_t m = Rows(x), count = pivots.shape().dims().back();
  ir::Dims dims(x.shape().dims().begin(), x.shape().dims().end() - 1);
  const Shape order(DType::kS32, dims);
  const int64_t last = order.rank() - 1;
  ir::Dims batch;
  for (int64_t d = 0; d < last; ++d) batch.push_back(d);
  const Op numbers = b.Iota(order, last);
  const Op init = b.Tuple({b.Scalar(DType::kS32, 0), numbers, pivots});
  const Shape state = init.shape();  // NOLINT: a copy, for the original moves
  hlo::Computation* const more = b.Region("more", {state}, [&](Builder& r, absl::Span<const Op> p) {
    return r.Compare(Direction::kLt, r.GetTupleElement(p[0], 0),
                     r.Scalar(DType::kS32, static_cast<double>(count)));
  });
  hlo::Computation* const next = b.Region("next", {state}, [&](Builder& r, absl::Span<const Op> p) {
    const Op i = r.GetTupleElement(p[0], 0), rows = r.GetTupleElement(p[0], 1),
             all = r.GetTupleElement(p[0], 2);
    const auto at = [&](Op array, Value place) {  // the element of each batch at a place
      const Value where = Equal(Value(r.Iota(array.shape(), last)), place);
      return r.Reduce(Opcode::kAdd, Choose(where, array, r.ZerosLike(array)).op, {last});
    };
    const auto spread = [&](Op array, const Shape& shape) {
      return Value(r.Broadcast(array, shape.dims(), array.rank() == 0 ? ir::Dims() : batch));
    };
    const Shape of_pivots = all.shape();  // NOLINT: a copy, for the original moves
    const Value here = r.Broadcast(i, dims, {});
    const Value other =
        spread(at(all, Value(r.Broadcast(i, of_pivots.dims(), {}))), order) - here.Number(1);
    const Value row = spread(at(rows, here), order), other_row = spread(at(rows, other), order);
    const Value places = r.Iota(order, last);
    const Value moved =
        Choose(Equal(places, other), row, Choose(Equal(places, here), other_row, Value(rows)));
    return r.Tuple({r.Plus(i, r.Scalar(DType::kS32, 1)), moved.op, all});
  });
  const Op order_of_rows = b.GetTupleElement(b.While(init, more, next), 1);
  ir::Dims square = dims;
  square.push_back(m);
  const Shape matrix(DType::kS32, square);
  const Op permutation = b.Convert(Equal(Value(b.Iota(matrix, matrix.rank() - 1)),
                                         AsColumns(b, order_of_rows, b.Iota(matrix, 0)))
                                       .op,
                                   x.dtype());
  return MatrixProduct(b, permutation, x);
}

// P A = L U, so with square L and U, completed by identities: L^-1 P dA U^-1 = L^-1 dL + dU U^-1.
Duals LuTangent(TangentStep& s) {
  Builder& b = s.b;
  const Op lu = s.results()[0], pivots = s.results()[1], da = Exchanged(b, s.t(0), pivots);
  const int64_t m = Rows(lu), n = Columns(lu), k = std::min(m, n);
  const Op thin = Resized(b, lu, m, k), wide = Resized(b, lu, k, n);
  const Op lower = Triangle(b, Resized(b, thin, m, m), /*lower=*/true, /*strict=*/true);
  const Op upper = Triangle(b, Resized(b, wide, n, n), /*lower=*/false, /*strict=*/false);
  // Ones on the rest of U's diagonal; L's are implied.
  const Shape square(DType::kS32, upper.shape().dims());
  const Op rest = b.Compare(Direction::kGe, b.Iota(square, square.rank() - 1),
                            b.Full(square, static_cast<double>(k)));
  const Value both = Both(IsDiagonal(b, upper), rest);
  const Op full = Choose(both, OnesLike(upper), upper).op;
  const hlo::TriangularSolveAttrs left{.left_side = true, .lower = true, .unit_diagonal = true};
  const hlo::TriangularSolveAttrs right{.left_side = false, .lower = false};
  const Op solved = b.Add(Opcode::kTriangularSolve, {lower, da}, left);
  const Op inner = b.Add(Opcode::kTriangularSolve, {full, solved}, right);
  const Value unit = Choose(IsDiagonal(b, lower), OnesLike(lower), lower);
  const Op of_lower = Resized(b, Triangle(b, inner, /*lower=*/true, /*strict=*/true), m, m);
  const Op of_upper = Resized(b, Triangle(b, inner, /*lower=*/false, /*strict=*/false), n, n);
  const Op dl = Resized(b, MatrixProduct(b, unit.op, of_lower), m, n);
  const Op du = Resized(b, MatrixProduct(b, of_upper, full), m, n);
  return s.With((Value(dl) + du).op);
}

// --- potrf, trsm

Duals PotrfTangent(TangentStep& s) {
  const bool lower = Letter(s.i, "uplo", 'L') == 'L';
  const Op factor = Triangle(s.b, s.result(), lower, /*strict=*/false);
  const Op tangent = CholeskyFactorTangent(s.b, factor, s.t(0), lower);
  // The other triangle is as it was.
  const Op other = Triangle(s.b, s.t(0), !lower, /*strict=*/true);
  return s.With((Value(tangent) + other).op);
}

// As triangular-solve, whose cotangents are known.
Duals TrsmTangent(TangentStep& s) {
  const char trans = Letter(s.i, "trans_x", 'N');
  const hlo::TriangularSolveAttrs attrs{
      .left_side = Letter(s.i, "side", 'L') == 'L',
      .lower = Letter(s.i, "uplo", 'L') == 'L',
      .unit_diagonal = Letter(s.i, "diag", 'N') == 'U',
      .transpose_a = trans == 'N'   ? hlo::TransposeKind::kNoTranspose
                     : trans == 'T' ? hlo::TransposeKind::kTranspose
                                    : hlo::TransposeKind::kAdjoint};
  const Op right_side = SolvedRightSide(s, attrs);
  return s.With(s.b.Add(Opcode::kTriangularSolve, {s.x(0), right_side}, attrs));
}

// --- geqrf, orgqr

Duals ByLoop(TangentStep& s, const hlo::Computation& loop) {
  std::vector<Op> tangents;
  for (const Dual& part : Differentiate(s.b, loop, s.AllParts())) tangents.push_back(part.t);
  return s.With(tangents);
}

Shape PlainShape(Op x) { return x.shape().WithDefaultLayout(); }

// --- syevd

// A call like this one, of another mode, that computes vectors.
std::vector<Op> WithVectors(TangentStep& s, char mode, const Shape& shape) {
  const Op call = s.b.Add(s.i.opcode(), {s.x(0)}, s.i.attrs(), {}, &shape);
  if (hlo::Instruction* const made = call.instruction(); made != nullptr) {
    made->mutable_extra_attrs() = s.i.extra_attrs();
    for (auto& [key, text] : made->mutable_extra_attrs()) {
      const std::size_t at = key == "backend_config" ? text.find("mode = ") : text.npos;
      if (at == text.npos) continue;
      const std::size_t begin = at + std::string_view("mode = ").size();
      text.replace(begin, text.find_first_not_of("0123456789", begin) - begin,
                   std::to_string(static_cast<int>(mode)));
    }
  }
  return PartsOf(s.b, call);
}

// A V = V diag(w): dw = diag(V^H dA V), dV = V (F * V^H dA V) with F_ij = 1 / (w_j - w_i).
Duals EighTangent(TangentStep& s) {
  Builder& b = s.b;
  const bool lower = Letter(s.i, "uplo", 'L') == 'L', vectors = Letter(s.i, "mode", 'V') == 'V';
  const Value half = Triangle(b, s.t(0), lower, /*strict=*/true);
  const Value da = half + Adjoint(b, half.op) + As(RealPart(Diagonal(b, s.t(0))), half.op.dtype());
  const std::vector<Op> all = vectors ? s.results() : WithVectors(s, 'V', s.i.shape());
  const Op v = all[0];
  const Op inner = MatrixProduct(b, MatrixProduct(b, Adjoint(b, v), da.op), v);
  const Op dw = RealPart(DiagonalOf(b, inner)).op;
  if (!vectors) return s.With({Op(), dw});
  const Value w = AsRows(b, all[1], v);
  const Value differences = w - AsColumns(b, all[1], v);
  const Value diagonal = IsDiagonal(b, v);
  const Value f = Choose(diagonal, differences.Number(0),
                         1.0 / Choose(diagonal, differences.Number(1), differences));
  const Op dv = MatrixProduct(b, v, (As(f, v.dtype()) * inner).op);
  return s.With({dv, dw});
}

// --- gesdd

// The part of x that is in no direction of q: x - q q^H x.
Value Outside(Builder& b, Op x, Op q) {
  return Value(x) - MatrixProduct(b, q, MatrixProduct(b, Adjoint(b, q), x));
}

struct SingularParts {
  Op s, u, v;
};
// The tangents of u and v^H.
std::pair<Op, Op> SingularVectorTangents(Builder& b, const SingularParts& p, Op da, Value ds) {
  const DType dtype = p.u.dtype();
  const Value row = AsRows(b, p.s, ds.op), column = AsColumns(b, p.s, ds.op);
  const Value diagonal = IsDiagonal(b, ds.op), squares = (row + column) * (row - column);
  const Value f =
      As(Choose(diagonal, squares.Number(0), 1.0 / Choose(diagonal, squares.Number(1), squares)),
         dtype);
  const Value wide_row = As(row, dtype), wide_column = As(column, dtype);
  const Value dss = wide_row * ds, sds = wide_column * ds;
  const Value zero = Equal(row, row.Number(0));
  const Value inverse = Choose(zero, row.Number(0), 1.0 / Choose(zero, row.Number(1), row));
  const Value turn = ds - Adjoint(b, ds.op);
  const Value of_diagonal = Choose(diagonal, 0.5 * turn * As(inverse, dtype), turn.Number(0));
  Value du = MatrixProduct(b, p.u, (f * (dss + Adjoint(b, dss.op)) + of_diagonal).op);
  Value dv = MatrixProduct(b, p.v, (f * (sds + Adjoint(b, sds.op))).op);
  const int64_t m = Rows(da), n = Columns(da);
  if (m > n) {
    const Value outside = Outside(b, MatrixProduct(b, da, p.v), p.u);
    du = du + outside / As(AsRows(b, p.s, du.op), dtype);
  }
  if (n > m) {
    const Value outside = Outside(b, MatrixProduct(b, Adjoint(b, da), p.u), p.v);
    dv = dv + outside / As(AsRows(b, p.s, dv.op), dtype);
  }
  return {du.op, Adjoint(b, dv.op)};
}

Duals SvdTangent(TangentStep& s) {
  Builder& b = s.b;
  const char mode = Letter(s.i, "mode", 'N');
  const Shape matrices = PlainShape(s.x(0));
  const int64_t rank = matrices.rank();
  const int64_t m = matrices.dim(rank - 2), n = matrices.dim(rank - 1);
  if (mode == 'A' && m != n) {
    return s.Error(
        Unimplemented("no derivative of singular vectors of full matrices that are not "
                      "square"));
  }
  std::vector<Op> all;
  if (mode == 'N') {
    Shape u = matrices, vt = matrices;
    u.set_dim(rank - 1, std::min(m, n));
    vt.set_dim(rank - 2, std::min(m, n));
    const std::vector<Shape>& parts = s.i.shape().tuple();
    all = WithVectors(s, 'S', Shape::Tuple({parts[0], parts[1], u, vt, parts[4]}));
  } else {
    all = s.results();
  }
  if (!b.status().ok()) return s.Error(b.status());
  const SingularParts p{.s = all[1], .u = all[2], .v = Adjoint(b, all[3])};
  const Op da = s.t(0);
  const Op ds = MatrixProduct(b, MatrixProduct(b, Adjoint(b, p.u), da), p.v);
  const Op of_values = RealPart(DiagonalOf(b, ds)).op;
  if (mode == 'N') return s.With({Op(), of_values});
  const auto [du, dvt] = SingularVectorTangents(b, p, da, ds);
  return s.With({Op(), of_values, du, dvt});
}

}  // namespace

std::optional<Duals> LapackTangent(TangentStep& s, std::string_view target) {
  constexpr std::string_view kPrefix = "lapack_", kSuffix = "_ffi";
  if (target == "Qr") return ByLoop(s, *HouseholderFactors(s.b, PlainShape(s.x(0))));
  if (target == "ProductOfElementaryHouseholderReflectors")
    return ByLoop(s, *HouseholderProduct(s.b, PlainShape(s.x(0)), PlainShape(s.x(1))));
  if (!target.starts_with(kPrefix) || !target.ends_with(kSuffix) ||
      target.size() < kPrefix.size() + kSuffix.size() + 1)
    return std::nullopt;
  const std::string_view routine =
      target.substr(kPrefix.size() + 1, target.size() - kPrefix.size() - kSuffix.size() - 1);
  if (routine == "potrf") return PotrfTangent(s);
  if (routine == "getrf") return LuTangent(s);
  if (routine == "trsm") return TrsmTangent(s);
  if (routine == "geqrf") return ByLoop(s, *HouseholderFactors(s.b, PlainShape(s.x(0))));
  if (routine == "orgqr" || routine == "ungqr")
    return ByLoop(s, *HouseholderProduct(s.b, PlainShape(s.x(0)), PlainShape(s.x(1))));
  if (routine == "syevd" || routine == "heevd") return EighTangent(s);
  if (routine == "gesdd" || routine == "gesvd") return SvdTangent(s);
  return std::nullopt;
}

}  // namespace lazuli::lowering
