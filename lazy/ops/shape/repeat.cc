// Elements that are repeated: tile, repeat, repeat_interleave by one number.
#include <algorithm>

#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"

namespace lazuli::lazy {
namespace {

// The dims of x with dims of size 1 before them, so that there are `rank`.
Dims PaddedDims(std::string_view op, const Tensor& x, std::size_t rank) {
  if (rank < static_cast<std::size_t>(x.rank())) {
    ThrowRecordError(op, InvalidArgument(rank, " numbers are too few for ", x.shape()));
  }
  Dims dims(rank - static_cast<std::size_t>(x.rank()), 1);
  dims.insert(dims.end(), x.shape().dims().begin(), x.shape().dims().end());
  return dims;
}

}  // namespace

Tensor Repeat(const Tensor& x, absl::Span<const int64_t> counts) {
  const Dims own = PaddedDims("repeat", x, counts.size());
  Dims apart, blocks, joined;  // [2, 3] twice along each: [1, 2, 1, 3] to [2, 2, 2, 3] to [4, 6]
  for (std::size_t i = 0; i < own.size(); ++i) {
    apart.insert(apart.end(), {1, own[i]});
    blocks.insert(blocks.end(), {counts[i], own[i]});
    joined.push_back(counts[i] * own[i]);
  }
  const Tensor repeated = Reshape(BroadcastTo(Reshape(x, apart), blocks), joined);
  return repeated.impl() == x.impl() ? Clone(x) : repeated;
}

Tensor Tile(const Tensor& x, absl::Span<const int64_t> dims) {
  Dims counts(std::max<std::size_t>(static_cast<std::size_t>(x.rank()), dims.size()), 1);
  std::copy(dims.begin(), dims.end(), counts.end() - static_cast<std::ptrdiff_t>(dims.size()));
  return Repeat(x, counts);
}

Tensor RepeatInterleave(const Tensor& x, int64_t repeats, std::optional<int64_t> dim,
                        std::optional<int64_t> output_size) {
  if (repeats < 0) {
    ThrowRecordError("repeat_interleave",
                     InvalidArgument("repeats must not be negative, is ", repeats));
  }
  const Tensor in = dim ? WithDim(x) : Reshape(x, {-1});
  const int64_t d = NormalizeDim("repeat_interleave", dim.value_or(0), in.rank());
  Dims dims = DimsOf(in.shape()), apart = dims;
  apart.insert(apart.begin() + d + 1, repeats);
  dims[static_cast<std::size_t>(d)] *= repeats;
  if (output_size.value_or(dims[static_cast<std::size_t>(d)]) !=
      dims[static_cast<std::size_t>(d)]) {
    ThrowRecordError("repeat_interleave",
                     InvalidArgument("output_size is ", *output_size, ", but there are ",
                                     dims[static_cast<std::size_t>(d)], " elements"));
  }
  return Reshape(BroadcastTo(Unsqueeze(in, d + 1), apart), dims);
}

}  // namespace lazuli::lazy
