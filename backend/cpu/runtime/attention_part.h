// A part of attention, which one thread computes: some rows of one member of the batch. How a spec
// is cut into such parts, their scratch memory, and what the forward pass and the gradient share:
// reading and writing arrays, and the steps of scores.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "backend/cpu/runtime/attention.h"
#include "backend/cpu/runtime/attention_kernels.h"
#include "backend/cpu/runtime/bf16_tiles.h"
#include "backend/cpu/runtime/few_rows.h"
#include "backend/cpu/runtime/few_rows_kernels.h"

namespace lazuli::cpu {

// A tile of scores: with 64 columns of a value, all that its loops touch is in the first cache, or
// nearly.
inline constexpr int64_t kQueryTile = 64, kKeyTile = 128;
// Few queries read keys and values where they lie, so many keys at a time.
inline constexpr int64_t kDirectKeys = 512;
// Where the batch makes fewer parts than these, its members' rows are cut.
inline constexpr int64_t kWantedParts = 8;
// Multiplications that are worth a thread.
inline constexpr double kThreadWork = 1 << 18;
// Rows of the gradient that are computed together: all their weights lie in scratch memory.
inline constexpr int64_t kFewKeys = 1024;

constexpr int64_t CeilDiv(int64_t x, int64_t by) { return (x + by - 1) / by; }
constexpr int64_t RoundUp(int64_t x, int64_t by) { return CeilDiv(x, by) * by; }

// Scratch memory in pieces that begin where cache lines do.
template <class T>
class ScratchPieces {
 public:
  explicit ScratchPieces(T* begin) : begin_(begin) {}  // null: to count
  T* Take(int64_t count) {
    const int64_t at = std::exchange(taken_, taken_ + RoundUp(count, kLine));
    return begin_ == nullptr ? nullptr : begin_ + at;
  }
  int64_t taken() const { return taken_; }

 private:
  static constexpr int64_t kLine = 64 / sizeof(T);
  T* begin_;
  int64_t taken_ = 0;
};

// Elements of a block of keys, or values, that are widened before they are put in order.
inline int64_t WideBlock(const AttentionSpec& spec) {
  const bool widens = spec.key.dtype != spec.dtype || spec.value.dtype != spec.dtype;
  return widens ? kKeyTile * std::max(spec.depth, spec.width) : 0;
}

// Whether the processor's products of bf16 multiply the operands, if it has such. They sum in f32,
// and take the weights rounded to bf16.
inline bool FitsBf16Tiles(const AttentionSpec& spec) {
  for (const AttentionArray* array : {&spec.query, &spec.key, &spec.value})
    if (array->dtype != DType::kBF16) return false;
  return !spec.is_gradient && spec.key.column == 1 && spec.value.column == 1 &&
         spec.depth % kBf16TileTerms == 0 && spec.width % kBf16TileRows == 0;
}

template <class T>
struct AttentionCut;

// What one worker needs for a part.
template <class T>
struct ForwardScratch {
  ForwardScratch(const AttentionSpec& spec, const AttentionCut<T>& cut, T* begin);
  T *query, *sums, *largest, *totals;  // of all rows of the part
  T *keys, *values, *tile;             // of a block of keys
  T* wide;                             // a block of keys, where they are 16-bit floats
  T* narrow;                           // a tile of bf16
  T *added, *lanes;                    // of few rows
  int64_t elements;
};
template <class T>
struct GradientScratch {
  GradientScratch(const AttentionSpec& spec, const AttentionCut<T>& cut, T* begin);
  T *keys_transposed, *values_transposed, *keys;  // of all keys
  T *weights, *slopes;                            // tiles of some rows and all keys
  T *query, *dquery, *dresult;                    // of these rows
  T* wide;                                        // a block of keys or values of 16-bit floats
  int64_t elements;
};

// How a spec is cut, by its sizes alone, and how much scratch memory that takes, in elements.
template <class T>
struct AttentionCut {
  explicit AttentionCut(const AttentionSpec& spec)
      : lanes(TileLoopsHere<T>().lanes),
        depth(RoundUp(spec.depth, lanes)),
        width(RoundUp(spec.width, lanes)),
        key_blocks(CeilDiv(spec.keys, kKeyTile)) {
    direct = !spec.is_gradient && spec.rows <= kMostRows && spec.value.column == 1 &&
             (spec.key.column == 1 || spec.key.row == 1);
    fits_tiles = !direct && FitsBf16Tiles(spec);
    tile_rows = spec.is_gradient && spec.keys > kFewKeys ? kQueryTile / 2 : kQueryTile;
    const int64_t cuts =
        std::clamp<int64_t>(CeilDiv(kWantedParts, spec.batch), 1, CeilDiv(spec.rows, tile_rows));
    part_rows = cuts == 1 ? spec.rows : RoundUp(CeilDiv(spec.rows, cuts), tile_rows);
    row_parts = CeilDiv(spec.rows, part_rows);
    parts = spec.batch * row_parts;
    const double work = static_cast<double>(spec.batch) * static_cast<double>(spec.rows) *
                        static_cast<double>(spec.keys) *
                        static_cast<double>(spec.depth + spec.width);
    const auto worth = static_cast<int64_t>(std::min(work / kThreadWork, 4096.0)) + 1;
    workers = std::min({parts, worth, spec.threads});
    if (spec.is_gradient) sums = RoundUp(spec.keys * (depth + width), 64);
    per_worker = spec.is_gradient ? GradientScratch<T>(spec, *this, nullptr).elements
                                  : ForwardScratch<T>(spec, *this, nullptr).elements;
  }
  // The sums of a part are those of a worker where they need not be added to others.
  int64_t sum_places() const { return row_parts > 1 ? parts : workers; }
  int64_t elements() const { return workers * per_worker + sum_places() * sums; }

