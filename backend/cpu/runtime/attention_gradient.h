// The gradient of a part of attention (attention.h): of some rows at a time, whose weights are made
// again for all keys.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "backend/cpu/runtime/attention_part.h"

namespace lazuli::cpu {

template <class T>
class AttentionGradient : Attention<T> {
  using Base = Attention<T>;
  using Base::cut_, Base::loops_, Base::spec_, Base::At;
  using Base::member_, Base::first_row_, Base::rows_;

 public:
  AttentionGradient(const AttentionSpec& spec, const AttentionCut<T>& cut, const RunBuffers& run,
                    Part part)
      : Base(spec, cut, run, part),
        keys_(cut.key_blocks * kKeyTile),
        sums_(Sums(cut.row_parts > 1 ? part.index : part.worker)),
        s_(spec, cut, this->WorkerScratch(part.worker)) {}

  void Run() {
    std::fill_n(sums_, cut_.sums, T{0});
    PackKeys();
    for (int64_t row = 0; row < rows_; row += cut_.tile_rows)
      RunRows(first_row_ + row, std::min(cut_.tile_rows, rows_ - row));
    if (cut_.row_parts == 1) Write(sums_);
  }
  // Adds up the sums of the member's parts, in order.
  void AddParts() {
    T* const all = Sums(member_ * cut_.row_parts);
    for (int64_t part = 1; part < cut_.row_parts; ++part) {
      const T* more = all + part * cut_.sums;
      for (int64_t i = 0; i < cut_.sums; ++i) all[i] += more[i];
    }
    Write(all);
  }

 private:
  // The inverse of Pack, times the factor, if somebody wants the array.
  void Unpack(T* from, int64_t from_row, int64_t rows, int64_t columns, T factor,
              const AttentionArray& array, int64_t first_row) const {
    if (array.buffer < 0) return;
    for (int64_t i = 0; i < rows; ++i) {
      T* const row = from + i * from_row;
      for (int64_t j = 0; j < columns; ++j) row[j] *= factor;
      Base::WriteRow(row, columns, array, first_row + i);
    }
  }
  T* Sums(int64_t place) const { return this->WorkerScratch(cut_.workers) + place * cut_.sums; }
  void Write(T* sums) const {
    Unpack(sums, cut_.depth, spec_.keys, spec_.depth, static_cast<T>(1 / spec_.key_scale),
           spec_.dkey, 0);
    Unpack(sums + spec_.keys * cut_.depth, cut_.width, spec_.keys, spec_.width, 1, spec_.dvalue, 0);
  }

  void PackKeys() {
    for (int64_t first = 0; first < spec_.keys; first += kKeyTile) {
      const int64_t count = std::min(kKeyTile, spec_.keys - first);
      Base::PackTransposed(spec_.key, first, count, spec_.depth,
                           s_.keys_transposed + first * spec_.depth, s_.wide);
      Base::PackTransposed(spec_.value, first, count, spec_.width,
                           s_.values_transposed + first * spec_.width, s_.wide);
    }
    packs_keys_ = spec_.key.column != 1 || cut_.depth != spec_.depth || Base::IsHalf(spec_.key);
    if (packs_keys_) Base::Pack(spec_.key, 0, spec_.keys, spec_.depth, s_.keys, cut_.depth);
    finite_ = Base::EndsCausally() && Base::RowsAreFinite(spec_.key, 0, spec_.keys, spec_.depth) &&
              Base::RowsAreFinite(spec_.value, 0, spec_.keys, spec_.width);
  }

  void RunRows(int64_t row, int64_t rows) {
    Base::Pack(spec_.query, row, rows, spec_.depth, s_.query, cut_.depth);
    loops_.scale(s_.query, rows * cut_.depth, static_cast<T>(spec_.query_scale * spec_.key_scale));
    Base::Pack(spec_.dresult, row, rows, spec_.width, s_.dresult, cut_.width);
    const int64_t end = EndOfKeys(row, rows);
    for (int64_t first = 0; first < end; first += kKeyTile) {
      const int64_t columns = RoundUp(std::min(kKeyTile, end - first), cut_.lanes);
      MultiplyRows(s_.query, cut_.depth, rows, s_.keys_transposed + first * spec_.depth,
                   spec_.depth, columns, s_.weights + first * rows);
      MultiplyRows(s_.dresult, cut_.width, rows, s_.values_transposed + first * spec_.width,
                   spec_.width, columns, s_.slopes + first * rows);
    }
    for (int64_t i = 0; i < rows; ++i) RunRow(row, i, rows, end);
    AddProducts(rows, end);
    Unpack(s_.dquery, cut_.depth, rows, spec_.depth, static_cast<T>(spec_.key_scale), spec_.dquery,
           row);
  }

