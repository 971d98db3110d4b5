// The forward pass of a part of attention (attention.h): by blocks of keys, for tiles of queries,
// or for few queries that read keys and values where they lie.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "backend/cpu/runtime/attention_part.h"
#include "backend/cpu/runtime/bf16_tiles.h"
#include "backend/cpu/runtime/few_rows_kernels.h"
#include "ir/types/half.h"

namespace lazuli::cpu {

template <class T>
class AttentionForward : Attention<T> {
  using Base = Attention<T>;
  using Base::cut_, Base::loops_, Base::spec_, Base::At, Base::kNone, Base::kNothing;
  using Base::member_, Base::first_row_, Base::rows_;

 public:
  AttentionForward(const AttentionSpec& spec, const AttentionCut<T>& cut, const RunBuffers& run,
                   Part part)
      : Base(spec, cut, run, part), s_(spec, cut, this->WorkerScratch(part.worker)) {}

  void Run() {
    std::fill_n(s_.sums, rows_ * cut_.width, T{0});
    std::fill_n(s_.largest, rows_, kNone);
    std::fill_n(s_.totals, rows_, T{0});
    if (cut_.fits_tiles && HasBf16Tiles()) {
      RunBf16Tiles();
    } else {
      Base::Pack(spec_.query, first_row_, rows_, spec_.depth, s_.query, cut_.depth);
      loops_.scale(s_.query, rows_ * cut_.depth, factor_);
      cut_.direct ? RunDirect() : RunTiles();
    }
    for (int64_t i = 0; i < rows_; ++i) Finish(i);
  }

 private:
  void RunTiles() {
    const bool packs_values =
        spec_.value.column != 1 || cut_.width != spec_.width || Base::IsHalf(spec_.value);
    for (int64_t first = 0; first < spec_.keys; first += kKeyTile) {
      const int64_t count = std::min(kKeyTile, spec_.keys - first);
      bool is_packed = false;
      for (int64_t row = 0; row < rows_; row += kQueryTile) {
        const int64_t rows = std::min(kQueryTile, rows_ - row);
        if (Skips(row, rows, first, count)) continue;
        if (!is_packed) {
          Base::PackTransposed(spec_.key, first, count, spec_.depth, s_.keys, s_.wide);
          if (packs_values)
            Base::Pack(spec_.value, first, count, spec_.width, s_.values, cut_.width);
          is_packed = true;
        }
        loops_.multiply({.a = s_.query + row * cut_.depth,
                         .a_row = cut_.depth,
                         .a_column = 1,
                         .b = s_.keys,
                         .b_row = kKeyTile,
                         .c = s_.tile,
                         .c_row = kKeyTile,
                         .rows = rows,
                         .k = spec_.depth,
                         .columns = RoundUp(count, cut_.lanes),
                         .adds = false});
        for (int64_t i = 0; i < rows; ++i) Weigh(row + i, first, count, s_.tile + i * kKeyTile);
        loops_.multiply(
            {.a = s_.tile,
             .a_row = kKeyTile,
             .a_column = 1,
             .b = packs_values ? s_.values : At(spec_.value, member_) + first * spec_.value.row,
             .b_row = packs_values ? cut_.width : spec_.value.row,
             .c = s_.sums + row * cut_.width,
             .c_row = cut_.width,
             .rows = rows,
             .k = count,
             .columns = cut_.width,
             .adds = true});
      }
    }
  }

