// Products with few rows or columns against sums in double, in all layouts that a dot can have.
#include "backend/cpu/runtime/few_rows.h"

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ir/types/half.h"
#include "ir/types/shape.h"

namespace lazuli::cpu {
namespace {

// Row major, or with the last two dimensions swapped in memory.
std::array<int64_t, 3> StridesOf(int64_t rows, int64_t columns, bool transposed) {
  return {rows * columns, transposed ? 1 : columns, transposed ? rows : 1};
}

MatmulSpec SpecOf(DType dtype, int64_t batch, int64_t m, int64_t k, int64_t n, bool a_transposed,
                  bool b_transposed) {
  return {.dtype = IsReadNarrow(dtype) ? DType::kF32 : dtype,
          .a_dtype = dtype,
          .b_dtype = dtype,
          .batch = batch,
          .m = m,
          .n = n,
          .k = k,
          .a_strides = StridesOf(m, k, a_transposed),
          .b_strides = StridesOf(k, n, b_transposed),
          .c_strides = StridesOf(m, n, false)};
}

template <class T>
std::vector<T> Numbers(int64_t count, uint32_t seed) {
  std::vector<T> numbers(static_cast<std::size_t>(count));
  for (T& number : numbers) {
    seed = seed * 1664525 + 1013904223;
    number = static_cast<T>(static_cast<double>(static_cast<int32_t>(seed)) / (1u << 31));
  }
  return numbers;
}

template <class T, class A, class B>
std::vector<T> Multiply(const LibraryCall& call, const MatmulSpec& spec, const std::vector<A>& a,
                        const std::vector<B>& b) {
  const T nan = std::numeric_limits<T>::quiet_NaN();
  std::vector<T> c(static_cast<std::size_t>(spec.batch * spec.m * spec.n), nan);
  std::vector<std::byte> scratch(static_cast<std::size_t>(call.scratch_bytes()), std::byte{0xff});
  EXPECT_TRUE(call.Run({reinterpret_cast<const std::byte*>(a.data()),
                        reinterpret_cast<const std::byte*>(b.data()),
                        reinterpret_cast<std::byte*>(c.data()), scratch.data()})
                  .ok());
  return c;
}

template <class T, class B>
void ExpectIsTheProduct(const MatmulSpec& spec) {
  SCOPED_TRACE(testing::Message() << spec.batch << " of " << spec.m << "x" << spec.k << "x"
                                  << spec.n << ", strides " << spec.a_strides[1] << " "
                                  << spec.b_strides[1]);
  const auto call = PlanFewRows(spec, 2);
  ASSERT_NE(call, nullptr);
  const std::vector<B> a = Numbers<B>(spec.batch * spec.m * spec.k, 1),
                       b = Numbers<B>(spec.batch * spec.k * spec.n, 2);
  const std::vector<T> c = Multiply<T>(*call, spec, a, b);
  const double bound = static_cast<double>(spec.k) * std::numeric_limits<T>::epsilon();
  const auto at = [](const auto& x, const std::array<int64_t, 3>& strides, int64_t batch, int64_t i,
                     int64_t j) {
    return static_cast<double>(
        x[static_cast<std::size_t>(batch * strides[0] + i * strides[1] + j * strides[2])]);
  };
  for (int64_t batch = 0; batch < spec.batch; ++batch) {
    for (int64_t i = 0; i < spec.m; ++i) {
      for (int64_t j = 0; j < spec.n; ++j) {
        double sum = 0;
        for (int64_t p = 0; p < spec.k; ++p)
          sum += at(a, spec.a_strides, batch, i, p) * at(b, spec.b_strides, batch, p, j);
        ASSERT_NEAR(at(c, spec.c_strides, batch, i, j), sum, bound) << i << " " << j;
      }
    }
  }
  // Not a bit depends on the number of threads.
  for (const int threads : {1, 5})
    EXPECT_EQ(Multiply<T>(*PlanFewRows(spec, threads), spec, a, b), c);
}

template <class T, class B = T>
void ExpectProducts(DType dtype) {
  for (const auto& [m, k, n] : std::initializer_list<std::array<int64_t, 3>>{{1, 1, 1},
                                                                             {1, 1, 5},
                                                                             {1, 3, 70},
                                                                             {2, 17, 9},
                                                                             {3, 64, 131},
                                                                             {4, 33, 64},
                                                                             {4, 100, 77},
                                                                             {1, 9, 5000},
                                                                             {3, 700, 63},
                                                                             {1, 40000, 3},
                                                                             {2, 20000, 2},
                                                                             {1, 200, 2500}}) {
    for (const bool a_transposed : {false, true}) {
      for (const bool b_transposed : {false, true}) {
        ExpectIsTheProduct<T, B>(SpecOf(dtype, 1, m, k, n, a_transposed, b_transposed));
        ExpectIsTheProduct<T, B>(SpecOf(dtype, 3, m, k, n, a_transposed, b_transposed));
      }
    }
    // Few columns.
    ExpectIsTheProduct<T, B>(SpecOf(dtype, 2, n + 20, k, m, false, false));
    ExpectIsTheProduct<T, B>(SpecOf(dtype, 1, n + 20, k, m, true, true));
  }
}

TEST(FewRowsTest, ProductsOfFloats) { ExpectProducts<float>(DType::kF32); }
TEST(FewRowsTest, ProductsOfNarrowFloats) {
  ExpectProducts<float, ir::bfloat16>(DType::kBF16);
  ExpectProducts<float, ir::half>(DType::kF16);
}
TEST(FewRowsTest, ProductsOfDoubles) { ExpectProducts<double>(DType::kF64); }

// Widening is exact, so the values are those of the widened factors.
template <class B>
void ExpectBitsOfTheWidened(DType dtype, const std::vector<B>& a, const std::vector<B>& b) {
  for (const bool b_transposed : {false, true}) {
    const MatmulSpec narrow = SpecOf(dtype, 2, 3, 700, 500, false, b_transposed);
    MatmulSpec wide = narrow, mixed = narrow;
    wide.a_dtype = wide.b_dtype = mixed.a_dtype = DType::kF32;
    const std::vector<float> wide_a(a.begin(), a.end()), wide_b(b.begin(), b.end());
    const auto expected = Multiply<float>(*PlanFewRows(wide, 2), wide, wide_a, wide_b);
    EXPECT_EQ(Multiply<float>(*PlanFewRows(narrow, 2), narrow, a, b), expected);
    EXPECT_EQ(Multiply<float>(*PlanFewRows(mixed, 2), mixed, wide_a, b), expected);
  }
}

TEST(FewRowsTest, NotABitDependsOnWhoWidens) {
  constexpr int64_t kA = 2 * 3 * 700, kB = 2 * 700 * 500;
  ExpectBitsOfTheWidened(DType::kBF16, Numbers<ir::bfloat16>(kA, 1), Numbers<ir::bfloat16>(kB, 2));
  ExpectBitsOfTheWidened(DType::kF16, Numbers<ir::half>(kA, 1), Numbers<ir::half>(kB, 2));
  const auto bytes = [](auto zero, int64_t count) {
    std::vector<decltype(zero)> x(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<decltype(zero)>(i * 37 + i / 256);
    return x;
  };
  ExpectBitsOfTheWidened(DType::kS8, bytes(int8_t{}, kA), bytes(int8_t{}, kB));
  ExpectBitsOfTheWidened(DType::kU8, bytes(uint8_t{}, kA), bytes(uint8_t{}, kB));
}

TEST(FewRowsTest, EveryF16IsWidened) {
  constexpr int64_t kBatch = 8, kColumns = (1 << 16) / kBatch;
  std::vector<ir::half> all(1 << 16);
  for (std::size_t i = 0; i < all.size(); ++i)
    all[i] = Eigen::numext::bit_cast<ir::half>(static_cast<uint16_t>(i));
  const MatmulSpec spec = SpecOf(DType::kF16, kBatch, 1, 1, kColumns, false, false);
  const std::vector<float> widened = Multiply<float>(
      *PlanFewRows(spec, 1), spec, std::vector<ir::half>(kBatch, ir::half(1.0f)), all);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const float expected = static_cast<float>(all[i]);
    EXPECT_TRUE(widened[i] == expected || (std::isnan(widened[i]) && std::isnan(expected)))
        << widened[i] << " for " << expected;
  }
}

// Rows x columns in memory as columns x rows.
std::vector<float> Transposed(const std::vector<float>& x, int64_t rows, int64_t columns) {
  std::vector<float> y(x.size());
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < columns; ++j)
      y[static_cast<std::size_t>(j * rows + i)] = x[static_cast<std::size_t>(i * columns + j)];
  }
  return y;
}

