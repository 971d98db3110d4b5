#include "backend/cpu/runtime/fourier.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "ir/support/check.h"
#include "ir/support/parallel_for.h"

namespace lazuli::cpu {
namespace {

constexpr int64_t kLongestWhole = 128;    // longer rows are matrices
constexpr int64_t kLongestColumn = 4096;  // longer columns are copied to rows
constexpr int64_t kWorth = 8192;          // elements for a thread

// exp(-2 pi i k / n), exact to the last bit or two: computed from an angle of at most an eighth of a
// turn.
std::complex<double> RootOf(int64_t k, int64_t n) {
  k %= n;
  const bool low = 2 * k > n;  // the lower half is the conjugate of the upper one
  if (low) k = n - k;
  const bool left = 4 * k > n;
  double c = 0, s = 0;
  const double turn = 2 * std::numbers::pi / static_cast<double>(n);
  const int64_t from_axis = left ? n - 2 * k : 2 * k;  // in halves
  if (8 * k > n && 8 * k < 3 * n) {                    // nearer to the quarter
    const double angle = turn * static_cast<double>(n - 4 * k) / 4;
    c = std::sin(angle);
    s = std::cos(angle);
  } else {
    const double angle = turn * static_cast<double>(from_axis) / 2;
    c = left ? -std::cos(angle) : std::cos(angle);
    s = std::sin(angle);
  }
  return {c, low ? s : -s};
}

double CostOfRadix(int64_t radix) {
  switch (radix) {
    case 2:
      return 3;
    case 4:
      return 4;
    case 8:
      return 6;
    default:
      return radix <= 7 ? 1.6 * static_cast<double>(radix) : 3.0 * static_cast<double>(radix);
  }
}

int64_t GroupsOf(int64_t lines, int64_t lanes) { return (lines + lanes - 1) / lanes; }

// The least length from n on whose transforms are quick.
int64_t QuickLength(int64_t n) {
  int64_t best = std::numeric_limits<int64_t>::max();
  for (int64_t odd : {1, 3, 5, 9, 15}) {
    int64_t length = odd;
    while (length < n || length % 16 != 0) length *= 2;
    best = std::min(best, length);
  }
  return best;
}

}  // namespace

template <class T>
FourierWork<T>::FourierWork(int64_t count) {
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
  memory_.reset(static_cast<T*>(std::aligned_alloc(64, (bytes + 63) / 64 * 64 + 64)));
  LAZULI_CHECK(memory_ != nullptr, "no memory for a Fourier transform");
}

// --- lanes

template <class T>
std::vector<int64_t> LaneTransform<T>::Radices(int64_t n) {
  std::vector<int64_t> radices;
  int64_t twos = 0;
  for (; n % 2 == 0; n /= 2) ++twos;
  for (; twos > 4 || twos == 3; twos -= 3) radices.push_back(8);
  for (; twos >= 2; twos -= 2) radices.push_back(4);
  if (twos == 1) radices.push_back(2);
  for (int64_t factor = 3; factor <= kMostFourierRadix; factor += 2) {
    for (; n % factor == 0; n /= factor) radices.push_back(factor);
  }
  if (n != 1) radices.clear();
  return radices;
}

template <class T>
LaneTransform<T>::LaneTransform(int64_t n) : n_(n) {
  std::vector<std::size_t> turns, roots;
  int64_t left = n, s = 1;
  const auto put = [&](std::complex<double> root) {
    tables_.push_back(static_cast<T>(root.real()));
    tables_.push_back(static_cast<T>(root.imag()));
  };
  for (int64_t radix : Radices(n)) {
    const int64_t m = left / radix;
    turns.push_back(tables_.size());
    for (int64_t p = 0; p < m; ++p) {
      for (int64_t k = 1; k < radix; ++k) put(RootOf(p * k, left));
    }
    roots.push_back(tables_.size());
    for (int64_t j = 0; j < radix; ++j) tables_.push_back(static_cast<T>(RootOf(j, radix).real()));
    for (int64_t j = 0; j < radix; ++j) tables_.push_back(static_cast<T>(-RootOf(j, radix).imag()));
    passes_.push_back({radix, m, s, nullptr, nullptr});
    left = m;
    s *= radix;
  }
  for (std::size_t i = 0; i < passes_.size(); ++i) {
    passes_[i].turns = tables_.data() + turns[i];
    passes_[i].roots = tables_.data() + roots[i];
  }
}

// --- complex lines

template <class T>
Fourier<T>::Fourier(int64_t n, Along along) : n_(n) {
  if (n > 1 && LaneTransform<T>::Radices(n).empty()) {
    MakeChirp();
  } else if (n > (along == Along::kRows ? kLongestWhole : kLongestColumn)) {
    Split();
  } else {
    whole_ = std::make_unique<LaneTransform<T>>(n);
  }
}

template <class T>
void Fourier<T>::Split() {
  const int64_t lanes = FourierLoopsHere<T>().lanes;
  const auto cost = [&](int64_t n, int64_t lines) {
    double sum = 1;
    for (int64_t radix : LaneTransform<T>::Radices(n))
      sum += CostOfRadix(radix) / static_cast<double>(radix) * 2;
    return sum * static_cast<double>(n * GroupsOf(lines, lanes));
  };
  int64_t best = 0;
  double least = std::numeric_limits<double>::infinity();
  for (int64_t rows = 2; rows < n_; ++rows) {
    if (rows > n_ / rows * 64) break;
    if (n_ % rows != 0) continue;
    const double here = cost(rows, n_ / rows) + cost(n_ / rows, rows);
    // Long columns leave the cache.
    const double penalty = static_cast<double>(std::max(rows, n_ / rows)) > 4096 ? 2 : 1;
    if (here * penalty < least) least = here * penalty, best = rows;
  }
  columns_ = std::make_unique<LaneTransform<T>>(best);
  rows_ = std::make_unique<LaneTransform<T>>(n_ / best);
  const int64_t n2 = n_ / best, groups = GroupsOf(n2, lanes);
  turns_.resize(static_cast<std::size_t>(2 * lanes * best * groups));
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t k = 0; k < best; ++k) {
      T* const to = turns_.data() + 2 * lanes * (g * best + k);
      for (int64_t l = 0; l < lanes; ++l) {
        const std::complex<double> root = RootOf(k * std::min(g * lanes + l, n2 - 1), n_);
        to[l] = static_cast<T>(root.real());
        to[lanes + l] = static_cast<T>(root.imag());
      }
    }
  }
}

