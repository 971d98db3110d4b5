// Data movement with positions that are data: dynamic slices, gather, scatter.

#include <algorithm>
#include <limits>

#include "absl/algorithm/container.h"

#include "ir/evaluator/internal.h"
#include "ir/evaluator/region.h"
#include "ir/evaluator/strided.h"

namespace lazuli::hlo {
namespace {

// Start indices: one scalar operand for each dimension, or one vector of all.
Dims ReadStarts(Operands operands, int64_t rank) {
  Dims starts;
  for (int64_t d = 0; d < rank; ++d) {
    const bool is_vector = operands.size() == 1 && operands[0]->shape().rank() == 1;
    starts.push_back(is_vector ? IntegerAt(*operands[0], d)
                               : IntegerAt(*operands[static_cast<std::size_t>(d)], 0));
  }
  return starts;
}

// Bytes from the start of `shape` to the window of `sizes` at `starts`, which are clamped so that
// it fits.
int64_t ClampedOffset(const Shape& shape, absl::Span<const int64_t> starts,
                      absl::Span<const int64_t> sizes) {
  const Dims strides = ByteStrides(shape);
  int64_t offset = 0;
  for (std::size_t d = 0; d < strides.size(); ++d) {
    const int64_t last = shape.dims()[d] - sizes[d];
    offset += std::clamp<int64_t>(starts[d], 0, last) * strides[d];
  }
  return offset;
}

// The same numbers as s64; one that s64 has not, as the largest that it has.
Literal Positions(const Literal& indices) {
  Literal positions = indices.Converted(DType::kS64);
  if (indices.shape().dtype() != DType::kU64) return positions;
  for (int64_t& position : positions.mutable_data<int64_t>()) {
    if (position < 0) position = std::numeric_limits<int64_t>::max();
  }
  return positions;
}

// What gather and scatter share: how an index vector of `indices` becomes a position of the
// operand.
class IndexReader {
 public:
  // `index_map[k]` is the operand's dimension of component k; batching dimensions pair up.
  IndexReader(const Literal& indices, int64_t vector_dim, Dims index_map, Dims operand_batching,
              const Dims& indices_batching, int64_t operand_rank)
      : indices_(Positions(indices)),
        index_map_(std::move(index_map)),
        operand_batching_(std::move(operand_batching)),
        rank_(operand_rank) {
    const Dims strides = ElementStrides(indices.shape().dims());
    for (int64_t d = 0; d < indices.shape().rank(); ++d) {
      if (d == vector_dim) continue;
      if (absl::c_linear_search(indices_batching, d))
        batch_of_dim_.push_back({d, batch_dims_.size()});
      batch_dims_.push_back(indices.shape().dim(d));
      batch_strides_.push_back(strides[static_cast<std::size_t>(d)]);
    }
    if (vector_dim < indices.shape().rank())
      vector_stride_ = strides[static_cast<std::size_t>(vector_dim)];
    for (int64_t d : indices_batching) {
      for (const auto& [dim, batch] : batch_of_dim_) {
        if (dim == d) batching_.push_back(batch);
      }
    }
  }

  const Dims& batch_dims() const { return batch_dims_; }

  // Unclamped starts in the operand for this batch index.
  Dims Starts(absl::Span<const int64_t> batch) const {
    Dims starts(static_cast<std::size_t>(rank_), 0);
    int64_t position = 0;
    for (std::size_t d = 0; d < batch.size(); ++d) position += batch[d] * batch_strides_[d];
    for (std::size_t k = 0; k < index_map_.size(); ++k) {
      starts[static_cast<std::size_t>(index_map_[k])] =
          indices_.data<int64_t>()[static_cast<std::size_t>(position + static_cast<int64_t>(k) *
                                                                           vector_stride_)];
    }
    for (std::size_t k = 0; k < operand_batching_.size(); ++k)
      starts[static_cast<std::size_t>(operand_batching_[k])] = batch[batching_[k]];
    return starts;
  }

