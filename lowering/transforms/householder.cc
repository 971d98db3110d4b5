#include "lowering/transforms/householder.h"

#include <algorithm>
#include <vector>

#include "lowering/transforms/formula.h"

namespace lazuli::lowering {
namespace {

using Direction = hlo::ComparisonDirection;

ir::Dims AllBut(int64_t rank, int64_t left_out) {
  ir::Dims dims;
  for (int64_t d = 0; d < rank; ++d) {
    if (d != left_out) dims.push_back(d);
  }
  return dims;
}

// What one step of a loop over columns works with: matrices [..., m, n], and the number of the column, which
// holds for all.
class ColumnStep {
 public:
  ColumnStep(Builder& builder, const Shape& matrices, Op column)
      : b(builder), shape_(matrices), rank_(matrices.rank()), column_(column) {}
  Builder& b;

  int64_t row_dim() const { return rank_ - 2; }
  int64_t column_dim() const { return rank_ - 1; }
  // Where the number along a dim of an array compares so with that of the column.
  Value Where(Direction direction, const ir::Dims& dims, int64_t dim) const {
    const Shape numbers(DType::kS32, dims);
    return b.Compare(direction, b.Iota(numbers, dim), b.Broadcast(column_, dims, {}));
  }
  ir::Dims vector_dims() const {  // [..., m]
    return ir::Dims(shape_.dims().begin(), shape_.dims().end() - 1);
  }
  ir::Dims batch_dims() const { return ir::Dims(shape_.dims().begin(), shape_.dims().end() - 2); }
  Value ZeroUnless(Value where, Value x) const { return Choose(where, x, x.Number(0)); }
  Value Sum(Value x, int64_t dim) const { return b.Reduce(Opcode::kAdd, x.op, {dim}); }
  // The column [..., m] of a matrix.
  Value Column(Value matrix) const {
    return Sum(ZeroUnless(Where(Direction::kEq, Dims(matrix), column_dim()), matrix), column_dim());
  }
  Value OverRows(Value vector) const {  // [..., m] to [..., m, n]
    return b.Broadcast(vector.op, shape_.dims(), AllBut(rank_, column_dim()));
  }
  Value OverColumns(Value vector) const {  // [..., n] to [..., m, n]
    return b.Broadcast(vector.op, shape_.dims(), AllBut(rank_, row_dim()));
  }
  Value OverMatrix(Value number) const {
    ir::Dims batch;
    for (int64_t d = 0; d + 2 < rank_; ++d) batch.push_back(d);
    return b.Broadcast(number.op, shape_.dims(), batch);
  }
  Value OverVector(Value number) const {
    ir::Dims batch;
    for (int64_t d = 0; d + 2 < rank_; ++d) batch.push_back(d);
    return b.Broadcast(number.op, vector_dims(), batch);
  }
  // (I - factor v v^H) matrix.
  Value Reflected(Value matrix, Value v, Value factor) const {
    const Value products = Sum(OverRows(Conj(v)) * matrix, row_dim());
    return matrix - OverMatrix(factor) * OverRows(v) * OverColumns(products);
  }
  static ir::Dims Dims(Value x) {
    return ir::Dims(x.op.shape().dims().begin(), x.op.shape().dims().end());
  }

