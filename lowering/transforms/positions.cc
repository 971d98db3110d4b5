#include "lowering/transforms/positions.h"

#include <algorithm>
#include <span>
#include <utility>
#include <vector>

#include "ir/hlo/monoid.h"
#include "lowering/transforms/formula.h"

namespace lazuli::lowering {
namespace {

bool Has(const ir::Dims& dims, int64_t d) {
  return std::find(dims.begin(), dims.end(), d) != dims.end();
}

hlo::GatherAttrs GatherOf(const hlo::ScatterAttrs& attrs, const Shape& operand,
                          const Shape& updates) {
  hlo::GatherAttrs gather{.offset_dims = attrs.update_window_dims,
                          .collapsed_slice_dims = attrs.inserted_window_dims,
                          .start_index_map = attrs.scatter_dims_to_operand_dims,
                          .operand_batching_dims = attrs.input_batching_dims,
                          .start_indices_batching_dims = attrs.scatter_indices_batching_dims,
                          .index_vector_dim = attrs.index_vector_dim,
                          .slice_sizes = {},
                          .indices_are_sorted = attrs.indices_are_sorted};
  std::size_t next = 0;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    const bool absent = Has(attrs.inserted_window_dims, d) || Has(attrs.input_batching_dims, d);
    gather.slice_sizes.push_back(absent ? 1 : updates.dim(attrs.update_window_dims[next++]));
  }
  return gather;
}

// Indices with a dimension for their vectors, of a signed type that holds every position.
Op WithVectors(Builder& b, Op indices, const hlo::GatherAttrs& attrs) {
  if (indices.dtype() != DType::kS32 && indices.dtype() != DType::kS64)
    indices = b.Convert(indices, DType::kS64);
  if (attrs.index_vector_dim < indices.rank()) return indices;
  ir::Dims dims(indices.shape().dims().begin(), indices.shape().dims().end());
  dims.push_back(1);
  return b.Reshape(indices, dims);
}

// The last position of each component that a slice can begin at, of the shape of `indices`.
Op LastStarts(Builder& b, const Shape& operand, Op indices, const hlo::GatherAttrs& attrs) {
  std::vector<int64_t> last;
  for (const int64_t d : attrs.start_index_map)
    last.push_back(operand.dim(d) - attrs.slice_sizes[static_cast<std::size_t>(d)]);
  const Literal values = Literal::FromValues<int64_t>({static_cast<int64_t>(last.size())}, last);
  const ir::Dims dims(indices.shape().dims().begin(), indices.shape().dims().end());
  return b.Broadcast(b.Constant(values.Converted(indices.dtype())), dims, {attrs.index_vector_dim});
}

// (value, position) of windows by a reducer of two such pairs.
Op PositionsInWindows(Builder& b, Op x, Op init, const hlo::Window& window,
                      absl::FunctionRef<Op(Builder&, absl::Span<const Op>)> keeps_first) {
  const Shape shape = x.shape();  // NOLINT: a copy, for the original moves
  const Shape flat(DType::kS32, {shape.num_elements()});
  const Op positions = b.Reshape(b.Iota(flat, 0), shape.dims());
  const Op none = b.Scalar(DType::kS32, static_cast<double>(shape.num_elements()));
  const Shape value(shape.dtype()), position(DType::kS32);
  hlo::Computation* const reducer =
      b.Region("selected", {value, position, value, position}, [&](Builder& r, auto p) {
        const Op first = keeps_first(r, p);
        const Op chosen[] = {r.Select(first, p[0], p[2]), r.Select(first, p[1], p[3])};
        return r.Tuple(chosen);
      });
  const Op both =
      b.Add(Opcode::kReduceWindow, {x, positions, init, none}, hlo::WindowAttrs{window}, {reducer});
  return b.GetTupleElement(both, 1);
}

// Whether a pair's position is none.
Value IsNone(Builder& r, Op position, const Shape& shape) {
  return Equal(position, r.Scalar(DType::kS32, static_cast<double>(shape.num_elements())));
}

}  // namespace

Op TakeAlong(Builder& b, Op x, Op positions, int64_t dimension) {
  hlo::GatherAttrs attrs{.offset_dims = {},
                         .collapsed_slice_dims = {dimension},
                         .start_index_map = {dimension},
                         .operand_batching_dims = {},
                         .start_indices_batching_dims = {},
                         .index_vector_dim = x.rank(),
                         .slice_sizes = ir::Dims(static_cast<std::size_t>(x.rank()), 1),
                         .indices_are_sorted = false};
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (d == dimension) continue;
    attrs.operand_batching_dims.push_back(d);
    attrs.start_indices_batching_dims.push_back(d);
  }
  return b.Gather(x, positions, attrs);
}