  int64_t lanes, depth, width;  // of a vector; rounded up to whole vectors
  int64_t key_blocks;
  bool direct = false, fits_tiles = false;
  int64_t tile_rows = 0, part_rows = 0, row_parts = 0, parts = 0, workers = 0;
  int64_t per_worker = 0, sums = 0;
};

template <class T>
ForwardScratch<T>::ForwardScratch(const AttentionSpec& spec, const AttentionCut<T>& cut, T* begin) {
  ScratchPieces<T> pieces(begin);
  const int64_t rows = cut.fits_tiles ? RoundUp(cut.part_rows, kBf16TileRows) : cut.part_rows;
  query = pieces.Take(rows * cut.depth);
  sums = pieces.Take(rows * cut.width);
  largest = pieces.Take(cut.part_rows);
  totals = pieces.Take(cut.part_rows);
  const bool direct = cut.direct;
  keys = pieces.Take(direct ? 0 : spec.depth * kKeyTile);
  values = pieces.Take(direct ? 0 : cut.width * kKeyTile);
  wide = pieces.Take(direct ? 0 : WideBlock(spec));
  tile = pieces.Take(direct ? cut.part_rows * kDirectKeys : kQueryTile * kKeyTile);
  narrow = pieces.Take(cut.fits_tiles ? kQueryTile * kKeyTile / 2 : 0);
  added = pieces.Take(direct ? cut.part_rows * cut.width : 0);
  lanes = pieces.Take(direct ? std::max(AddedRowsScratch<T>(spec.rows, kDirectKeys),
                                        AddedRowsScratch<T>(spec.rows, spec.width))
                             : 0);
  elements = pieces.taken();
}

template <class T>
GradientScratch<T>::GradientScratch(const AttentionSpec& spec, const AttentionCut<T>& cut,
                                    T* begin) {
  ScratchPieces<T> pieces(begin);
  const int64_t count = cut.key_blocks * kKeyTile, rows = std::min(cut.tile_rows, cut.part_rows);
  keys_transposed = pieces.Take(count * spec.depth);
  values_transposed = pieces.Take(count * spec.width);
  keys = pieces.Take(count * cut.depth);
  weights = pieces.Take(count * rows);
  slopes = pieces.Take(count * rows);
  query = pieces.Take(rows * cut.depth);
  dquery = pieces.Take(rows * cut.depth);
  dresult = pieces.Take(rows * cut.width);
  wide = pieces.Take(WideBlock(spec));
  elements = pieces.taken();
}

template <class T>
class Attention {
 public:
  Attention(const AttentionSpec& spec, const AttentionCut<T>& cut, const RunBuffers& run, Part part)
      : spec_(spec),
        cut_(cut),
        run_(run),
        loops_(TileLoopsHere<T>()),
        member_(part.index / cut.row_parts),
        first_row_(part.index % cut.row_parts * cut.part_rows),
        rows_(std::min(cut.part_rows, spec.rows - first_row_)) {}