 private:
  Literal indices_;
  Dims index_map_, operand_batching_;
  int64_t rank_;
  Dims batch_dims_, batch_strides_;
  std::vector<std::pair<int64_t, std::size_t>> batch_of_dim_;
  std::vector<std::size_t> batching_;
  int64_t vector_stride_ = 0;
};

// Strides of `shape` (gather's result, scatter's updates) along the dimensions that run over
// indices, and along the window's.
struct WindowStrides {
  Dims batch,
      window;  // window: one for each operand dimension, 0 where the window has no dimension there
};
WindowStrides SplitStrides(const Shape& shape, const Dims& window_dims, const Dims& absent,
                           const Dims& batching, int64_t operand_rank) {
  const Dims strides = ByteStrides(shape);
  WindowStrides result;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    if (!absl::c_linear_search(window_dims, d))
      result.batch.push_back(strides[static_cast<std::size_t>(d)]);
  }
  std::size_t next = 0;
  for (int64_t d = 0; d < operand_rank; ++d) {
    const bool has = !absl::c_linear_search(absent, d) && !absl::c_linear_search(batching, d);
    result.window.push_back(has ? strides[static_cast<std::size_t>(window_dims[next++])] : 0);
  }
  return result;
}

int64_t Offset(absl::Span<const int64_t> index, const Dims& strides) {
  int64_t offset = 0;
  for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * strides[d];
  return offset;
}

// Of a scatter's operands: the window that one index vector updates, 1 along inserted dimensions.
Dims ScatterWindow(const ScatterAttrs& attrs, int64_t rank, const Shape& updates) {
  Dims window(static_cast<std::size_t>(rank), 1);
  std::size_t next = 0;
  for (int64_t d = 0; d < rank; ++d) {
    if (absl::c_linear_search(attrs.inserted_window_dims, d) ||
        absl::c_linear_search(attrs.input_batching_dims, d))
      continue;
    window[static_cast<std::size_t>(d)] = updates.dim(attrs.update_window_dims[next++]);
  }
  return window;
}

// A scatter's results on the way: one window of all of them at a time, and of their updates, is
// copied to a dense array, combined there and copied back.
class Scatterer {
 public:
  // Operands of scatter: n arrays, the indices, n updates.
  Scatterer(const ScatterAttrs& attrs, Operands operands, Dims window)
      : window_(std::move(window)) {
    const std::size_t n = operands.size() / 2;
    results_.reserve(n);
    for (std::size_t k = 0; k < n; ++k) {
      results_.push_back(operands[k]->Clone());
      updates_.push_back(
          {operands[n + 1 + k], SplitStrides(operands[n + 1 + k]->shape(), attrs.update_window_dims,
                                             attrs.inserted_window_dims, attrs.input_batching_dims,
                                             results_[k].shape().rank())});
    }
    for (const Literal& result : results_) values_.push_back(Dense(result));
    for (const ScatterUpdate& update : updates_) changes_.push_back(Dense(*update.values));
    for (const Literal& value : values_) arguments_.push_back(value.raw());
    for (const Literal& change : changes_) arguments_.push_back(change.raw());
    for (Literal& value : values_) outputs_.push_back(value.mutable_raw());
  }

  // Combines the updates of this batch index with the windows at `starts`, which fit.
  absl::Status Combine(absl::Span<const int64_t> batch, const Dims& starts,
                       RegionEvaluator& region) {
    for (std::size_t k = 0; k < results_.size(); ++k) {
      const auto& [values, strides] = updates_[k];
      Copy(values_[k], Place(k, starts), ByteStrides(results_[k].shape()), outputs_[k],
           ByteStrides(values_[k].shape()));
      Copy(changes_[k], values->raw() + Offset(batch, strides.batch), strides.window,
           changes_[k].mutable_raw(), ByteStrides(changes_[k].shape()));
    }
    const absl::Status status = region.Run(arguments_, outputs_, values_[0].shape().num_elements());
    for (std::size_t k = 0; k < results_.size(); ++k)
      Copy(values_[k], outputs_[k], ByteStrides(values_[k].shape()), Place(k, starts),
           ByteStrides(results_[k].shape()));
    return status;
  }

  Literal Take() { return TupleOrOne(std::move(results_)); }

 private:
  struct ScatterUpdate {
    const Literal* values;
    WindowStrides strides;
  };
  Literal Dense(const Literal& of) const {
    return Literal::Uninitialized(Shape(of.shape().dtype(), window_));
  }
  std::byte* Place(std::size_t k, const Dims& starts) {
    return results_[k].mutable_raw() + Offset(starts, ByteStrides(results_[k].shape()));
  }
  void Copy(const Literal& dense, const std::byte* from, const Dims& from_strides, std::byte* to,
            const Dims& to_strides) const {
    CopyStrided(ByteWidth(dense.shape().dtype()), window_, from, from_strides, to, to_strides);
  }

