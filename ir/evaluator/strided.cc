#include "ir/evaluator/strided.h"

#include <algorithm>
#include <cstring>

namespace lazuli::hlo {
namespace {

struct Wide {  // one element of 16 bytes
  uint64_t low, high;
};

template <class T>
void CopyRow(int64_t count, const std::byte* from, int64_t from_stride, std::byte* to,
             int64_t to_stride) {
  for (int64_t i = 0; i < count; ++i, from += from_stride, to += to_stride)
    std::memcpy(to, from, sizeof(T));
}

void CopyRow(int width, int64_t count, const std::byte* from, int64_t from_stride, std::byte* to,
             int64_t to_stride) {
  if (from_stride == width && to_stride == width) {
    std::memcpy(to, from, static_cast<std::size_t>(count * width));
    return;
  }
  switch (width) {
    case 1:
      return CopyRow<uint8_t>(count, from, from_stride, to, to_stride);
    case 2:
      return CopyRow<uint16_t>(count, from, from_stride, to, to_stride);
    case 4:
      return CopyRow<uint32_t>(count, from, from_stride, to, to_stride);
    case 8:
      return CopyRow<uint64_t>(count, from, from_stride, to, to_stride);
    default:
      LAZULI_CHECK(width == 16, "element of ", width, " bytes");
      return CopyRow<Wide>(count, from, from_stride, to, to_stride);
  }
}

// One loop of the nest: its length and both strides.
struct NestLoop {
  int64_t count, from, to;
};

}  // namespace

void CopyStrided(int width, absl::Span<const int64_t> dims, const std::byte* from,
                 absl::Span<const int64_t> from_strides, std::byte* to,
                 absl::Span<const int64_t> to_strides) {
  // Loops that continue one another are one loop.
  absl::InlinedVector<NestLoop, 6> loops;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 0) return;
    if (dims[d] == 1) continue;
    const NestLoop loop{dims[d], from_strides[d], to_strides[d]};
    if (!loops.empty() && loops.back().from == loop.from * loop.count &&
        loops.back().to == loop.to * loop.count) {
      loops.back() = {loops.back().count * loop.count, loop.from, loop.to};
    } else {
      loops.push_back(loop);
    }
  }
  if (loops.empty()) loops.push_back({1, width, width});
  const NestLoop inner = loops.back();
  loops.pop_back();
  Dims index(loops.size(), 0);
  while (true) {
    CopyRow(width, inner.count, from, inner.from, to, inner.to);
    std::size_t d = loops.size();
    for (; d > 0; --d) {
      const NestLoop& loop = loops[d - 1];
      from += loop.from;
      to += loop.to;
      if (++index[d - 1] < loop.count) break;
      from -= loop.from * loop.count;
      to -= loop.to * loop.count;
      index[d - 1] = 0;
    }
    if (d == 0) return;
  }
}

void Fill(int width, const std::byte* value, int64_t count, std::byte* to) {
  CopyRow(width, count, value, 0, to, width);
}

Dims ByteStrides(const Shape& shape) {
  Dims strides(static_cast<std::size_t>(shape.rank()), 0);
  int64_t stride = ByteWidth(shape.dtype());
  for (std::size_t d = strides.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= shape.dims()[d];
  }
  return strides;
}

Literal Transposed(const Literal& x, absl::Span<const int64_t> permutation) {
  if (std::is_sorted(permutation.begin(), permutation.end())) return x;
  const Dims strides = ByteStrides(x.shape());
  Dims dims, from_strides;
  for (int64_t d : permutation) {
    dims.push_back(x.shape().dim(d));
    from_strides.push_back(strides[static_cast<std::size_t>(d)]);
  }
  Literal result = Literal::Uninitialized(Shape(x.shape().dtype(), dims));
  CopyStrided(ByteWidth(x.shape().dtype()), dims, x.raw(), from_strides, result.mutable_raw(),
              ByteStrides(result.shape()));
  return result;
}

}  // namespace lazuli::hlo
