// A convolution is a matrix product: a row for each position of the window, a column for each
// output feature, and between them the elements under the window. That matrix of elements is many
// times as large as the input, so it is never made as a whole. A tile of kRows positions and kDepth
// elements is gathered, multiplied by the same elements of the kernel, and added to the result:
//
//   result[rows, :] = sum over blocks of depth of gathered[rows, block] * kernel[block, :]
//
// What a window has outside the input, or between elements that are dilated, is gathered as zeros.
// They must add nothing, which zeros times infinity or NaN would: a kernel that has such numbers is
// multiplied tap by tap.
#include "backend/cpu/runtime/eigen/convolution.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <functional>
#include <numeric>
#include <optional>
#include <type_traits>
#include <vector>

#include <Eigen/Core>

#include "backend/cpu/runtime/parts.h"
#include "backend/cpu/runtime/strided_copy.h"

namespace lazuli::cpu {
namespace {

// A tile of f64 takes 256 KiB: it stays in the second-level cache while it is multiplied.
constexpr int64_t kRows = 64;
constexpr int64_t kDepth = 512;
constexpr int64_t kOutside = -1;

int64_t Product(absl::Span<const int64_t> dims) {
  return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
}

Dims RowMajorStrides(absl::Span<const int64_t> dims) {
  Dims strides(dims.size());
  int64_t stride = 1;
  for (std::size_t d = dims.size(); d-- > 0; stride *= dims[d]) strides[d] = stride;
  return strides;
}

int64_t Aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

// target (+)= a * b; a is `rows` x `depth` with rows kDepth apart, b is `depth` x `columns` packed.
template <class T>
void Multiply(const T* a, const T* b, T* target, int64_t target_stride, int64_t rows, int64_t depth,
              int64_t columns, bool add) {
  if constexpr (std::is_integral_v<T>) {
    using Wide = std::common_type_t<T, uint32_t>;  // two u16 would be multiplied as signed ints
    for (int64_t r = 0; r < rows; ++r) {
      T* const to = target + r * target_stride;
      if (!add) std::fill_n(to, columns, T{0});
      for (int64_t k = 0; k < depth; ++k) {
        const T factor = a[r * kDepth + k];
        const T* const row = b + k * columns;
        for (int64_t c = 0; c < columns; ++c) to[c] = static_cast<T>(to[c] + Wide{factor} * row[c]);
      }
    }
  } else {
    using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
    using Rows = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;
    Eigen::Map<Matrix, 0, Eigen::OuterStride<>> sum(target, rows, columns,
                                                    Eigen::OuterStride<>(target_stride));
    const Rows left(a, rows, depth, Eigen::OuterStride<>(kDepth));
    const Rows right(b, depth, columns, Eigen::OuterStride<>(columns));
    if (add) {
      sum.noalias() += left * right;
    } else {
      sum.noalias() = left * right;
    }
  }
}

template <class T>
bool AllFinite(const T* values, int64_t count) {
  if constexpr (std::is_integral_v<T>) {
    return true;
  } else if constexpr (std::is_floating_point_v<T>) {
    return std::all_of(values, values + count, [](T x) { return std::isfinite(x); });
  } else {  // the parts of complex numbers
    return AllFinite(reinterpret_cast<const typename T::value_type*>(values), 2 * count);
  }
}

template <class T>
class EigenConvolution final : public LibraryCall {
 public:
  EigenConvolution(const WindowedConvolution& spec, int threads);

  int64_t scratch_bytes() const override {
    return StagedAt() + (staging_ ? Aligned(Product(spec_.result) * kBytes) : 0);
  }
  absl::Status Run(const LibraryBuffers& buffers) const override;
  std::string Details() const override { return "Eigen"; }

 private:
  static constexpr auto kBytes = static_cast<int64_t>(sizeof(T));

  int64_t TileAt(int64_t worker) const {
    return Aligned(Product(spec_.kernel) * kBytes) + worker * kRows * kDepth * kBytes;
  }
  int64_t StagedAt() const { return TileAt(workers_); }
  int64_t RowOffset(int64_t group, int64_t row, Dims& position) const;
  int64_t TapOffset(const Dims& position, int64_t tap) const;
  void GatherRow(const T* input, const Dims& position, int64_t begin, int64_t end, T* to) const;
  // Rows of the result that are computed together, and what they are computed with.
  struct ResultBlock {
    int64_t group, first, rows;
    const T* kernel;
    T* result;
  };
  ResultBlock BlockAt(int64_t group, int64_t block, const T* kernel, T* result) const {
    const int64_t first = block * kRows;
    return {group, first, std::min(kRows, rows_ - first), kernel + group * depth_ * columns_,
            result + first * spec_.result[1] + group * columns_};
  }
  void RunTile(const T* input, const ResultBlock& block, T* tile) const;
  void RunTapByTap(const T* input, const ResultBlock& block, T* tile) const;

