// Batch rules of slices at places that data say, gather and scatter.
//
// Places that differ between samples make a dynamic slice a gather, and an update a scatter; the batch
// dim is then one of the batching dims that gather and scatter have.
#include <algorithm>
#include <utility>

#include "lowering/transforms/batch_rules.h"

namespace lazuli::lowering {
namespace {

// The start indices of a dynamic slice, behind its first `arrays` operands.
struct Starts {
  Starts(BatchValues operands, std::size_t arrays) : values(operands.subspan(arrays)) {
    batched = std::any_of(values.begin(), values.end(),
                          [](const BatchValue& start) { return start.batched; });
  }
  BatchValues values;
  bool batched;
};

// Scalars for each dim, with 0 in front; none of them is batched.
std::vector<Op> ScalarsWithZero(BatchScope& s, const Starts& starts, int64_t rank) {
  Builder& b = s.b;
  std::vector<Op> scalars;
  const bool vector = starts.values.size() == 1 && starts.values[0].op.rank() == 1;
  for (int64_t d = 0; d < rank; ++d) {
    if (!vector) {
      scalars.push_back(starts.values[static_cast<std::size_t>(d)].op);
    } else {
      scalars.push_back(b.Reshape(b.Slice(starts.values[0].op, {d}, {d + 1}, {1}), {}));
    }
  }
  const DType dtype = rank > 0 ? scalars[0].dtype() : DType::kS32;
  scalars.insert(scalars.begin(), b.Scalar(dtype, 0));
  return scalars;
}

// Start indices for each sample, s64[B, rank] (u64 where they are u64).
Op IndexVectors(BatchScope& s, const Starts& starts) {
  Builder& b = s.b;
  Op vectors;
  if (starts.values.size() == 1 &&
      starts.values[0].op.rank() - (starts.values[0].batched ? 1 : 0) == 1) {
    vectors = s.Full(starts.values[0]);
  } else {
    std::vector<Op> columns;
    for (const BatchValue& start : starts.values)
      columns.push_back(b.Reshape(s.Full(start), {s.size(), 1}));
    vectors = columns.size() == 1 ? columns[0] : b.Concatenate(columns, 1);
  }
  return vectors.dtype() == DType::kU64 ? vectors : b.Convert(vectors, DType::kS64);
}

Dims Positions(int64_t count) {
  Dims positions;
  for (int64_t d = 0; d < count; ++d) positions.push_back(d);
  return positions;
}

}  // namespace

BatchValue BatchDynamicSlice(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  const Dims& sizes = i.attrs_as<hlo::DynamicSliceAttrs>().dynamic_slice_sizes;
  const auto rank = static_cast<int64_t>(sizes.size());
  const Starts starts(operands, 1);
  if (!starts.batched || rank == 0) {
    return BatchScope::Array(s.b.DynamicSlice(s.Full(operands[0]), ScalarsWithZero(s, starts, rank),
                                              WithFront(s.size(), sizes)));
  }
  hlo::GatherAttrs attrs;
  attrs.offset_dims = Shifted(Positions(rank));
  attrs.start_index_map = Positions(rank);
  attrs.index_vector_dim = 1;
  attrs.slice_sizes = sizes;
  if (operands[0].batched) {
    attrs.start_index_map = Shifted(attrs.start_index_map);
    attrs.operand_batching_dims = attrs.start_indices_batching_dims = {0};
    attrs.slice_sizes = WithFront(1, sizes);
  }
  return BatchScope::Array(s.b.Gather(operands[0].op, IndexVectors(s, starts), attrs));
}

// A scatter leaves out what lies outside, so starts are limited as those of an update are.
BatchValue BatchDynamicUpdateSlice(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  Builder& b = s.b;
  const Shape& x = i.shape();
  const Shape& update = i.operand(1)->shape();
  const int64_t rank = x.rank();
  const Starts starts(operands, 2);
  const Op full = s.Full(operands[0]), updates = s.Full(operands[1]);
  if (!starts.batched || rank == 0)
    return BatchScope::Array(b.DynamicUpdateSlice(full, updates, ScalarsWithZero(s, starts, rank)));
  Op places = IndexVectors(s, starts);
  std::vector<Op> columns;
  for (int64_t d = 0; d < rank; ++d) {
    const Op column = b.Slice(places, {0, d}, {s.size(), d + 1}, {1, 1});
    const Op low = b.ZerosLike(column);
    const Op high = b.Full(column.shape(), static_cast<double>(x.dim(d) - update.dim(d)));
    columns.push_back(b.Maximum(low, b.Minimum(column, high)));
  }
  places = columns.size() == 1 ? columns[0] : b.Concatenate(columns, 1);
  hlo::ScatterAttrs attrs;
  attrs.update_window_dims = attrs.scatter_dims_to_operand_dims = Shifted(Positions(rank));
  attrs.input_batching_dims = attrs.scatter_indices_batching_dims = {0};
  attrs.index_vector_dim = 1;
  return BatchScope::Array(b.Scatter(full, places, updates, attrs, Opcode::kCopy));
}

BatchValue BatchGather(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  const BatchValue &x = operands[0], &indices = operands[1];
  hlo::GatherAttrs attrs = i.attrs_as<hlo::GatherAttrs>();
  attrs.offset_dims = Shifted(attrs.offset_dims);
  if (indices.batched) {
    attrs.start_indices_batching_dims = Shifted(attrs.start_indices_batching_dims);
    ++attrs.index_vector_dim;
    attrs.indices_are_sorted = false;
  }
  if (x.batched) {
    attrs.collapsed_slice_dims = Shifted(attrs.collapsed_slice_dims);
    attrs.start_index_map = Shifted(attrs.start_index_map);
    attrs.operand_batching_dims = Shifted(attrs.operand_batching_dims);
  }
  if (x.batched && indices.batched) {
    attrs.operand_batching_dims = WithFront(0, attrs.operand_batching_dims);
    attrs.start_indices_batching_dims = WithFront(0, attrs.start_indices_batching_dims);
    attrs.slice_sizes = WithFront(1, attrs.slice_sizes);
  } else if (x.batched) {
    attrs.offset_dims = WithFront(0, attrs.offset_dims);
    attrs.slice_sizes = WithFront(s.size(), attrs.slice_sizes);
  }
  return s.AddBatched(i, {x.op, indices.op}, std::move(attrs));
}

// All arrays get a batch dim; it is one of the updates' windows where the indices have none.
BatchValue BatchScatter(BatchScope& s, const hlo::Instruction& i, BatchValues operands) {
  const std::size_t arrays = (operands.size() - 1) / 2;
  const BatchValue& indices = operands[arrays];
  hlo::ScatterAttrs attrs = i.attrs_as<hlo::ScatterAttrs>();
  attrs.update_window_dims = Shifted(attrs.update_window_dims);
  attrs.inserted_window_dims = Shifted(attrs.inserted_window_dims);
  attrs.scatter_dims_to_operand_dims = Shifted(attrs.scatter_dims_to_operand_dims);
  attrs.input_batching_dims = Shifted(attrs.input_batching_dims);
  if (indices.batched) {
    attrs.input_batching_dims = WithFront(0, attrs.input_batching_dims);
    attrs.scatter_indices_batching_dims =
        WithFront(0, Shifted(attrs.scatter_indices_batching_dims));
    ++attrs.index_vector_dim;
    attrs.indices_are_sorted = false;
  } else {
    attrs.update_window_dims = WithFront(0, attrs.update_window_dims);
  }
  std::vector<Op> full = s.FullOperands(operands);
  if (!indices.batched) full[arrays] = indices.op;
  return s.AddBatched(i, full, std::move(attrs));
}

}  // namespace lazuli::lowering