  void RunBf16Tiles() {
    const ScopedBf16Tiles tiles;
    uint16_t* const query = reinterpret_cast<uint16_t*>(s_.query);
    for (int64_t i = 0; i < rows_; ++i) {
      const uint16_t* from = HalfRow(spec_.query, first_row_ + i);
      for (int64_t j = 0; j < spec_.depth; ++j)
        query[i * spec_.depth + j] = from[j * spec_.query.column];
    }
    for (int64_t first = 0; first < spec_.keys; first += kKeyTile) {
      const int64_t count = std::min(kKeyTile, spec_.keys - first);
      bool is_packed = false;
      for (int64_t row = 0; row < rows_; row += kQueryTile) {
        const int64_t rows = std::min(kQueryTile, rows_ - row);
        if (Skips(row, rows, first, count)) continue;
        if (!std::exchange(is_packed, true)) PackPairs(first, count);
        MultiplyTile(query + row * spec_.depth, row, rows, first, count);
      }
    }
  }
  void MultiplyTile(const uint16_t* query, int64_t row, int64_t rows, int64_t first,
                    int64_t count) {
    const int64_t columns = RoundUp(count, kBf16TileTerms), all_rows = RoundUp(rows, kBf16TileRows);
    uint16_t* const weights = reinterpret_cast<uint16_t*>(s_.narrow);
    float* const tile = reinterpret_cast<float*>(s_.tile);
    MultiplyBf16Tiles({.a = query,
                       .a_row = spec_.depth,
                       .a_rows = kBf16TileRows * spec_.depth,
                       .a_terms = kBf16TileTerms,
                       .b = reinterpret_cast<const uint32_t*>(s_.keys),
                       .b_row = kKeyTile,
                       .c = tile,
                       .c_row = kKeyTile,
                       .rows = all_rows,
                       .terms = spec_.depth,
                       .columns = columns,
                       .adds = false});
    for (int64_t i = 0; i < rows; ++i) {
      T* const scores = s_.tile + i * kKeyTile;
      loops_.scale(scores, columns, factor_);
      Weigh(row + i, first, count, scores);
      std::fill(scores + RoundUp(count, cut_.lanes), scores + columns, T{0});
      HalfLoopsHere(DType::kBF16).narrow(tile + i * kKeyTile, columns, weights + i * kKeyTile);
    }
    MultiplyBf16Tiles({.a = weights,
                       .a_row = kKeyTile,
                       .a_rows = kBf16TileRows * kKeyTile,
                       .a_terms = kBf16TileTerms,
                       .b = reinterpret_cast<const uint32_t*>(s_.values),
                       .b_row = spec_.width,
                       .c = reinterpret_cast<float*>(s_.sums) + row * cut_.width,
                       .c_row = cut_.width,
                       .rows = all_rows,
                       .terms = columns,
                       .columns = spec_.width,
                       .adds = true});
  }
  const uint16_t* HalfRow(const AttentionArray& array, int64_t row) const {
    return Base::template At<uint16_t>(array, member_) + row * array.row;
  }
  // A block of keys, transposed, and of values, two terms in an element. Behind them is 0.
  void PackPairs(int64_t first, int64_t count) const {
    const int64_t columns = RoundUp(count, kBf16TileTerms), pairs = spec_.depth / 2;
    const uint16_t* keys = HalfRow(spec_.key, first);
    int64_t key_row = spec_.key.row;
    if (key_row % 2 != 0 || reinterpret_cast<std::uintptr_t>(keys) % sizeof(float) != 0) {
      uint16_t* const copy = reinterpret_cast<uint16_t*>(s_.wide);
      for (int64_t i = 0; i < count; ++i)
        std::copy_n(keys + i * key_row, spec_.depth, copy + i * spec_.depth);
      keys = copy;
      key_row = spec_.depth;
    }
    // As f32, whose bits nobody reads as a number.
    loops_.transpose(reinterpret_cast<const T*>(keys), key_row / 2, count, pairs, s_.keys,
                     kKeyTile);
    for (int64_t j = 0; j < pairs; ++j)
      std::fill(s_.keys + j * kKeyTile + count, s_.keys + j * kKeyTile + columns, T{0});
    uint32_t* const values = reinterpret_cast<uint32_t*>(s_.values);
    const HalfLoops& loops = HalfLoopsHere(DType::kBF16);
    for (int64_t j = 0; j + 2 <= count; j += 2) {
      loops.pair(HalfRow(spec_.value, first + j), HalfRow(spec_.value, first + j + 1), spec_.width,
                 values + j / 2 * spec_.width);
    }
    uint32_t* end = values + count / 2 * spec_.width;
    if (count % 2 == 1)
      end = std::copy_n(HalfRow(spec_.value, first + count - 1), spec_.width, end);
    std::fill(end, values + columns / 2 * spec_.width, 0);
  }

