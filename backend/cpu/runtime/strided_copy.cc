#include "backend/cpu/runtime/strided_copy.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "ir/support/check.h"
#include "ir/support/parallel_for.h"

namespace lazuli::cpu {
namespace {

struct Axis {
  int64_t size, source, target;
};

// Below this many bytes a task is not worth a thread.
constexpr int64_t kGrainBytes = 64 * 1024;
constexpr int64_t kCopyTile = 16;

// Transposes blocks of 4 x 4 words of 4 bytes in registers, as far as they go: `outer` are
// neighbours in the source, `inner` in the target. Returns how many of `outer` it moved; those it
// moved for every one of `inner`, which is a multiple of 4.
int64_t TransposeBlocks(const uint32_t* source, uint32_t* target, const Axis& outer,
                        const Axis& inner) {
  using Vector = uint32_t __attribute__((vector_size(16)));
  const auto load = [](const uint32_t* from) {
    Vector v;
    std::memcpy(&v, from, sizeof v);
    return v;
  };
  for (int64_t i = 0; i + 4 <= outer.size; i += 4) {
    for (int64_t j = 0; j < inner.size; j += 4) {
      const uint32_t* s = source + i + j * inner.source;
      uint32_t* t = target + i * outer.target + j;
      const Vector a = load(s), b = load(s + inner.source), c = load(s + 2 * inner.source),
                   d = load(s + 3 * inner.source);
      const Vector ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
      const Vector ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const Vector cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
      const Vector cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      const Vector rows[] = {__builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5),
                             __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7),
                             __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5),
                             __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7)};
      for (int64_t r = 0; r < 4; ++r) std::memcpy(t + r * outer.target, &rows[r], sizeof rows[r]);
    }
  }
  return outer.size / 4 * 4;
}

// A tile is read and written line by line while both sides' lines are still in the first-level
// cache.
template <class Word>
void CopyTiled(const Word* source, Word* target, const Axis& outer, const Axis& inner) {
  for (int64_t i0 = 0; i0 < outer.size; i0 += kCopyTile) {
    const int64_t i1 = std::min(i0 + kCopyTile, outer.size);
    for (int64_t j0 = 0; j0 < inner.size; j0 += kCopyTile) {
      const int64_t j1 = std::min(j0 + kCopyTile, inner.size);
      int64_t first = i0;
      if constexpr (sizeof(Word) == 4) {
        if (outer.source == 1 && inner.target == 1 && (j1 - j0) % 4 == 0) {
          first += TransposeBlocks(source + i0 + j0 * inner.source, target + i0 * outer.target + j0,
                                   {i1 - i0, outer.source, outer.target},
                                   {j1 - j0, inner.source, inner.target});
        }
      }
      for (int64_t i = first; i < i1; ++i) {
        const Word* s = source + i * outer.source;
        Word* t = target + i * outer.target;
        for (int64_t j = j0; j < j1; ++j) t[j * inner.target] = s[j * inner.source];
      }
    }
  }
}

template <class Word>
void CopyLine(const Word* source, Word* target, const Axis& axis) {
  if (axis.source == 1 && axis.target == 1) {
    std::memcpy(target, source, static_cast<std::size_t>(axis.size) * sizeof(Word));
    return;
  }
  for (int64_t j = 0; j < axis.size; ++j) target[j * axis.target] = source[j * axis.source];
}

}  // namespace

void CopyBytes(const std::byte* source, std::byte* target, int64_t bytes) {
  constexpr int64_t kGrain = 1 << 18;  // bytes that are worth a thread
  ParallelFor(bytes, kGrain, [&](int64_t begin, int64_t end) {
    std::memcpy(target + begin, source + begin, static_cast<std::size_t>(end - begin));
  });
}

StridedCopy::StridedCopy(int element_bytes, absl::Span<const int64_t> dims,
                         absl::Span<const int64_t> source_strides,
                         absl::Span<const int64_t> target_strides)
    : element_bytes_(element_bytes), elements_(1) {
  std::vector<Axis> axes;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    elements_ *= dims[i];
    if (dims[i] != 1) axes.push_back({dims[i], source_strides[i], target_strides[i]});
  }
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) {
    return std::abs(a.target) > std::abs(b.target);
  });
  std::vector<Axis> merged;
  for (const Axis& axis : axes) {
    if (!merged.empty() && merged.back().source == axis.source * axis.size &&
        merged.back().target == axis.target * axis.size) {
      merged.back() = {merged.back().size * axis.size, axis.source, axis.target};
    } else {
      merged.push_back(axis);
    }
  }
  if (merged.empty()) merged.push_back({1, 1, 1});
  if (merged.size() > 2 && std::abs(merged.back().source) != 1) {
    const auto smallest = std::min_element(
        merged.begin(), merged.end() - 1,
        [](const Axis& a, const Axis& b) { return std::abs(a.source) < std::abs(b.source); });
    std::rotate(smallest, smallest + 1, merged.end() - 1);
  }
  for (const Axis& axis : merged) {
    dims_.push_back(axis.size);
    source_strides_.push_back(axis.source);
    target_strides_.push_back(axis.target);
  }
}

