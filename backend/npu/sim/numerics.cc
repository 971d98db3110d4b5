#include "backend/npu/sim/numerics.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace lazuli::npu {
namespace {

// Rows and columns that are in registers at once: the sums of a row wait for each other, those of
// several rows do not.
constexpr int64_t kRowBlock = 6;

template <int64_t kColumns, int64_t kRows>
[[gnu::always_inline]] inline void SumBlock(const float* a, const float* w, float* acc, int64_t k,
                                            int64_t w_stride, int64_t acc_stride, bool accumulate) {
  float p[kRows][kColumns] = {};
  for (int64_t r = 0; r < k; ++r) {
    for (int64_t i = 0; i < kRows; ++i) {
      const float x = a[i * k + r];
      for (int64_t c = 0; c < kColumns; ++c)
        p[i][c] = __builtin_fmaf(x, w[r * w_stride + c], p[i][c]);
    }
  }
  for (int64_t i = 0; i < kRows; ++i) {
    float* out = acc + i * acc_stride;
    for (int64_t c = 0; c < kColumns; ++c) {
      const float sum = accumulate ? out[c] + p[i][c] : p[i][c];
      out[c] = sum == sum ? sum : kCanonicalNan;
    }
  }
}

template <int64_t kColumns>
[[gnu::always_inline]] inline void SumColumns(const float* a, const float* w, float* acc, int64_t m,
                                              int64_t k, int64_t w_stride, int64_t acc_stride,
                                              bool accumulate) {
  int64_t i = 0;
  for (; i + kRowBlock <= m; i += kRowBlock)
    SumBlock<kColumns, kRowBlock>(a + i * k, w, acc + i * acc_stride, k, w_stride, acc_stride,
                                  accumulate);
  for (; i < m; ++i)
    SumBlock<kColumns, 1>(a + i * k, w, acc + i * acc_stride, k, w_stride, acc_stride, accumulate);
}

template <int64_t kColumns>
[[gnu::always_inline]] inline void SumTile(const float* a, const float* w, float* acc, int64_t m,
                                           int64_t k, int64_t n, int64_t acc_stride,
                                           bool accumulate) {
  int64_t c = 0;
  for (; c + kColumns <= n; c += kColumns)
    SumColumns<kColumns>(a, w + c, acc + c, m, k, n, acc_stride, accumulate);
  for (; c + 4 <= n; c += 4) SumColumns<4>(a, w + c, acc + c, m, k, n, acc_stride, accumulate);
  for (; c < n; ++c) SumColumns<1>(a, w + c, acc + c, m, k, n, acc_stride, accumulate);
}

// Without fma in hardware libm's is slow, and right.
void SumTileAnywhere(const float* a, const float* w, float* acc, int64_t m, int64_t k, int64_t n,
                     int64_t acc_stride, bool accumulate) {
  SumTile<4>(a, w, acc, m, k, n, acc_stride, accumulate);
}
#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] void SumTileAvx2(const float* a, const float* w, float* acc, int64_t m,
                                             int64_t k, int64_t n, int64_t acc_stride,
                                             bool accumulate) {
  SumTile<16>(a, w, acc, m, k, n, acc_stride, accumulate);
}
[[gnu::target("avx512f,avx512vl,fma,prefer-vector-width=512")]] void SumTileAvx512(
    const float* a, const float* w, float* acc, int64_t m, int64_t k, int64_t n, int64_t acc_stride,
    bool accumulate) {
  SumTile<32>(a, w, acc, m, k, n, acc_stride, accumulate);
}
#endif

using SumFunction = void (*)(const float*, const float*, float*, int64_t, int64_t, int64_t, int64_t,
                             bool);
SumFunction ChooseSum() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl")) return SumTileAvx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return SumTileAvx2;
#endif
  return SumTileAnywhere;
}

// Eight columns. Vectors of the compiler: loops over columns were in registers or not, as its
// version and options would have it.
constexpr int64_t kLanes = 8;
using Sums [[gnu::vector_size(4 * kLanes)]] = uint32_t;
using Weights [[gnu::vector_size(2 * kLanes)]] = int16_t;