  Dims window_;
  std::vector<Literal> results_;
  std::vector<ScatterUpdate> updates_;
  std::vector<Literal> values_, changes_;  // windows of the results and of their updates
  std::vector<const std::byte*> arguments_;
  std::vector<std::byte*> outputs_;
};

}  // namespace

absl::StatusOr<Literal> EvaluateDynamicSlice(const Instruction& instruction, Operands operands) {
  const Literal& x = *operands[0];
  const Dims& sizes = instruction.attrs_as<DynamicSliceAttrs>().dynamic_slice_sizes;
  const Dims starts = ReadStarts(operands.subspan(1), x.shape().rank());
  Literal result = Literal::Uninitialized(instruction.shape());
  CopyStrided(ByteWidth(x.shape().dtype()), sizes,
              x.raw() + ClampedOffset(x.shape(), starts, sizes), ByteStrides(x.shape()),
              result.mutable_raw(), ByteStrides(result.shape()));
  return result;
}

absl::StatusOr<Literal> EvaluateDynamicUpdateSlice(const Instruction& instruction,
                                                   Operands operands) {
  const Literal& update = *operands[1];
  const Dims starts = ReadStarts(operands.subspan(2), instruction.shape().rank());
  Literal result = operands[0]->Clone();
  CopyStrided(ByteWidth(update.shape().dtype()), update.shape().dims(), update.raw(),
              ByteStrides(update.shape()),
              result.mutable_raw() + ClampedOffset(result.shape(), starts, update.shape().dims()),
              ByteStrides(result.shape()));
  return result;
}

absl::StatusOr<Literal> EvaluateGather(const Instruction& instruction, Operands operands) {
  const auto& attrs = instruction.attrs_as<GatherAttrs>();
  const Literal& x = *operands[0];
  const IndexReader reader(*operands[1], attrs.index_vector_dim, attrs.start_index_map,
                           attrs.operand_batching_dims, attrs.start_indices_batching_dims,
                           x.shape().rank());
  Literal result = Literal::Uninitialized(instruction.shape());
  const WindowStrides strides =
      SplitStrides(result.shape(), attrs.offset_dims, attrs.collapsed_slice_dims,
                   attrs.operand_batching_dims, x.shape().rank());
  const Dims from_strides = ByteStrides(x.shape());
  ForEachIndex(reader.batch_dims(), [&](absl::Span<const int64_t> batch) {
    const int64_t offset = ClampedOffset(x.shape(), reader.Starts(batch), attrs.slice_sizes);
    CopyStrided(ByteWidth(x.shape().dtype()), attrs.slice_sizes, x.raw() + offset, from_strides,
                result.mutable_raw() + Offset(batch, strides.batch), strides.window);
  });
  return result;
}

// Windows are combined one after the other, in row-major order of the indices; one that does not
// fit is skipped.
absl::StatusOr<Literal> EvaluateScatter(const Instruction& instruction, Operands operands,
                                        Evaluation& evaluation) {
  const auto& attrs = instruction.attrs_as<ScatterAttrs>();
  const std::size_t n = operands.size() / 2;
  const Shape& shape = operands[0]->shape();
  const IndexReader reader(*operands[n], attrs.index_vector_dim, attrs.scatter_dims_to_operand_dims,
                           attrs.input_batching_dims, attrs.scatter_indices_batching_dims,
                           shape.rank());
  const Dims window = ScatterWindow(attrs, shape.rank(), operands[n + 1]->shape());
  const auto fits = [&](const Dims& starts) {
    for (std::size_t d = 0; d < window.size(); ++d) {
      if (starts[d] < 0 || starts[d] > shape.dims()[d] - window[d]) return false;
    }
    return true;
  };
  int64_t lanes = 1;
  for (const int64_t size : window) lanes *= size;
  RegionEvaluator region(*instruction.to_apply(), lanes, evaluation);
  Scatterer scatterer(attrs, operands, window);
  absl::Status status;
  ForEachIndex(reader.batch_dims(), [&](absl::Span<const int64_t> batch) {
    const Dims starts = reader.Starts(batch);
    if (status.ok() && fits(starts)) status = scatterer.Combine(batch, starts, region);
  });
  LAZULI_RETURN_IF_ERROR(status);
  return scatterer.Take();
}

}  // namespace lazuli::hlo