// Rows are the multi-indices of all dims but the last two (or the last, if its lines are contiguous
// on both sides).
template <class Word>
void StridedCopy::RunRows(const Word* source, Word* target, int64_t begin, int64_t end) const {
  const std::size_t rank = dims_.size();
  const Axis inner{dims_[rank - 1], source_strides_[rank - 1], target_strides_[rank - 1]};
  const bool tiled = rank > 1 && inner.source != 1;
  const std::size_t outer_rank = rank - (tiled ? 2 : 1);
  for (int64_t row = begin; row < end; ++row) {
    int64_t rest = row, s = 0, t = 0;
    for (std::size_t d = outer_rank; d-- > 0; rest /= dims_[d]) {
      s += rest % dims_[d] * source_strides_[d];
      t += rest % dims_[d] * target_strides_[d];
    }
    if (tiled) {
      CopyTiled(source + s, target + t,
                {dims_[rank - 2], source_strides_[rank - 2], target_strides_[rank - 2]}, inner);
    } else {
      CopyLine(source + s, target + t, inner);
    }
  }
}

template <class Word>
void StridedCopy::RunTyped(const std::byte* source, std::byte* target) const {
  const auto* s = reinterpret_cast<const Word*>(source);
  auto* t = reinterpret_cast<Word*>(target);
  const std::size_t rank = dims_.size();
  const int64_t grain_elements = kGrainBytes / static_cast<int64_t>(sizeof(Word));
  if (rank == 1) {  // one line: cut it
    ParallelFor(elements_, grain_elements, [&](int64_t begin, int64_t end) {
      CopyLine(s + begin * source_strides_[0], t + begin * target_strides_[0],
               {end - begin, source_strides_[0], target_strides_[0]});
    });
    return;
  }
  const bool tiled = source_strides_[rank - 1] != 1;
  const int64_t row_elements = dims_[rank - 1] * (tiled ? dims_[rank - 2] : 1);
  const int64_t rows = elements_ / row_elements;
  if (tiled && rank == 2) {  // one matrix: cut it into bands
    ParallelFor(dims_[0], std::max<int64_t>(kCopyTile, grain_elements / dims_[1]),
                [&](int64_t begin, int64_t end) {
                  CopyTiled(s + begin * source_strides_[0], t + begin * target_strides_[0],
                            {end - begin, source_strides_[0], target_strides_[0]},
                            {dims_[1], source_strides_[1], target_strides_[1]});
                });
    return;
  }
  ParallelFor(rows, std::max<int64_t>(1, grain_elements / row_elements),
              [&](int64_t begin, int64_t end) { RunRows(s, t, begin, end); });
}

void StridedCopy::Run(const std::byte* source, std::byte* target) const {
  if (elements_ == 0) return;
  switch (element_bytes_) {
    case 1:
      return RunTyped<uint8_t>(source, target);
    case 2:
      return RunTyped<uint16_t>(source, target);
    case 4:
      return RunTyped<uint32_t>(source, target);
    case 8:
      return RunTyped<uint64_t>(source, target);
    case 16:
      return RunTyped<Word16>(source, target);
    default:
      LAZULI_CHECK(false, "element of ", element_bytes_, " bytes");
  }
}

bool StridedCopy::CanSplit(int64_t parts) const {
  const auto whole = [&](const Dims& strides) {
    return std::all_of(strides.begin(), strides.end(), [](int64_t s) { return s > 0; }) &&
           strides[0] * dims_[0] == elements_;
  };
  return elements_ > 0 && dims_[0] % parts == 0 && whole(source_strides_) && whole(target_strides_);
}

void StridedCopy::RunPart(const std::byte* source, std::byte* target, int64_t part,
                          int64_t parts) const {
  StridedCopy piece = *this;
  piece.dims_[0] /= parts;
  piece.elements_ /= parts;
  const int64_t offset = part * piece.bytes();
  piece.Run(source + offset, target + offset);
}

}  // namespace lazuli::cpu