template <int64_t kVectors, int64_t kRows>
[[gnu::always_inline]] inline void IntegerBlock(const int16_t* a, const int16_t* w, int32_t* acc,
                                                int64_t k, int64_t w_stride, int64_t acc_stride,
                                                bool accumulate) {
  Sums p[kRows][kVectors] = {};
  for (int64_t r = 0; r < k; ++r) {
    for (int64_t v = 0; v < kVectors; ++v) {
      Weights weights;
      std::memcpy(&weights, w + r * w_stride + v * kLanes, sizeof(weights));
      const Sums wide = __builtin_convertvector(weights, Sums);
      for (int64_t i = 0; i < kRows; ++i) p[i][v] += wide * static_cast<uint32_t>(a[i * k + r]);
    }
  }
  for (int64_t i = 0; i < kRows; ++i) {
    for (int64_t v = 0; v < kVectors; ++v) {
      int32_t* const out = acc + i * acc_stride + v * kLanes;
      Sums before = {};
      if (accumulate) std::memcpy(&before, out, sizeof(before));
      const Sums sum = p[i][v] + before;
      std::memcpy(out, &sum, sizeof(sum));
    }
  }
}

inline void IntegerColumn(const int16_t* a, const int16_t* w, int32_t* acc, int64_t m, int64_t k,
                          int64_t w_stride, int64_t acc_stride, bool accumulate) {
  for (int64_t i = 0; i < m; ++i) {
    int32_t& out = acc[i * acc_stride];
    uint32_t sum = accumulate ? static_cast<uint32_t>(out) : 0;
    for (int64_t r = 0; r < k; ++r) sum += static_cast<uint32_t>(a[i * k + r] * w[r * w_stride]);
    out = static_cast<int32_t>(sum);
  }
}

template <int64_t kVectors>
[[gnu::always_inline]] inline void IntegerColumns(const int16_t* a, const int16_t* w, int32_t* acc,
                                                  int64_t m, int64_t k, int64_t w_stride,
                                                  int64_t acc_stride, bool accumulate) {
  constexpr int64_t kRows = 4;
  int64_t i = 0;
  for (; i + kRows <= m; i += kRows)
    IntegerBlock<kVectors, kRows>(a + i * k, w, acc + i * acc_stride, k, w_stride, acc_stride,
                                  accumulate);
  for (; i < m; ++i)
    IntegerBlock<kVectors, 1>(a + i * k, w, acc + i * acc_stride, k, w_stride, acc_stride,
                              accumulate);
}

[[gnu::always_inline]] inline void IntegerTile(const int16_t* a, const int16_t* w, int32_t* acc,
                                               int64_t m, int64_t k, int64_t n, int64_t acc_stride,
                                               bool accumulate) {
  int64_t c = 0;
  for (; c + 2 * kLanes <= n; c += 2 * kLanes)
    IntegerColumns<2>(a, w + c, acc + c, m, k, n, acc_stride, accumulate);
  for (; c + kLanes <= n; c += kLanes)
    IntegerColumns<1>(a, w + c, acc + c, m, k, n, acc_stride, accumulate);
  for (; c < n; ++c) IntegerColumn(a, w + c, acc + c, m, k, n, acc_stride, accumulate);
}
void IntegerTileAnywhere(const int16_t* a, const int16_t* w, int32_t* acc, int64_t m, int64_t k,
                         int64_t n, int64_t acc_stride, bool accumulate) {
  IntegerTile(a, w, acc, m, k, n, acc_stride, accumulate);
}
#if defined(__x86_64__)
[[gnu::target("avx2")]] void IntegerTileAvx2(const int16_t* a, const int16_t* w, int32_t* acc,
                                             int64_t m, int64_t k, int64_t n, int64_t acc_stride,
                                             bool accumulate) {
  IntegerTile(a, w, acc, m, k, n, acc_stride, accumulate);
}
#endif

}  // namespace

void MultiplyTile(const float* a, const float* w, float* acc, int64_t m, int64_t k, int64_t n,
                  int64_t acc_stride, bool accumulate) {
  static const SumFunction sum = ChooseSum();
  sum(a, w, acc, m, k, n, acc_stride, accumulate);
}

void MultiplyTile(const int16_t* a, const int16_t* w, int32_t* acc, int64_t m, int64_t k, int64_t n,
                  int64_t acc_stride, bool accumulate) {
#if defined(__x86_64__)
  static const bool avx2 = __builtin_cpu_supports("avx2") != 0;
  if (avx2) return IntegerTileAvx2(a, w, acc, m, k, n, acc_stride, accumulate);
#endif
  IntegerTileAnywhere(a, w, acc, m, k, n, acc_stride, accumulate);
}

void SplitBf16(const float* values, int64_t count, int parts, float* const* out) {
  for (int64_t i = 0; i < count; ++i) {
    float rest = values[i];
    for (int p = 0; p < parts; ++p) {
      out[p][i] = RoundToBf16(rest);
      // An infinity or a NaN has no rest: it stays whole in the first part.
      rest = std::isfinite(out[p][i]) ? rest - out[p][i] : 0.0f;
    }
  }
}

}  // namespace lazuli::npu