  // The keys from which on all are hidden from these rows, without a trace.
  int64_t EndOfKeys(int64_t row, int64_t rows) const {
    if (!finite_ || !loops_.finite(s_.query, rows * cut_.depth) ||
        !loops_.finite(s_.dresult, rows * cut_.width))
      return spec_.keys;
    int64_t first = 0;
    while (first < spec_.keys && !Base::HidesAll(row, rows, first)) first += kKeyTile;
    if (first >= spec_.keys) return spec_.keys;
    for (int64_t i = row; i < row + rows; ++i) {
      const T largest = Largest(i), sum = Divisor(i);
      if (!Base::Vanishes(largest) || !std::isfinite(largest) || !std::isfinite(sum))
        return spec_.keys;
    }
    return first;
  }
  T Largest(int64_t row) const { return At(spec_.largest, member_)[row * spec_.largest.row]; }
  T Divisor(int64_t row) const { return At(spec_.divisor, member_)[row * spec_.divisor.row]; }

  void MultiplyRows(const T* a, int64_t a_row, int64_t rows, const T* b, int64_t k, int64_t columns,
                    T* c) const {
    loops_.multiply({.a = a,
                     .a_row = a_row,
                     .a_column = 1,
                     .b = b,
                     .b_row = kKeyTile,
                     .c = c,
                     .c_row = kKeyTile,
                     .rows = rows,
                     .k = k,
                     .columns = columns,
                     .adds = false});
  }

  // Scores become weights, and slopes of weights those of scores.
  void RunRow(int64_t first_row, int64_t i, int64_t rows, int64_t end) {
    const int64_t row = first_row + i;
    const T largest = Largest(row), factor = 1 / Divisor(row);
    T mean = 0;
    ForTiles(end, [&](int64_t first, int64_t count, int64_t whole) {
      T* const weights = s_.weights + first * rows + i * kKeyTile;
      T* const slopes = s_.slopes + first * rows + i * kKeyTile;
      Base::StepRow(member_, row, first, count, weights);
      std::fill(weights + count, weights + whole, Base::kNone);
      mean += loops_.weights(weights, slopes, whole, largest, factor);
    });
    ForTiles(end, [&](int64_t first, int64_t count, int64_t whole) {
      T* const slopes = s_.slopes + first * rows + i * kKeyTile;
      loops_.slopes(s_.weights + first * rows + i * kKeyTile, slopes, whole, mean);
      Base::StepSlopesRow(member_, row, first, count, slopes);
    });
  }
  template <class Body>
  void ForTiles(int64_t end, Body&& body) const {
    for (int64_t first = 0; first < end; first += kKeyTile) {
      const int64_t count = std::min(kKeyTile, end - first);
      body(first, count, RoundUp(count, cut_.lanes));
    }
  }

  void AddProducts(int64_t rows, int64_t end) const {
    T* const dkey = sums_;
    T* const dvalue = sums_ + spec_.keys * cut_.depth;
    std::fill_n(s_.dquery, rows * cut_.depth, T{0});
    ForTiles(end, [&](int64_t first, int64_t count, int64_t) {
      TileProduct<T> product{.a = s_.weights + first * rows,
                             .a_row = 1,
                             .a_column = kKeyTile,
                             .b = s_.dresult,
                             .b_row = cut_.width,
                             .c = dvalue + first * cut_.width,
                             .c_row = cut_.width,
                             .rows = count,
                             .k = rows,
                             .columns = cut_.width,
                             .adds = true};
      loops_.multiply(product);
      product.a = s_.slopes + first * rows;
      product.b = s_.query;
      product.c = dkey + first * cut_.depth;
      product.b_row = product.c_row = product.columns = cut_.depth;
      loops_.multiply(product);
      product.a_row = kKeyTile;
      product.a_column = 1;
      product.b = packs_keys_ ? s_.keys + first * cut_.depth
                              : At(spec_.key, member_) + first * spec_.key.row;
      product.b_row = packs_keys_ ? cut_.depth : spec_.key.row;
      product.c = s_.dquery;
      product.rows = rows;
      product.k = count;
      loops_.multiply(product);
    });
  }

  const int64_t keys_;  // rounded up to whole blocks
  T* const sums_;       // dkey and dvalue of this part
  const GradientScratch<T> s_;
  bool packs_keys_ = false, finite_ = false;
};

}  // namespace lazuli::cpu