// A sync decides whether a transposition is an array or a way to read one.
TEST(FewRowsTest, NotABitDependsOnTheLayout) {
  for (const auto& [m, k, n] : std::initializer_list<std::array<int64_t, 3>>{{1, 5, 20},
                                                                             {1, 300, 700},
                                                                             {3, 1000, 70},
                                                                             {4, 143, 1100},
                                                                             {2, 9000, 33},
                                                                             {1, 64, 5000}}) {
    const std::vector<float> a = Numbers<float>(m * k, 1), b = Numbers<float>(k * n, 2),
                             at = Transposed(a, m, k), bt = Transposed(b, k, n);
    std::vector<float> first;
    for (const bool a_transposed : {false, true}) {
      for (const bool b_transposed : {false, true}) {
        const MatmulSpec spec = SpecOf(DType::kF32, 1, m, k, n, a_transposed, b_transposed);
        const std::vector<float> c = Multiply<float>(*PlanFewRows(spec, 2), spec,
                                                     a_transposed ? at : a, b_transposed ? bt : b);
        if (first.empty()) first = c;
        EXPECT_EQ(c, first) << m << " " << k << " " << n;
        // The same product the other way round: columns are rows.
        const MatmulSpec swapped = SpecOf(DType::kF32, 1, n, k, m, !b_transposed, !a_transposed);
        const std::vector<float> ct = Multiply<float>(*PlanFewRows(swapped, 2), swapped,
                                                      b_transposed ? bt : b, a_transposed ? at : a);
        EXPECT_EQ(Transposed(ct, n, m), first) << m << " " << k << " " << n;
      }
    }
  }
}

