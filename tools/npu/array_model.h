// The array at the level of its registers: R x C multipliers that pass values to their neighbours.
//
// It knows no formula: each clock, every register takes what its neighbour held, and a fold is over
// when its last result has come out. So it is the independent check of FoldCycles() (cost.h), and
// what the pictures of docs/npu.md are drawn from. Every element is passed and multiplied one at a
// time: for small arrays.
//
//   ws: weights shift in from above, row by row, and stay. Inputs enter from the left, row r r
//       clocks after row 0, and move right; sums move down and leave below.
//   is: the same with the parts exchanged: inputs (k x m) stay, weights enter from the left.
//   os: inputs enter from the left, weights from above, both skewed; sums stay until their T
//       products are added, and then leave downwards, column by column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "backend/npu/sim/config.h"

namespace lazuli::npu {

// A dense matrix, row by row.
struct Matrix {
  int64_t rows = 0, cols = 0;
  std::vector<int64_t> values;
  int64_t operator()(int64_t r, int64_t c) const {
    return values[static_cast<std::size_t>(r * cols + c)];
  }
  int64_t& operator()(int64_t r, int64_t c) {
    return values[static_cast<std::size_t>(r * cols + c)];
  }
  bool operator==(const Matrix&) const = default;
};

class ArrayModel {
 public:
  // A value on its way, and which row of its stream it belongs to; -1: the register holds nothing.
  struct Register {
    int64_t value = 0, tag = -1;
  };
  struct Pe {
    Register still;  // ws, is: what was loaded; os: the sum
    Register right;  // came from the left
    Register
        down;  // came from above: a weight on its way in, a sum (ws, is), a weight or a result (os)
    int64_t products = 0;  // os: added to the sum so far
  };
  enum class Phase : uint8_t { kLoad, kStream, kDone };

  // The product of a (m x k) and b (k x n), which fit the array: ws k <= R, n <= C; is k <= R, m <=
  // C; os m <= R, n <= C. What they leave empty works on zeros.
  ArrayModel(Dataflow dataflow, int64_t rows, int64_t cols, Matrix a, Matrix b);

  void Step();  // one clock
  bool done() const { return phase_ == Phase::kDone; }
  Phase phase() const { return phase_; }
  int64_t clock() const { return clock_; }  // clocks so far
  // The clock in which the last product was made; with os, results leave the array after it.
  int64_t last_product() const { return last_product_; }
  const Pe& pe(int64_t r, int64_t c) const { return pes_[static_cast<std::size_t>(r * cols_ + c)]; }
  int64_t rows() const { return rows_; }
  int64_t cols() const { return cols_; }
  const Matrix& result() const { return result_; }  // m x n, complete when done()

 private:
  Pe& At(int64_t r, int64_t c) { return pes_[static_cast<std::size_t>(r * cols_ + c)]; }
  int64_t Still(int64_t r, int64_t c) const;  // what PE (r, c) shall hold
  Register FromLeft(int64_t r) const;         // what enters row r in this clock
  Register FromAbove(int64_t c) const;        // os: what enters column c
  void Load();
  void Stream();
  void StreamOs();
  void Leave(int64_t c, Register sum);

  Dataflow dataflow_;
  int64_t rows_, cols_, length_;  // length: rows of the stream
  Matrix a_, b_, result_;
  std::vector<Pe> pes_;
  std::vector<int64_t> left_;  // results that column c still owes
  Phase phase_;
  int64_t clock_ = 0, entered_ = 0, last_product_ = 0;
};

}  // namespace lazuli::npu
