#include "tools/npu/array_model.h"

#include <algorithm>
#include <utility>

#include "ir/support/check.h"

namespace lazuli::npu {
namespace {

int64_t OrZero(const Matrix& m, int64_t r, int64_t c) {
  return r < m.rows && c < m.cols ? m(r, c) : 0;
}

}  // namespace

ArrayModel::ArrayModel(Dataflow dataflow, int64_t rows, int64_t cols, Matrix a, Matrix b)
    : dataflow_(dataflow),
      rows_(rows),
      cols_(cols),
      a_(std::move(a)),
      b_(std::move(b)),
      pes_(static_cast<std::size_t>(rows * cols)) {
  const int64_t m = a_.rows, k = a_.cols, n = b_.cols;
  LAZULI_CHECK(b_.rows == k);
  const bool os = dataflow_ == Dataflow::kOs, is = dataflow_ == Dataflow::kIs;
  LAZULI_CHECK((os ? m : k) <= rows_ && (is ? m : n) <= cols_);
  length_ = os ? k : is ? n : m;
  left_.assign(static_cast<std::size_t>(cols_), os ? rows_ : length_);
  result_ = {m, n, std::vector<int64_t>(static_cast<std::size_t>(m * n))};
  phase_ = os ? Phase::kStream : Phase::kLoad;
}

int64_t ArrayModel::Still(int64_t r, int64_t c) const {
  return dataflow_ == Dataflow::kWs ? OrZero(b_, r, c) : OrZero(a_, c, r);
}

ArrayModel::Register ArrayModel::FromLeft(int64_t r) const {
  const int64_t tag = entered_ - r;  // each row one clock behind the row above
  if (tag < 0 || tag >= length_) return {};
  switch (dataflow_) {
    case Dataflow::kWs:
      return {OrZero(a_, tag, r), tag};
    case Dataflow::kIs:
      return {OrZero(b_, r, tag), tag};
    case Dataflow::kOs:
      return {OrZero(a_, r, tag), tag};
  }
  return {};
}

ArrayModel::Register ArrayModel::FromAbove(int64_t c) const {
  const int64_t tag = entered_ - c;
  if (tag < 0 || tag >= length_) return {};
  return {OrZero(b_, tag, c), tag};
}

void ArrayModel::Step() {
  if (done()) return;
  ++clock_;
  if (phase_ == Phase::kLoad) {
    Load();
  } else {
    if (dataflow_ == Dataflow::kOs) {
      StreamOs();
    } else {
      Stream();
    }
    ++entered_;
    if (std::ranges::all_of(left_, [](int64_t owed) { return owed == 0; })) phase_ = Phase::kDone;
  }
}

// The last row enters first, and all rows move down.
void ArrayModel::Load() {
  for (int64_t r = rows_ - 1; r >= 0; --r) {
    for (int64_t c = 0; c < cols_; ++c)
      At(r, c).still =
          r > 0 ? At(r - 1, c).still : Register{Still(rows_ - clock_, c), rows_ - clock_};
  }
  if (At(rows_ - 1, 0).still.tag == rows_ - 1) phase_ = Phase::kStream;
}

// From the last PE to the first, so that each reads what its neighbours held before this clock.
void ArrayModel::Stream() {
  for (int64_t r = rows_ - 1; r >= 0; --r) {
    for (int64_t c = cols_ - 1; c >= 0; --c) {
      Pe& pe = At(r, c);
      pe.right = c > 0 ? At(r, c - 1).right : FromLeft(r);
      const Register above = r > 0 ? At(r - 1, c).down : Register{};
      pe.down = {};
      if (pe.right.tag < 0) continue;
      pe.down = {above.value + pe.right.value * pe.still.value, pe.right.tag};
      last_product_ = clock_;
    }
  }
  for (int64_t c = 0; c < cols_; ++c) Leave(c, pe(rows_ - 1, c).down);
}

void ArrayModel::StreamOs() {
  for (int64_t c = cols_ - 1; c >= 0; --c) {
    // A column whose last PE has all its products shifts its sums down, one a clock.
    const bool leaving = pe(rows_ - 1, c).products == length_;
    if (leaving) {
      Leave(c, pe(rows_ - 1, c).still);
      for (int64_t r = rows_ - 1; r >= 0; --r)
        At(r, c).still = r > 0 ? At(r - 1, c).still : Register{};
    }
    for (int64_t r = rows_ - 1; r >= 0; --r) {
      Pe& pe = At(r, c);
      pe.right = c > 0 ? At(r, c - 1).right : FromLeft(r);
      pe.down = r > 0 ? At(r - 1, c).down : FromAbove(c);
      if (pe.right.tag < 0 || leaving) continue;
      LAZULI_CHECK(pe.right.tag == pe.down.tag);  // they meet
      pe.still = {pe.still.value + pe.right.value * pe.down.value, r};
      ++pe.products;
      last_product_ = clock_;
    }
  }
}

void ArrayModel::Leave(int64_t c, Register sum) {
  if (sum.tag < 0) return;
  --left_[static_cast<std::size_t>(c)];
  const int64_t row = dataflow_ == Dataflow::kIs ? c : sum.tag;
  const int64_t column = dataflow_ == Dataflow::kIs ? sum.tag : c;
  if (row < result_.rows && column < result_.cols) result_(row, column) = sum.value;
}

}  // namespace lazuli::npu