template <class T>
void Fourier<T>::MakeChirp() {
  const int64_t length = QuickLength(2 * n_ - 1);
  inner_ = std::make_unique<Fourier>(length, Along::kRows);
  spectrum_.assign(static_cast<std::size_t>(length), 0);
  const double scale = 1 / static_cast<double>(length);
  for (int64_t k = 0; k < n_; ++k) {
    const std::complex<double> root = RootOf(k * k % (2 * n_), 2 * n_);
    chirp_.push_back(Complex(root));
    const Complex back(std::conj(root) * scale);
    spectrum_[static_cast<std::size_t>(k)] = back;
    if (k > 0) spectrum_[static_cast<std::size_t>(length - k)] = back;
  }
  inner_->Rows(spectrum_.data(), length, spectrum_.data(), length, 1, {});
}

template <class T>
int64_t Fourier<T>::RowNumbers() const {
  if (inner_) return 2 * inner_->size() + inner_->RowNumbers();
  if (!columns_) return 0;
  return GroupsOf(columns_->size(), FourierLoopsHere<T>().lanes) * rows_->numbers() +
         2 * std::max(columns_->numbers(), rows_->numbers());
}

template <class T>
void Fourier<T>::WholeRows(const Complex* x, int64_t x_stride, Complex* y, int64_t y_stride,
                           int64_t rows, Direction d, const T* pair_turns) const {
  const FourierLoops<T>& loops = FourierLoopsHere<T>();
  const int64_t lanes = loops.lanes, more = pair_turns != nullptr ? 1 : 0;
  const bool pairs_first = more == 1 && d.inverse, pairs_last = more == 1 && !d.inverse;
  ParallelFor(GroupsOf(rows, lanes), std::max<int64_t>(1, kWorth / (n_ * lanes)),
              [&](int64_t begin, int64_t end) {
                const int64_t numbers = whole_->numbers() + 2 * lanes;
                const FourierWork<T> work(2 * numbers);
                T *const a = work.data(), *const b = a + numbers;
                for (int64_t row = begin * lanes; row < std::min(rows, end * lanes); row += lanes) {
                  const int64_t count = std::min(lanes, rows - row);
                  loops.load_rows(x + row * x_stride, x_stride, n_ + (pairs_first ? 1 : 0), count,
                                  d.inverse && !pairs_first, a);
                  if (pairs_first) loops.pair_lanes(a, pair_turns, n_, /*inverse=*/true);
                  T* const done = whole_->Run(a, b);
                  if (pairs_last) loops.pair_lanes(done, pair_turns, n_, /*inverse=*/false);
                  loops.store_rows(done, n_ + (pairs_last ? 1 : 0), count, d.inverse, d.scale,
                                   y + row * y_stride, y_stride);
                }
              });
}

