// Fourier transforms of the CPU, of lengths of each kind, beside the sums that define them.
#include "backend/cpu/runtime/fourier.h"

#include <cmath>
#include <complex>
#include <numbers>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace lazuli::cpu {
namespace {

using Wide = std::complex<long double>;

// Lanes, odd radices, matrices of lanes, Bluestein's; with lanes that are not full.
constexpr int64_t kLengths[] = {1,   2,   3,   4,   5,   6,    7,    8,   11,  13,
                                16,  30,  31,  32,  34,  37,   100,  127, 128, 130,
                                155, 256, 257, 500, 961, 1001, 2018, 4096};

template <class T>
std::vector<std::complex<T>> Numbers(int64_t count) {
  std::mt19937_64 bits(static_cast<uint64_t>(count));
  std::normal_distribution<double> normal;
  std::vector<std::complex<T>> numbers;
  for (int64_t i = 0; i < count; ++i)
    numbers.emplace_back(static_cast<T>(normal(bits)), static_cast<T>(normal(bits)));
  return numbers;
}

// Element k of the transform of n elements, `stride` apart.
template <class T>
Wide Element(const std::complex<T>* x, int64_t n, int64_t stride, int64_t k) {
  Wide sum = 0;
  for (int64_t j = 0; j < n; ++j) {
    const long double turn = static_cast<long double>(j * k % n) / static_cast<long double>(n);
    sum += Wide(x[j * stride]) * std::polar(1.0L, -2 * std::numbers::pi_v<long double> * turn);
  }
  return sum;
}

// Of sums of n numbers of size 1.
template <class T>
double Bound(int64_t n) {
  return (sizeof(T) == 4 ? 2e-6 : 4e-15) * std::sqrt(static_cast<double>(n));
}

template <class T>
void CheckRows(int64_t n) {
  constexpr int64_t kRows = 19;  // not whole vectors
  const std::vector<std::complex<T>> x = Numbers<T>(kRows * n);
  std::vector<std::complex<T>> y(x.size()), back(x.size());
  const Fourier<T> fourier(n, Fourier<T>::Along::kRows);
  fourier.Rows(x.data(), n, y.data(), n, kRows, {});
  fourier.Rows(y.data(), n, back.data(), n, kRows,
               {.inverse = true, .scale = 1 / static_cast<T>(n)});
  for (int64_t row : {int64_t{0}, kRows - 1}) {
    for (int64_t k = 0; k < n; k += 1 + n / 7) {
      const Wide sum = Element(x.data() + row * n, n, 1, k);
      EXPECT_LT(std::abs(sum - Wide(y[static_cast<std::size_t>(row * n + k)])), Bound<T>(n));
    }
  }
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_LT(std::abs(back[i] - x[i]), Bound<T>(1) * 4);
  std::vector<std::complex<T>> alone(static_cast<std::size_t>(n));
  fourier.Rows(x.data() + 3 * n, n, alone.data(), n, 1, {});
  for (int64_t k = 0; k < n; ++k)  // a row's values do not depend on the others
    ASSERT_EQ(alone[static_cast<std::size_t>(k)], y[static_cast<std::size_t>(3 * n + k)]);
}

template <class T>
void CheckColumns(int64_t n) {
  constexpr int64_t kColumns = 21, kCount = 2;
  const std::vector<std::complex<T>> x = Numbers<T>(kCount * n * kColumns);
  std::vector<std::complex<T>> y(x);
  const Fourier<T> fourier(n, Fourier<T>::Along::kColumns);
  fourier.Columns(y.data(), y.data(), kColumns, kCount, {});
  for (int64_t column : {int64_t{0}, kColumns - 1}) {
    const int64_t first = n * kColumns + column;
    for (int64_t k = 0; k < n; k += 1 + n / 5) {
      const Wide sum = Element(x.data() + first, n, kColumns, k);
      EXPECT_LT(std::abs(sum - Wide(y[static_cast<std::size_t>(first + k * kColumns)])),
                Bound<T>(n));
    }
  }
}

template <class T>
void CheckReal(int64_t n) {
  constexpr int64_t kRows = 18;
  const int64_t half = n / 2 + 1;
  std::vector<T> x, back(static_cast<std::size_t>(kRows * n));
  std::vector<std::complex<T>> numbers;
  for (const std::complex<T>& number : Numbers<T>(kRows * n)) {
    x.push_back(number.real());
    numbers.emplace_back(number.real());
  }
  std::vector<std::complex<T>> y(static_cast<std::size_t>(kRows * half));
  const RealFourier<T> fourier(n);
  fourier.Forward(x.data(), y.data(), kRows);
  for (int64_t k = 0; k < half; k += 1 + n / 9) {
    const Wide sum = Element(numbers.data() + 17 * n, n, 1, k);
    EXPECT_LT(std::abs(sum - Wide(y[static_cast<std::size_t>(17 * half + k)])), Bound<T>(n));
  }
  for (int64_t row = 0; row < kRows; ++row) {  // parts that do not matter
    y[static_cast<std::size_t>(row * half)].imag(7);
    if (n % 2 == 0) y[static_cast<std::size_t>(row * half + n / 2)].imag(-3);
  }
  fourier.Inverse(y.data(), back.data(), kRows, 1 / static_cast<T>(n));
  for (std::size_t i = 0; i < x.size(); ++i) ASSERT_LT(std::abs(back[i] - x[i]), Bound<T>(1) * 4);
}

template <class T>
void CheckAll() {
  for (int64_t n : kLengths) {
    SCOPED_TRACE(n);
    CheckRows<T>(n);
    CheckColumns<T>(n);
    CheckReal<T>(n);
  }
}

TEST(FourierTest, SumsOfSinglesAreThoseOfTheDefinition) { CheckAll<float>(); }
TEST(FourierTest, SumsOfDoublesAreThoseOfTheDefinition) { CheckAll<double>(); }

TEST(FourierTest, LongColumnsAreCopiedToRows) {
  CheckColumns<float>(8192);
  CheckColumns<double>(5003);
}

}  // namespace
}  // namespace lazuli::cpu