  // What few rows see is read once, where it lies.
  void RunDirect() {
    for (int64_t first = 0; first < spec_.keys; first += kDirectKeys) {
      const int64_t count = std::min(kDirectKeys, spec_.keys - first);
      WithElements(spec_.key, [&]<class B>(const B* key) { ScoreDirectly(key, first, count); });
      for (int64_t i = 0; i < rows_; ++i) Weigh(i, first, count, s_.tile + i * kDirectKeys);
      WithElements(spec_.value, [&]<class B>(const B* value) {
        AddScaledRows(FewRows<T, B>{.a = s_.tile,
                                    .a_row = kDirectKeys,
                                    .a_column = 1,
                                    .b = value + first * spec_.value.row,
                                    .b_row = spec_.value.row,
                                    .b_column = 1,
                                    .c = s_.added,
                                    .c_row = cut_.width,
                                    .c_column = 1,
                                    .rows = rows_,
                                    .k = count,
                                    .begin = 0,
                                    .end = spec_.width},
                      s_.lanes);
      });
      for (int64_t i = 0; i < rows_; ++i)
        loops_.add(s_.sums + i * cut_.width, s_.added + i * cut_.width, 1, spec_.width);
    }
  }
  // The first element of the member's matrix, of the type that it has in memory.
  template <class F>
  void WithElements(const AttentionArray& array, F&& f) const {
    if constexpr (sizeof(T) == 4) {
      if (array.dtype == DType::kBF16) return f(Base::template At<ir::bfloat16>(array, member_));
      if (array.dtype == DType::kF16) return f(Base::template At<ir::half>(array, member_));
    }
    f(At(array, member_));
  }
  template <class B>
  void ScoreDirectly(const B* key, int64_t first, int64_t count) const {
    const FewRows<T, B> scores{.a = s_.query,
                               .a_row = cut_.depth,
                               .a_column = 1,
                               .b = key + first * spec_.key.row,
                               .b_row = spec_.key.column,
                               .b_column = spec_.key.row,
                               .c = s_.tile,
                               .c_row = kDirectKeys,
                               .c_column = 1,
                               .rows = rows_,
                               .k = spec_.depth,
                               .begin = 0,
                               .end = count};
    spec_.key.column == 1 ? MultiplyDots(scores) : AddScaledRows(scores, s_.lanes);
  }

  bool Skips(int64_t row, int64_t rows, int64_t first, int64_t count) {
    if (!Base::HidesAll(first_row_ + row, rows, first)) return false;
    for (int64_t i = row; i < row + rows; ++i)
      if (!Base::Vanishes(s_.largest[i])) return false;
    return IsFinite(first, count);
  }
  bool IsFinite(int64_t first, int64_t count) {
    if (std::exchange(checked_, first) != first)
      finite_ = Base::RowsAreFinite(spec_.value, first, count, spec_.width);
    return finite_;
  }

  // Scores become exponentials; what there was of the row is scaled to the same shift.
  void Weigh(int64_t row, int64_t first, int64_t count, T* scores) {
    Base::StepRow(member_, first_row_ + row, first, count, scores);
    const int64_t whole = RoundUp(count, cut_.lanes);
    std::fill(scores + count, scores + whole, kNone);
    const T before = s_.largest[row], most = std::max(before, loops_.largest(scores, whole));
    if (before != kNone && most > before) {
      const T factor = std::exp(before - most);
      loops_.scale(s_.sums + row * cut_.width, cut_.width, factor);
      s_.totals[row] *= factor;
    }
    s_.largest[row] = most;
    s_.totals[row] += loops_.exponentials(scores, whole, most == kNone ? 0 : most);
  }

  void Finish(int64_t row) {
    const bool none = s_.largest[row] == kNone && s_.totals[row] == 0;
    T largest = s_.largest[row], divisor = s_.totals[row];
    if (none) {
      largest = spec_.safe ? 0 : kNone;
      divisor = spec_.safe ? 1 : kNothing;
    } else if (std::isnan(divisor)) {
      largest = kNothing;
    }
    const int64_t at = first_row_ + row;
    if (spec_.largest.buffer >= 0) At(spec_.largest, member_)[at * spec_.largest.row] = largest;
    if (spec_.divisor.buffer >= 0) At(spec_.divisor, member_)[at * spec_.divisor.row] = divisor;
    T* const sums = s_.sums + row * cut_.width;
    for (int64_t j = 0; j < spec_.width; ++j) sums[j] /= divisor;
    Base::WriteRow(sums, spec_.width, spec_.result, at);
  }

  const ForwardScratch<T> s_;
  const T factor_ = static_cast<T>(spec_.query_scale * spec_.key_scale);  // of scores
  int64_t checked_ = -1;  // the block of values that is known to be finite, or not
  bool finite_ = false;
};

}  // namespace lazuli::cpu