template <class T>
void Fourier<T>::PairedRows(const Complex* x, Complex* y, int64_t rows, Direction d,
                            const T* turns) const {
  WholeRows(x, d.inverse ? n_ + 1 : n_, y, d.inverse ? n_ : n_ + 1, rows, d, turns);
}

template <class T>
void Fourier<T>::Rows(const Complex* x, int64_t x_stride, Complex* y, int64_t y_stride,
                      int64_t rows, Direction direction) const {
  if (whole_) return WholeRows(x, x_stride, y, y_stride, rows, direction);
  const auto some = [&](int64_t begin, int64_t end) {
    const FourierWork<T> work(RowNumbers());
    for (int64_t row = begin; row < end; ++row)
      Row(x + row * x_stride, y + row * y_stride, direction, work.data());
  };
  if (rows < NumThreads()) return some(0, rows);  // a row has work for several
  ParallelFor(rows, std::max<int64_t>(1, kWorth / n_), some);
}

template <class T>
void Fourier<T>::Row(const Complex* x, Complex* y, Direction direction, T* work) const {
  if (inner_) return ChirpedRow(x, y, direction, work);
  if (columns_) return SplitRow(x, y, direction, work);
  WholeRows(x, n_, y, n_, 1, direction);
}

// Two steps, columns and rows, in groups of lanes; of a long row several threads take groups.
template <class T>
void Fourier<T>::SplitRow(const Complex* x, Complex* y, Direction d, T* work) const {
  const FourierLoops<T>& loops = FourierLoopsHere<T>();
  const int64_t lanes = loops.lanes, n1 = columns_->size(), n2 = rows_->size();
  const int64_t block = rows_->numbers(), groups = GroupsOf(n1, lanes);
  T* const blocks = work;
  const auto columns = [&](int64_t begin, int64_t end, T* a, T* b) {
    for (int64_t g = begin; g < end; ++g) {
      const int64_t count = std::min(lanes, n2 - g * lanes);
      loops.load(x + g * lanes, n2, n1, count, d.inverse, a);
      T* const done = columns_->Run(a, b);
      loops.turn_over(done, turns_.data() + g * columns_->numbers(), n1, count,
                      blocks + 2 * lanes * g * lanes, block);
    }
  };
  const auto rows = [&](int64_t begin, int64_t end, T* b) {
    for (int64_t g = begin; g < end; ++g) {
      const T* const done = rows_->Run(blocks + g * block, b);
      loops.store(done, n2, std::min(lanes, n1 - g * lanes), d.inverse, d.scale, y + g * lanes, n1);
    }
  };
  if (n_ < 2 * kWorth) {
    T* const a = work + groups * block;
    columns(0, GroupsOf(n2, lanes), a, a + columns_->numbers());
    return rows(0, groups, a);
  }
  ParallelFor(GroupsOf(n2, lanes), std::max<int64_t>(1, kWorth / (n1 * lanes)),
              [&](int64_t begin, int64_t end) {
                const FourierWork<T> own(2 * columns_->numbers());
                columns(begin, end, own.data(), own.data() + columns_->numbers());
              });
  ParallelFor(groups, std::max<int64_t>(1, kWorth / (n2 * lanes)), [&](int64_t begin, int64_t end) {
    const FourierWork<T> own(block);
    rows(begin, end, own.data());
  });
}