 protected:
  static constexpr T kNone = -std::numeric_limits<T>::infinity();
  static constexpr T kNothing = std::numeric_limits<T>::quiet_NaN();
  // exp of less is 0.
  static constexpr T kVanishes = sizeof(T) == 4 ? 200 : 1600;

  template <class U = T>
  U* At(const AttentionArray& array, int64_t member) const {
    return run_.at<U>(array.buffer) + array.offsets[static_cast<std::size_t>(member)];
  }
  static bool IsHalf(const AttentionArray& array) {
    return array.dtype == DType::kBF16 || array.dtype == DType::kF16;
  }
  // `count` elements of a row from a column on, as T.
  void ReadRow(const AttentionArray& array, int64_t row, int64_t column, int64_t count,
               T* to) const {
    const int64_t at = row * array.row + column * array.column;
    if constexpr (sizeof(T) == 4) {
      if (IsHalf(array)) {
        const uint16_t* from = At<uint16_t>(array, member_) + at;
        const HalfLoops& loops = HalfLoopsHere(array.dtype);
        if (array.column == 1) return loops.widen(from, count, to);
        for (int64_t j = 0; j < count; ++j) loops.widen(from + j * array.column, 1, to + j);
        return;
      }
    }
    const T* from = At(array, member_) + at;
    if (array.column == 1) {
      std::copy_n(from, count, to);
    } else {
      for (int64_t j = 0; j < count; ++j) to[j] = from[j * array.column];
    }
  }
  // The inverse: a whole row, times the array's factor and rounded.
  void WriteRow(T* x, int64_t count, const AttentionArray& array, int64_t row) const {
    const T factor = static_cast<T>(array.factor);
    const int64_t at = row * array.row;
    if constexpr (sizeof(T) == 4) {
      if (IsHalf(array)) {
        uint16_t* const to = At<uint16_t>(array, member_) + at;
        const HalfLoops& loops = HalfLoopsHere(array.dtype);
        for (int64_t j = 0; j < count; ++j) x[j] *= factor;
        if (array.column == 1) return loops.narrow(x, count, to);
        for (int64_t j = 0; j < count; ++j) loops.narrow(x + j, 1, to + j * array.column);
        return;
      }
    }
    T* const to = At(array, member_) + at;
    for (int64_t j = 0; j < count; ++j) to[j * array.column] = x[j] * factor;
  }
  // Whether all of some rows, whose elements lie side by side, is finite.
  bool RowsAreFinite(const AttentionArray& array, int64_t first, int64_t count,
                     int64_t columns) const {
    bool finite = array.column == 1;
    for (int64_t i = first; i < first + count && finite; ++i) {
      finite = IsHalf(array) ? HalfLoopsHere(array.dtype)
                                   .finite(At<uint16_t>(array, member_) + i * array.row, columns)
                             : loops_.finite(At(array, member_) + i * array.row, columns);
    }
    return finite;
  }
  T* WorkerScratch(int64_t worker) const {
    return run_.at<T>(spec_.scratch) + worker * cut_.per_worker;
  }

  // to[i * to_row + j] = array(first + i, j), and 0 from `columns` up to to_row.
  void Pack(const AttentionArray& array, int64_t first, int64_t rows, int64_t columns, T* to,
            int64_t to_row) const {
    for (int64_t i = 0; i < rows; ++i) {
      T* const row = to + i * to_row;
      ReadRow(array, first + i, 0, columns, row);
      std::fill(row + columns, row + to_row, T{0});
    }
  }
  // The transpose of up to kKeyTile rows, and 0 beside it up to whole vectors. Rows of 16-bit
  // floats are widened into `wide` before.
  void PackTransposed(const AttentionArray& array, int64_t first, int64_t rows, int64_t columns,
                      T* to, T* wide) const {
    if (IsHalf(array)) {
      Pack(array, first, rows, columns, wide, columns);
      loops_.transpose(wide, columns, rows, columns, to, kKeyTile);
    } else if (array.column == 1) {
      loops_.transpose(At(array, member_) + first * array.row, array.row, rows, columns, to,
                       kKeyTile);
    } else {
      const T* from = At(array, member_) + first * array.row;
      for (int64_t j = 0; j < columns; ++j) {
        for (int64_t i = 0; i < rows; ++i)
          to[j * kKeyTile + i] = from[i * array.row + j * array.column];
      }
    }
    const int64_t whole = RoundUp(rows, cut_.lanes);
    for (int64_t j = 0; j < columns && rows < whole; ++j)
      std::fill(to + j * kKeyTile + rows, to + j * kKeyTile + whole, T{0});
  }