Op ExtremePositions(Builder& b, Op x, const hlo::Window& window, Opcode monoid) {
  const Op init = b.Constant(hlo::IdentityOf(monoid, x.dtype()));
  return PositionsInWindows(b, x, init, window, [&](Builder&, absl::Span<const Op> p) {
    const bool largest = monoid == Opcode::kMaximum;
    const Value a = p[0], c = p[2];
    const Value beats = largest ? Less(c, a) : Less(a, c);
    const Value is_nan = a.b().Compare(hlo::ComparisonDirection::kNe, a.op, a.op);
    return Either(Either(beats, is_nan), Both(Equal(a, c), Less(p[1], p[3]))).op;
  });
}

Op SelectedPositions(Builder& b, Op x, const hlo::Window& window, hlo::Computation& select) {
  const Shape shape = x.shape();  // NOLINT: a copy, for the original moves
  const Op init = b.Scalar(x.dtype(), 0);
  return PositionsInWindows(b, x, init, window, [&](Builder& r, absl::Span<const Op> p) {
    const Op select_first = r.Call(&select, {p[0], p[2]});
    const Value first_is_none = IsNone(r, p[1], shape), second_is_none = IsNone(r, p[3], shape);
    return Both(Either(select_first, second_is_none), r.Unary(Opcode::kNot, first_is_none.op)).op;
  });
}

Op ElementsAt(Builder& b, Op x, Op positions) {
  const int64_t count = x.shape().num_elements();
  hlo::GatherAttrs attrs{.offset_dims = {},
                         .collapsed_slice_dims = {0},
                         .start_index_map = {0},
                         .operand_batching_dims = {},
                         .start_indices_batching_dims = {},
                         .index_vector_dim = positions.rank(),
                         .slice_sizes = {1},
                         .indices_are_sorted = false};
  const Value taken = b.Gather(b.Reshape(x, {count}), positions, attrs);
  const Value at = positions;
  return Choose(Less(at, at.Number(static_cast<double>(count))), taken, taken.Number(0)).op;
}

Op IsScattered(Builder& b, const Shape& operand, Op indices, const Shape& updates,
               const hlo::ScatterAttrs& attrs) {
  const hlo::GatherAttrs gather = GatherOf(attrs, operand, updates);
  const Value at = WithVectors(b, indices, gather);
  const Value last = LastStarts(b, operand, at.op, gather);
  const Op fits = b.Unary(Opcode::kNot, Either(Less(at, at.Number(0)), Less(last, at)).op);
  const Op all = b.Reduce(Opcode::kAnd, fits, {gather.index_vector_dim});
  ir::Dims kept;
  for (int64_t d = 0; d < updates.rank(); ++d) {
    if (!Has(attrs.update_window_dims, d)) kept.push_back(d);
  }
  return b.Broadcast(all, ir::Dims(updates.dims().begin(), updates.dims().end()), kept);
}

Op GatherWhereScattered(Builder& b, Op x, Op indices, const Shape& updates,
                        const hlo::ScatterAttrs& attrs) {
  const Shape shape = x.shape();  // NOLINT: a copy, for the original moves
  const Value taken = b.Gather(x, indices, GatherOf(attrs, shape, updates));
  return Choose(IsScattered(b, shape, indices, updates, attrs), taken, taken.Number(0)).op;
}

Op ClampedIndices(Builder& b, const Shape& operand, Op indices, const hlo::GatherAttrs& attrs) {
  const ir::Dims dims(indices.shape().dims().begin(), indices.shape().dims().end());
  const Op at = WithVectors(b, indices, attrs);
  const Op clamped = b.Clamp(b.ZerosLike(at), at, LastStarts(b, operand, at, attrs));
  return b.Reshape(clamped, dims);
}

hlo::ScatterAttrs ScatterOf(const hlo::GatherAttrs& attrs) {
  return {.update_window_dims = attrs.offset_dims,
          .inserted_window_dims = attrs.collapsed_slice_dims,
          .scatter_dims_to_operand_dims = attrs.start_index_map,
          .input_batching_dims = attrs.operand_batching_dims,
          .scatter_indices_batching_dims = attrs.start_indices_batching_dims,
          .index_vector_dim = attrs.index_vector_dim,
          .indices_are_sorted = false,
          .unique_indices = false};
}

}  // namespace lazuli::lowering