template <class T>
void Fourier<T>::ChirpedRow(const Complex* x, Complex* y, Direction d, T* work) const {
  const FourierLoops<T>& loops = FourierLoopsHere<T>();
  const int64_t length = inner_->size();
  auto* const padded = reinterpret_cast<Complex*>(work);
  T* const rest = work + 2 * length;
  loops.multiply(x, chirp_.data(), n_, {.first = d.inverse}, 1, padded);
  std::fill(padded + n_, padded + length, Complex(0));
  inner_->Row(padded, padded, {}, rest);
  loops.multiply(padded, spectrum_.data(), length, {}, 1, padded);
  inner_->Row(padded, padded, {.inverse = true}, rest);
  loops.multiply(padded, chirp_.data(), n_, {.result = d.inverse}, d.scale, y);
}

template <class T>
void Fourier<T>::Columns(const Complex* x, Complex* y, int64_t columns, int64_t count,
                         Direction d) const {
  const FourierLoops<T>& loops = FourierLoopsHere<T>();
  const int64_t lanes = loops.lanes, groups = GroupsOf(columns, lanes);
  ParallelFor(count * groups, std::max<int64_t>(1, kWorth / (n_ * lanes)),
              [&](int64_t begin, int64_t end) {
                const int64_t numbers = whole_ ? whole_->numbers() : 2 * n_ + RowNumbers();
                const FourierWork<T> a(numbers), b(whole_ ? numbers : 0);
                for (int64_t i = begin; i < end; ++i) {
                  const int64_t first = i % groups * lanes, some = std::min(lanes, columns - first);
                  const int64_t offset = i / groups * n_ * columns + first;
                  if (whole_) {
                    loops.load(x + offset, columns, n_, some, d.inverse, a.data());
                    const T* const done = whole_->Run(a.data(), b.data());
                    loops.store(done, n_, some, d.inverse, d.scale, y + offset, columns);
                    continue;
                  }
                  auto* const line = reinterpret_cast<Complex*>(a.data());
                  for (int64_t c = 0; c < some; ++c) {
                    for (int64_t j = 0; j < n_; ++j) line[j] = x[offset + c + j * columns];
                    Row(line, line, d, a.data() + 2 * n_);
                    for (int64_t j = 0; j < n_; ++j) y[offset + c + j * columns] = line[j];
                  }
                }
              });
}

// --- real lines

template <class T>
RealFourier<T>::RealFourier(int64_t n)
    : n_(n), paired_(n % 2 == 0), complex_(paired_ ? n / 2 : n, Fourier<T>::Along::kRows) {
  if (!paired_) return;
  std::vector<T> imaginary;
  for (int64_t k = 0; k <= n / 4; ++k) {
    const std::complex<double> root = RootOf(k, n) * std::complex<double>(0, -0.5);
    turns_.push_back(static_cast<T>(root.real()));
    imaginary.push_back(static_cast<T>(root.imag()));
  }
  turns_.insert(turns_.end(), imaginary.begin(), imaginary.end());
}