  WindowedConvolution spec_;
  int64_t groups_, rows_, taps_, channels_, depth_, columns_, blocks_, workers_;
  Dims positions_, window_;  // sizes by spatial dimension: of the result and of the window
  // By spatial dimension, then position of the result, then of the window: where the element lies
  // that the window has there, in elements from the start of its channel, or kOutside.
  std::vector<std::vector<int64_t>> offsets_;
  bool any_outside_ = false;
  // The kernel as [group, window..., channel, output feature of the group], reversed where it is.
  StridedCopy pack_;
  int64_t pack_offset_ = 0;
  // From [batch, spatial..., feature], if the result is anything else in memory.
  std::optional<StridedCopy> staging_;
};

template <class T>
EigenConvolution<T>::EigenConvolution(const WindowedConvolution& spec, int threads)
    : spec_(spec),
      groups_(spec.feature_groups * spec.batch_groups),
      taps_(1),
      channels_(spec.kernel[1]),
      columns_(spec.kernel[0] / groups_) {
  Dims packed{groups_}, pack_strides{columns_ * spec.kernel_strides[0]};
  for (std::size_t d = 0; d < spec.window.size(); ++d) {
    const hlo::WindowDim& w = spec.window[d];
    const int64_t size = spec.result[d + 2], stride = spec.kernel_strides[d + 2];
    positions_.push_back(size);
    window_.push_back(w.size);
    taps_ *= w.size;
    packed.push_back(w.size);
    pack_strides.push_back(w.reversal ? -stride : stride);
    if (w.reversal) pack_offset_ += (w.size - 1) * stride * kBytes;
    std::vector<int64_t>& offsets = offsets_.emplace_back();
    for (int64_t o = 0; o < size; ++o) {
      for (int64_t k = 0; k < w.size; ++k) {
        const int64_t dilated = o * w.stride - w.pad_low + k * w.window_dilation;
        const int64_t index = dilated / w.base_dilation;
        const bool inside =
            dilated >= 0 && dilated % w.base_dilation == 0 && index < spec.input[d + 2];
        offsets.push_back(inside ? index * spec.input_strides[d + 2] : kOutside);
        any_outside_ = any_outside_ || !inside;
      }
    }
  }
  packed.insert(packed.end(), {channels_, columns_});
  pack_strides.insert(pack_strides.end(), {spec.kernel_strides[1], spec.kernel_strides[0]});
  pack_ = StridedCopy(sizeof(T), packed, pack_strides, RowMajorStrides(packed));

  Dims order = spec.result, strides = spec.result_strides;  // features last
  std::rotate(order.begin() + 1, order.begin() + 2, order.end());
  std::rotate(strides.begin() + 1, strides.begin() + 2, strides.end());
  const Dims staged = RowMajorStrides(order);
  if (strides != staged) staging_ = StridedCopy(sizeof(T), order, staged, strides);

  depth_ = taps_ * channels_;
  rows_ = spec.input[0] / spec.batch_groups * Product(positions_);
  blocks_ = (rows_ + kRows - 1) / kRows;
  workers_ = WorkersFor(groups_ * blocks_, threads);
}

// Where the channels of `row` begin in the input; `position` becomes the row's in the result.
template <class T>
int64_t EigenConvolution<T>::RowOffset(int64_t group, int64_t row, Dims& position) const {
  for (std::size_t d = positions_.size(); d-- > 0; row /= positions_[d])
    position[d] = row % positions_[d];
  if (spec_.batch_groups > 1)
    return (group * (spec_.input[0] / spec_.batch_groups) + row) * spec_.input_strides[0];
  return row * spec_.input_strides[0] + group * channels_ * spec_.input_strides[1];
}

// Where the first channel of the element lies that the window at `position` has at this tap.
template <class T>
int64_t EigenConvolution<T>::TapOffset(const Dims& position, int64_t tap) const {
  int64_t offset = 0;
  for (std::size_t d = window_.size(); d-- > 0; tap /= window_[d]) {
    const auto at = static_cast<std::size_t>(position[d] * window_[d] + tap % window_[d]);
    if (offsets_[d][at] == kOutside) return kOutside;
    offset += offsets_[d][at];
  }
  return offset;
}

// Elements [begin, end) under the window at `position`, channels innermost.
template <class T>
void EigenConvolution<T>::GatherRow(const T* input, const Dims& position, int64_t begin,
                                    int64_t end, T* to) const {
  const int64_t stride = spec_.input_strides[1];
  while (begin < end) {
    const int64_t tap = begin / channels_, offset = TapOffset(position, tap);
    const int64_t channel = begin - tap * channels_;
    const int64_t count = std::min(channels_ - channel, end - begin);
    if (offset == kOutside) {
      std::fill_n(to, count, T{0});
    } else if (stride == 1) {
      std::copy_n(input + offset + channel, count, to);
    } else {
      const T* from = input + offset + channel * stride;
      for (int64_t c = 0; c < count; ++c) to[c] = from[c * stride];
    }
    to += count;
    begin += count;
  }
}

template <class T>
void EigenConvolution<T>::RunTile(const T* input, const ResultBlock& block, T* tile) const {
  Dims position(positions_.size());
  for (int64_t begin = 0; begin < depth_; begin += kDepth) {
    const int64_t end = std::min(begin + kDepth, depth_);
    for (int64_t r = 0; r < block.rows; ++r) {
      const int64_t offset = RowOffset(block.group, block.first + r, position);
      GatherRow(input + offset, position, begin, end, tile + r * kDepth);
    }
    Multiply(tile, block.kernel + begin * columns_, block.result, spec_.result[1], block.rows,
             end - begin, columns_, /*add=*/begin > 0);
  }
}

template <class T>
void EigenConvolution<T>::RunTapByTap(const T* input, const ResultBlock& block, T* tile) const {
  const int64_t features = spec_.result[1];
  Dims position(positions_.size());
  T* result = block.result;
  for (int64_t r = 0; r < block.rows; ++r, result += features) {
    const int64_t offset = RowOffset(block.group, block.first + r, position);
    std::fill_n(result, columns_, T{});
    for (int64_t tap = 0; tap < taps_; ++tap) {
      if (TapOffset(position, tap) == kOutside) continue;
      const int64_t end = (tap + 1) * channels_;
      for (int64_t begin = tap * channels_; begin < end; begin += kDepth) {
        const int64_t depth = std::min(kDepth, end - begin);
        GatherRow(input + offset, position, begin, begin + depth, tile);
        Multiply(tile, block.kernel + begin * columns_, result, features, 1, depth, columns_,
                 /*add=*/true);
      }
    }
  }
}

template <class T>
absl::Status EigenConvolution<T>::Run(const LibraryBuffers& buffers) const {
  const auto* input = reinterpret_cast<const T*>(buffers.a);
  pack_.Run(buffers.b + pack_offset_, buffers.scratch);
  const auto* kernel = reinterpret_cast<const T*>(buffers.scratch);
  std::byte* const staged = staging_ ? buffers.scratch + StagedAt() : buffers.result;
  const bool tap_by_tap = any_outside_ && !AllFinite(kernel, groups_ * depth_ * columns_);
  LAZULI_RETURN_IF_ERROR(ForEachPart(groups_ * blocks_, workers_, [&](Part part) {
    auto* tile = reinterpret_cast<T*>(buffers.scratch + TileAt(part.worker));
    const ResultBlock block =
        BlockAt(part.index / blocks_, part.index % blocks_, kernel, reinterpret_cast<T*>(staged));
    tap_by_tap ? RunTapByTap(input, block, tile) : RunTile(input, block, tile);
    return absl::OkStatus();
  }));
  if (staging_) staging_->Run(staged, buffers.result);
  return absl::OkStatus();
}

template <class T>
std::shared_ptr<const LibraryCall> Plan(const WindowedConvolution& spec, int threads) {
  return std::make_shared<EigenConvolution<T>>(spec, threads);
}

}  // namespace

std::shared_ptr<const LibraryCall> PlanEigenConvolution(const WindowedConvolution& spec,
                                                        int threads) {
  switch (spec.dtype) {
    case DType::kF32:
      return Plan<float>(spec, threads);
    case DType::kF64:
      return Plan<double>(spec, threads);
    case DType::kC64:
      return Plan<std::complex<float>>(spec, threads);
    case DType::kC128:
      return Plan<std::complex<double>>(spec, threads);
    // Integers wrap, signed ones too: their sums have the bits of unsigned ones.
    case DType::kS8:
    case DType::kU8:
      return Plan<uint8_t>(spec, threads);
    case DType::kS16:
    case DType::kU16:
      return Plan<uint16_t>(spec, threads);
    case DType::kS32:
    case DType::kU32:
      return Plan<uint32_t>(spec, threads);
    case DType::kS64:
    case DType::kU64:
      return Plan<uint64_t>(spec, threads);
    default:
      return nullptr;
  }
}

}  // namespace lazuli::cpu