TEST(FewRowsTest, PartsTogetherAreTheWhole) {
  const MatmulSpec spec = SpecOf(DType::kF32, 1, 4096, 64, 4, false, true);
  const auto call = PlanFewRows(spec, 2);
  EXPECT_EQ(call->parts().count, 4);
  EXPECT_TRUE(call->parts().a);
  const std::vector<float> a = Numbers<float>(4096 * 64, 1), b = Numbers<float>(64 * 4, 2);
  std::vector<float> c(4096 * 4);
  for (const int64_t part : {2, 0, 3, 1}) {
    EXPECT_TRUE(call->RunPart({reinterpret_cast<const std::byte*>(a.data()),
                               reinterpret_cast<const std::byte*>(b.data()),
                               reinterpret_cast<std::byte*>(c.data()), nullptr},
                              {.index = part, .count = 4})
                    .ok());
  }
  EXPECT_EQ(c, Multiply<float>(*call, spec, a, b));
}

TEST(FewRowsTest, InfinitiesAndNaNsArePassedOn) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const bool b_transposed : {false, true}) {
    const MatmulSpec spec = SpecOf(DType::kF32, 1, 1, 40, 3, false, b_transposed);
    std::vector<float> a(40, 1), b(120, 1);
    a[37] = 0;
    b[b_transposed ? 37 : 37 * 3] = inf;         // column 0: 0 times infinity
    b[b_transposed ? 40 + 5 : 5 * 3 + 1] = inf;  // column 1
    const std::vector<float> c = Multiply<float>(*PlanFewRows(spec, 1), spec, a, b);
    EXPECT_TRUE(std::isnan(c[0]));
    EXPECT_EQ(c[1], inf);
    EXPECT_EQ(c[2], 39);
  }
}

TEST(FewRowsTest, WhatOthersComputeFasterIsLeftToThem) {
  EXPECT_EQ(PlanFewRows(SpecOf(DType::kF32, 1, 64, 64, 64, false, false), 2), nullptr);
  EXPECT_EQ(PlanFewRows(SpecOf(DType::kF32, 1, 5, 64, 64, false, true), 2), nullptr);
  EXPECT_NE(PlanFewRows(SpecOf(DType::kF32, 1, 4, 64, 64, false, true), 2), nullptr);
  EXPECT_EQ(PlanFewRows(SpecOf(DType::kC64, 1, 1, 64, 64, false, true), 2), nullptr);
  EXPECT_EQ(PlanFewRows(SpecOf(DType::kS32, 1, 1, 64, 64, false, true), 2), nullptr);
}

}  // namespace
}  // namespace lazuli::cpu