  // Scores of one row for keys [first, first + count), after all steps.
  void StepRow(int64_t member, int64_t row, int64_t first, int64_t count, T* scores) const {
    for (const AttentionStep& step : spec_.steps) {
      const T number = static_cast<T>(step.number);
      switch (step.kind) {
        case AttentionStep::Kind::kScale:
          for (int64_t j = 0; j < count; ++j) scores[j] *= number;
          break;
        case AttentionStep::Kind::kAdd:
          Add(step.array, row, first, count, scores);
          break;
        case AttentionStep::Kind::kHide:
          Hide(step, member, row, first, count, number, scores);
          break;
        case AttentionStep::Kind::kCausal:
          HideBehind(step, row, first, count, number, scores);
          break;
      }
    }
  }
  // The slopes of the product, from those of the scores after all steps.
  void StepSlopesRow(int64_t member, int64_t row, int64_t first, int64_t count, T* slopes) const {
    for (auto step = spec_.steps.rbegin(); step != spec_.steps.rend(); ++step) {
      if (step->kind == AttentionStep::Kind::kScale) {
        for (int64_t j = 0; j < count; ++j) slopes[j] *= static_cast<T>(step->number);
      } else if (step->kind == AttentionStep::Kind::kHide) {
        Hide(*step, member, row, first, count, 0, slopes);
      } else if (step->kind == AttentionStep::Kind::kCausal) {
        HideBehind(*step, row, first, count, 0, slopes);
      }
    }
  }

  bool EndsCausally() const {
    return !spec_.steps.empty() && spec_.steps.back().kind == AttentionStep::Kind::kCausal;
  }
  // Whether the last step hides all of these keys from all of these rows.
  bool HidesAll(int64_t row, int64_t rows, int64_t first) const {
    return EndsCausally() && first > row + rows - 1 + spec_.steps.back().shift;
  }
  // Whether a hidden key's weight is 0 for a row with such a score.
  bool Vanishes(T largest) const {
    const double hidden = spec_.steps.back().number;
    return hidden == kNone || static_cast<double>(largest) - hidden > kVanishes;
  }

  const AttentionSpec& spec_;
  const AttentionCut<T>& cut_;
  const RunBuffers& run_;
  const TileLoops<T>& loops_;
  const int64_t member_;  // of the batch, of which this part has some rows
  const int64_t first_row_, rows_;

 private:
  void Add(const AttentionArray& array, int64_t row, int64_t first, int64_t count,
           T* scores) const {
    if (!IsHalf(array)) {
      return loops_.add(scores, At(array, member_) + row * array.row + first * array.column,
                        array.column, count);
    }
    T wide[kDirectKeys];
    ReadRow(array, row, first, count, wide);
    loops_.add(scores, wide, 1, count);
  }
  void Hide(const AttentionStep& step, int64_t member, int64_t row, int64_t first, int64_t count,
            T number, T* x) const {
    const uint8_t* mask = run_.at<const uint8_t>(step.array.buffer) +
                          step.array.offsets[static_cast<std::size_t>(member)] +
                          row * step.array.row + first * step.array.column;
    loops_.hide(x, mask, step.array.column, count, step.shown, number);
  }
  static void HideBehind(const AttentionStep& step, int64_t row, int64_t first, int64_t count,
                         T number, T* x) {
    const int64_t seen = std::clamp<int64_t>(row + step.shift + 1 - first, 0, count);
    std::fill(x + seen, x + count, number);
  }
};

}  // namespace lazuli::cpu