 private:
  const Shape shape_;
  const int64_t rank_;
  const Op column_;
};

Value SquareOf(Value x) {
  if (!ir::IsComplex(x.op.dtype())) return x * x;
  return RealPart(x) * RealPart(x) + ImagPart(x) * ImagPart(x);
}

// The reflector that takes a vector to its first element from the column on: I - factor v v^H.
struct Reflector {
  Value v, factor, beta;  // beta: what the element becomes
};
Reflector ReflectorOf(const ColumnStep& s, Value x) {
  const ir::Dims dims = s.vector_dims();
  const auto dim = static_cast<int64_t>(dims.size()) - 1;
  const Value here = s.Where(Direction::kEq, dims, dim), below = s.Where(Direction::kGt, dims, dim);
  const Value tail = s.ZeroUnless(below, x), alpha = s.Sum(s.ZeroUnless(here, x), dim);
  const Value rest = s.Sum(SquareOf(tail), dim), real = RealPart(alpha);
  Value none = Equal(rest, rest.Number(0));  // nothing to reflect: the identity
  if (ir::IsComplex(x.op.dtype())) none = Both(none, Equal(ImagPart(alpha), real.Number(0)));
  // Where it is the identity, a number whose root and quotients are differentiable.
  const Value square = Choose(none, rest.Number(1), SquareOf(alpha) + rest);
  const Value norm = s.b.Unary(Opcode::kSqrt, square.op);
  const Value beta = Choose(Less(real, real.Number(0)), norm, -norm);
  const DType dtype = x.op.dtype();
  const Value wide = As(beta, dtype);
  const Value factor = Choose(none, alpha.Number(0), (wide - alpha) / wide);
  const Value scaled = tail / s.OverVector(alpha - wide);
  return {.v = Choose(here, x.Number(1), scaled),
          .factor = factor,
          .beta = As(Choose(none, real, beta), dtype)};
}

// A loop over columns 0, 1, ..., of a state that begins with their number.
Op ColumnLoop(Builder& b, std::vector<Op> state, int64_t count,
              absl::FunctionRef<std::vector<Op>(Builder&, Op column, std::vector<Op>)> step) {
  state.insert(state.begin(), b.Scalar(DType::kS32, 0));
  const Op init = b.Tuple(state);
  const Shape shape = init.shape();  // NOLINT: a copy, for the original moves
  hlo::Computation* const more = b.Region("more", {shape}, [&](Builder& r, absl::Span<const Op> p) {
    return r.Compare(Direction::kLt, r.GetTupleElement(p[0], 0),
                     r.Scalar(DType::kS32, static_cast<double>(count)));
  });
  hlo::Computation* const next = b.Region("next", {shape}, [&](Builder& r, absl::Span<const Op> p) {
    std::vector<Op> parts;
    for (std::size_t k = 1; k < shape.tuple().size(); ++k)
      parts.push_back(r.GetTupleElement(p[0], static_cast<int64_t>(k)));
    const Op column = r.GetTupleElement(p[0], 0);
    std::vector<Op> made = step(r, column, std::move(parts));
    made.insert(made.begin(), r.Plus(column, r.Scalar(DType::kS32, 1)));
    return r.Tuple(made);
  });
  return b.While(init, more, next);
}

ir::Dims WithLast(ir::Dims dims, int64_t last) {
  dims.push_back(last);
  return dims;
}

}  // namespace

hlo::Computation* HouseholderFactors(Builder& b, const Shape& matrices) {
  const int64_t m = matrices.dim(matrices.rank() - 2), n = matrices.dim(matrices.rank() - 1);
  const int64_t count = std::min(m, n);
  return b.Region("householder", {matrices}, [&](Builder& r, absl::Span<const Op> p) {
    const ir::Dims batch(matrices.dims().begin(), matrices.dims().end() - 2);
    const Shape factors(matrices.dtype(), WithLast(batch, count));
    const Op done = ColumnLoop(
        r, {p[0], r.Full(factors, 0)}, count,
        [&](Builder& body, Op column, std::vector<Op> state) -> std::vector<Op> {
          const ColumnStep s(body, matrices, column);
          const Value a = state[0], known = state[1];
          const auto [v, factor, beta] = ReflectorOf(s, s.Column(a));
          const ir::Dims rows = s.vector_dims(), all = ColumnStep::Dims(a);
          const int64_t row = s.row_dim();
          const Value x = s.Column(a);
          const Value stored =
              Choose(s.Where(Direction::kLt, rows, row), x,
                     Choose(s.Where(Direction::kEq, rows, row), s.OverVector(beta), v));
          const Value inside = Choose(s.Where(Direction::kGt, all, s.column_dim()),
                                      s.Reflected(a, v, Conj(factor)), a);
          const Value next =
              Choose(s.Where(Direction::kEq, all, s.column_dim()), s.OverRows(stored), inside);
          const ir::Dims places = ColumnStep::Dims(known);
          ir::Dims of_batch;
          for (int64_t d = 0; d + 2 < matrices.rank(); ++d) of_batch.push_back(d);
          const Value spread = body.Broadcast(factor.op, places, of_batch);
          return {next.op, Choose(s.Where(Direction::kEq, places, row), spread, known).op};
        });
    return r.Tuple({r.GetTupleElement(done, 1), r.GetTupleElement(done, 2)});
  });
}

hlo::Computation* HouseholderProduct(Builder& b, const Shape& vectors, const Shape& factors) {
  const int64_t count = factors.dim(factors.rank() - 1);
  return b.Region("reflectors", {vectors, factors}, [&](Builder& r, absl::Span<const Op> p) {
    const Shape places(DType::kS32, vectors.dims());
    const Op row = r.Iota(places, vectors.rank() - 2), at = r.Iota(places, vectors.rank() - 1);
    const Op identity = r.Convert(r.Compare(Direction::kEq, row, at), vectors.dtype());
    const Op done = ColumnLoop(
        r, {identity, p[0], p[1]}, count,
        [&](Builder& body, Op step, std::vector<Op> state) -> std::vector<Op> {
          const Op column =
              body.Minus(body.Scalar(DType::kS32, static_cast<double>(count - 1)), step);
          const ColumnStep s(body, vectors, column);
          const Value q = state[0], given = state[1], known = state[2];
          const ir::Dims rows = s.vector_dims();
          const Value x = s.Column(given);
          const Value v = Choose(s.Where(Direction::kEq, rows, s.row_dim()), x.Number(1),
                                 s.ZeroUnless(s.Where(Direction::kGt, rows, s.row_dim()), x));
          const Value factor = s.Sum(
              s.ZeroUnless(s.Where(Direction::kEq, ColumnStep::Dims(known), s.row_dim()), known),
              s.row_dim());
          return {s.Reflected(q, v, factor).op, state[1], state[2]};
        });
    return r.GetTupleElement(done, 1);
  });
}

}  // namespace lazuli::lowering