// A group has rows for all lanes if they are short, and is one row if they are long, which is in the
// cache then between its steps.
template <class T>
template <class F>
void RealFourier<T>::InGroups(int64_t rows, F&& f) const {
  if (rows < NumThreads()) return f(0, rows);
  const int64_t some = n_ <= 2 * kLongestWhole ? FourierLoopsHere<T>().lanes * 4 : 1;
  ParallelFor(GroupsOf(rows, some), std::max<int64_t>(1, kWorth / (n_ * some)),
              [&](int64_t begin, int64_t end) {
                for (int64_t row = begin * some; row < std::min(rows, end * some); row += some)
                  f(row, std::min(some, rows - row));
              });
}

template <class T>
void RealFourier<T>::Forward(const T* x, Complex* y, int64_t rows) const {
  if (paired_ && complex_.is_whole()) {
    return complex_.PairedRows(reinterpret_cast<const Complex*>(x), y, rows, {}, turns_.data());
  }
  InGroups(rows, [&](int64_t row, int64_t count) {
    ForwardSome(x + row * n_, y + row * (n_ / 2 + 1), count);
  });
}

template <class T>
void RealFourier<T>::ForwardSome(const T* x, Complex* y, int64_t rows) const {
  const int64_t half = n_ / 2;
  if (paired_) {
    complex_.Rows(reinterpret_cast<const Complex*>(x), half, y, half + 1, rows, {});
    for (int64_t row = 0; row < rows; ++row) {
      Complex* const to = y + row * (half + 1);
      const Complex first = to[0];
      FourierLoopsHere<T>().pairs(to, turns_.data(), half, /*inverse=*/false, to);
      to[0] = first.real() + first.imag();
      to[half] = first.real() - first.imag();
    }
    return;
  }
  const FourierWork<T> work(2 * rows * n_);
  auto* const lines = reinterpret_cast<Complex*>(work.data());
  for (int64_t i = 0; i < rows * n_; ++i) lines[i] = x[i];
  complex_.Rows(lines, n_, lines, n_, rows, {});
  for (int64_t row = 0; row < rows; ++row)
    std::copy_n(lines + row * n_, half + 1, y + row * (half + 1));
}

template <class T>
void RealFourier<T>::Inverse(const Complex* x, T* y, int64_t rows, T scale) const {
  if (paired_ && complex_.is_whole()) {  // twice, for the pairs are halves
    return complex_.PairedRows(x, reinterpret_cast<Complex*>(y), rows,
                               {.inverse = true, .scale = 2 * scale}, turns_.data());
  }
  InGroups(rows, [&](int64_t row, int64_t count) {
    InverseSome(x + row * (n_ / 2 + 1), y + row * n_, count, scale);
  });
}

template <class T>
void RealFourier<T>::InverseSome(const Complex* x, T* y, int64_t rows, T scale) const {
  const int64_t half = n_ / 2, width = paired_ ? half : n_;
  const FourierWork<T> work(2 * rows * width);
  auto* const lines = reinterpret_cast<Complex*>(work.data());
  for (int64_t row = 0; row < rows; ++row) {
    const Complex* const from = x + row * (half + 1);
    Complex* const to = lines + row * width;
    if (paired_) {
      FourierLoopsHere<T>().pairs(from, turns_.data(), half, /*inverse=*/true, to);
      const T a = from[0].real() / 2, b = from[half].real() / 2;
      to[0] = {a + b, a - b};
    } else {
      to[0] = from[0].real();
      for (int64_t k = 1; k <= half; ++k) to[k] = from[k], to[n_ - k] = std::conj(from[k]);
    }
  }
  if (paired_) {  // twice, for pairs() halves
    return complex_.Rows(lines, half, reinterpret_cast<Complex*>(y), half, rows,
                         {.inverse = true, .scale = 2 * scale});
  }
  complex_.Rows(lines, n_, lines, n_, rows, {.inverse = true, .scale = scale});
  for (int64_t i = 0; i < rows * n_; ++i) y[i] = lines[i].real();
}

template class FourierWork<float>;
template class FourierWork<double>;
template class LaneTransform<float>;
template class LaneTransform<double>;
template class Fourier<float>;
template class Fourier<double>;
template class RealFourier<float>;
template class RealFourier<double>;

}  // namespace lazuli::cpu
