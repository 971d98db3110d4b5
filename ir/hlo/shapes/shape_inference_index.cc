#include "absl/algorithm/container.h"

#include "ir/hlo/shapes/shape_inference_internal.h"

namespace lazuli::hlo::internal {
namespace {

// What gather and scatter say about their indices.
struct IndexDims {
  const Dims& index_map;  // operand dimension of each component of an index
  std::string_view dropped_name;
  const Dims& dropped;  // operand dimensions that a window has not
  const Dims& operand_batching;
  const Dims& indices_batching;
  int64_t index_vector_dim;
};

// No dimension is in both lists.
absl::Status CheckApart(const Inference& in, std::string_view a_name, const Dims& a,
                        std::string_view b_name, const Dims& b) {
  for (int64_t d : a) {
    if (absl::c_linear_search(b, d))
      return in.Error("dimension ", d, " is in ", a_name, " and in ", b_name);
  }
  return absl::OkStatus();
}

// The batching dims pair up, in size too. Each dimension of the operand has one position, and each of
// the indices one meaning.
absl::Status CheckBatching(const Inference& in, const Shape& operand, const Shape& indices,
                           const IndexDims& dims) {
  constexpr std::string_view kOfOperand = "operand batching dims";
  LAZULI_RETURN_IF_ERROR(in.CheckDims(kOfOperand, dims.operand_batching, operand.rank()));
  LAZULI_RETURN_IF_ERROR(
      in.CheckDims("indices batching dims", dims.indices_batching, indices.rank()));
  if (dims.operand_batching.size() != dims.indices_batching.size()) {
    return in.Error(dims.operand_batching.size(), " batching dims of the operand, but ",
                    dims.indices_batching.size(), " of the indices");
  }
  LAZULI_RETURN_IF_ERROR(
      CheckApart(in, "index map", dims.index_map, kOfOperand, dims.operand_batching));
  LAZULI_RETURN_IF_ERROR(
      CheckApart(in, dims.dropped_name, dims.dropped, kOfOperand, dims.operand_batching));
  if (absl::c_linear_search(dims.indices_batching, dims.index_vector_dim)) {
    return in.Error("index_vector_dim=", dims.index_vector_dim, " is one of the batching dims {",
                    Join(dims.indices_batching, ","), "} of the indices");
  }
  for (std::size_t i = 0; i < dims.operand_batching.size(); ++i) {
    if (operand.dim(dims.operand_batching[i]) != indices.dim(dims.indices_batching[i]))
      return in.Error("batching dims differ in size: ", operand, " and ", indices);
  }
  return absl::OkStatus();
}

absl::Status CheckIndices(const Inference& in, const Shape& operand, const Shape& indices,
                          const IndexDims& dims) {
  if (!indices.IsArray() || !IsIntegral(indices.dtype()))
    return in.Error("indices ", indices, " are not integers");
  if (dims.index_vector_dim < 0 || dims.index_vector_dim > indices.rank()) {
    return in.Error("index_vector_dim=", dims.index_vector_dim, " is out of range for indices ",
                    indices);
  }
  const int64_t components =
      dims.index_vector_dim == indices.rank() ? 1 : indices.dim(dims.index_vector_dim);
  if (static_cast<int64_t>(dims.index_map.size()) != components) {
    return in.Error("indices ", indices, " have ", components, " components, the index map has ",
                    dims.index_map.size());
  }
  LAZULI_RETURN_IF_ERROR(in.CheckDims("index map", dims.index_map, operand.rank()));
  LAZULI_RETURN_IF_ERROR(in.CheckDims(dims.dropped_name, dims.dropped, operand.rank()));
  return CheckBatching(in, operand, indices, dims);
}

// The dimensions of `indices` without that of the index components.
Dims BatchSizes(const Shape& indices, int64_t index_vector_dim) {
  Dims sizes;
  for (int64_t d = 0; d < indices.rank(); ++d) {
    if (d != index_vector_dim) sizes.push_back(indices.dim(d));
  }
  return sizes;
}

// Of a gather, sizes of the dimensions of a slice that remain.
absl::StatusOr<Dims> SliceDims(const Inference& in, const Shape& x, const GatherAttrs& attrs) {
  Dims slice;
  for (int64_t d = 0; d < x.rank(); ++d) {
    const int64_t size = attrs.slice_sizes[static_cast<std::size_t>(d)];
    if (size < 0 || size > x.dim(d))
      return in.Error("slice size ", size, " is out of range for dimension ", d, " of ", x);
    const bool gone = absl::c_linear_search(attrs.collapsed_slice_dims, d) ||
                      absl::c_linear_search(attrs.operand_batching_dims, d);
    if (gone && size > 1)
      return in.Error("dimension ", d, " of ", x, " is dropped, but its slice size is ", size);
    if (!gone) slice.push_back(size);
  }
  return slice;
}

// Slices without elements make no element of a result: a dimension of size 0 that is dropped would
// hide that there is none.
absl::Status CheckSlices(const Inference& in, const Shape& x, const GatherAttrs& attrs,
                         absl::Span<const int64_t> result) {
  const auto empty = absl::c_find(attrs.slice_sizes, 0);
  if (empty == attrs.slice_sizes.end() || absl::c_linear_search(result, 0)) return absl::OkStatus();
  return in.Error("dimension ", empty - attrs.slice_sizes.begin(), " of ", x,
                  " is dropped, but its slice size is 0");
}

}  // namespace

absl::StatusOr<Shape> InferGather(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  const Shape& x = in.operand(0);
  const Shape& indices = in.operand(1);
  const auto& attrs = in.attrs_as<GatherAttrs>();
  LAZULI_RETURN_IF_ERROR(CheckIndices(
      in, x, indices,
      {attrs.start_index_map, "collapsed_slice_dims", attrs.collapsed_slice_dims,
       attrs.operand_batching_dims, attrs.start_indices_batching_dims, attrs.index_vector_dim}));
  if (static_cast<int64_t>(attrs.slice_sizes.size()) != x.rank()) {
    return in.Error(attrs.slice_sizes.size(), " slice sizes for ", x);
  }
  LAZULI_ASSIGN_OR_RETURN(const Dims slice, SliceDims(in, x, attrs));
  const Dims batch = BatchSizes(indices, attrs.index_vector_dim);
  const std::size_t rank = batch.size() + slice.size();
  if (attrs.offset_dims.size() != slice.size() ||
      !std::is_sorted(attrs.offset_dims.begin(), attrs.offset_dims.end())) {
    return in.Error("offset_dims={", Join(attrs.offset_dims, ","), "} do not name the ",
                    slice.size(), " dimensions of a slice of ", x, " in order");
  }
  LAZULI_RETURN_IF_ERROR(
      in.CheckDims("offset_dims", attrs.offset_dims, static_cast<int64_t>(rank)));
  Dims dims;
  std::size_t next_slice = 0, next_batch = 0;
  for (std::size_t d = 0; d < rank; ++d) {
    const bool offset = absl::c_linear_search(attrs.offset_dims, static_cast<int64_t>(d));
    dims.push_back(offset ? slice[next_slice++] : batch[next_batch++]);
  }
  LAZULI_RETURN_IF_ERROR(CheckSlices(in, x, attrs, dims));
  return in.Array(x.dtype(), dims);
}

namespace {

// One operand and its updates.
absl::Status CheckUpdates(const Inference& in, const Shape& x, const Shape& indices,
                          const Shape& updates) {
  const auto& attrs = in.attrs_as<ScatterAttrs>();
  const Dims batch = BatchSizes(indices, attrs.index_vector_dim);
  Dims window;  // operand dimensions that a window spans
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (!absl::c_linear_search(attrs.inserted_window_dims, d) &&
        !absl::c_linear_search(attrs.input_batching_dims, d))
      window.push_back(d);
  }
  LAZULI_RETURN_IF_ERROR(
      in.CheckDims("update_window_dims", attrs.update_window_dims, updates.rank()));
  if (attrs.update_window_dims.size() != window.size() ||
      !std::is_sorted(attrs.update_window_dims.begin(), attrs.update_window_dims.end()) ||
      updates.rank() != static_cast<int64_t>(batch.size() + window.size())) {
    return in.Error("updates ", updates, " with update_window_dims={",
                    Join(attrs.update_window_dims, ","), "} do not fit indices ", indices, " into ",
                    x);
  }
  std::size_t next_window = 0, next_batch = 0;
  for (int64_t d = 0; d < updates.rank(); ++d) {
    const bool in_window = absl::c_linear_search(attrs.update_window_dims, d);
    const int64_t bound = in_window ? x.dim(window[next_window++]) : batch[next_batch++];
    if (in_window ? updates.dim(d) > bound : updates.dim(d) != bound) {
      return in.Error("dimension ", d, " of updates ", updates, " does not fit indices ", indices,
                      " into ", x);
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Shape> InferScatter(const Inference& in) {
  LAZULI_RETURN_IF_ERROR(in.ArrayOperands());
  if (in.operand_count() < 3 || in.operand_count() % 2 == 0) {
    return in.Error("takes as many updates as operands and one indices operand, got ",
                    in.operand_count(), " operands");
  }
  const std::size_t n = in.operand_count() / 2;
  const auto& attrs = in.attrs_as<ScatterAttrs>();
  const Shape& indices = in.operand(n);
  LAZULI_RETURN_IF_ERROR(CheckIndices(
      in, in.operand(0), indices,
      {attrs.scatter_dims_to_operand_dims, "inserted_window_dims", attrs.inserted_window_dims,
       attrs.input_batching_dims, attrs.scatter_indices_batching_dims, attrs.index_vector_dim}));
  for (std::size_t i = 0; i < n; ++i) {
    const Shape& x = in.operand(i);
    const Shape& updates = in.operand(n + 1 + i);
    if (!SameDims(x, in.operand(0)))
      return in.Error("operands differ in dimensions: ", in.operand(0), " and ", x);
    if (x.dtype() != updates.dtype())
      return in.Error("updates ", updates, " are not of the type of ", x);
    LAZULI_RETURN_IF_ERROR(CheckUpdates(in, x, indices, updates));
  }
  if (in.callee(0) != nullptr)
    LAZULI_RETURN_IF_ERROR(CheckReducer(in, "to_apply", in.operands.first(n)));
  if (n == 1) return WithoutLayout(in.operand(0));
  std::vector<Shape> results;
  for (std::size_t i = 0; i < n; ++i) results.push_back(WithoutLayout(in.operand(i)));
  return Shape::Tuple(std::move(results));
}

}  // namespace lazuli::hlo::internal
