// This file is compiled with contraction of products and sums to fma, as libraries do it: no recipe says
// how a product of matrices rounds. Loops over vectors are unrolled, so that sums stay in registers.
#include "backend/cpu/runtime/few_rows_kernels.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "backend/cpu/runtime/vectors.h"

namespace lazuli::cpu {
namespace {

template <class V>
constexpr int kLanesOf = sizeof(V) / sizeof(std::declval<V>()[0]);

template <class V, class T>
[[gnu::always_inline]] inline void Load(const T* from, V& v) {
  if constexpr (sizeof(T) == 1) {  // in steps: GCC has instructions for each
    Vector<T, kLanesOf<V>> bytes;
    std::memcpy(&bytes, from, sizeof bytes);
    const auto halves = __builtin_convertvector(bytes, Vector<int16_t, kLanesOf<V>>);
    v = __builtin_convertvector(__builtin_convertvector(halves, Vector<int32_t, kLanesOf<V>>), V);
  } else {
    std::memcpy(&v, from, sizeof v);
  }
}
// The bits of a bf16 are the upper ones of the f32.
template <class V>
[[gnu::always_inline]] inline void Load(const ir::bfloat16* from, V& v) {
  Vector<uint16_t, kLanesOf<V>> narrow;
  std::memcpy(&narrow, from, sizeof narrow);
  v = reinterpret_cast<V>(__builtin_convertvector(narrow, Vector<uint32_t, kLanesOf<V>>) << 16);
}
template <class V>
[[gnu::always_inline]] inline void Load(const ir::half* from, V& v) {
  Vector<uint16_t, kLanesOf<V>> narrow;
  std::memcpy(&narrow, from, sizeof narrow);
#if defined(__x86_64__)
  // GCC 12 would convert each lane by an instruction of its own. Processors with AVX2 convert all lanes
  // by one.
  if constexpr (kLanesOf<V> > 4) {
    asm("vcvtph2ps %1, %0" : "=v"(v) : "vm"(narrow));
    return;
  }
#endif
  // The exponent of an f32 is larger by 112 than that of the same f16. Infinity and NaN have the
  // largest exponent in both. A subnormal f16 has the exponent 0; its f32 is made with the exponent 1,
  // which adds 2^-14, and 2^-14 is subtracted.
  using Bits = Vector<uint32_t, kLanesOf<V>>;
  constexpr uint32_t kExponent = 0x0f800000, kBias = 112u << 23, kUnit = 1u << 23;
  const Bits wide = __builtin_convertvector(narrow, Bits);
  const Bits number = (wide & 0x7fff) << 13, exponent = number & kExponent,
             sign = (wide & 0x8000) << 16;
  const Bits biased = number + kBias + (exponent == kExponent ? kBias : Bits{});
  const V small = reinterpret_cast<V>(biased + kUnit) - 0x1p-14f;
  v = reinterpret_cast<V>((exponent == 0 ? reinterpret_cast<Bits>(small) : biased) | sign);
}

// Sums of neighbours: those of u, then those of v.
template <class V, std::size_t... kIndex>
[[gnu::always_inline]] inline void AddNeighbours(V& u, const V& v, std::index_sequence<kIndex...>) {
  u = __builtin_shufflevector(u, v, static_cast<int>(2 * kIndex)...) +
      __builtin_shufflevector(u, v, static_cast<int>(2 * kIndex + 1)...);
}

// The sum of each vector's elements, neighbours first: kCount of them, each in kParts elements by now.
template <class T, int kLanes, int kParts, int kCount>
[[gnu::always_inline]] inline void SumEach(Vector<T, kLanes>* sums, T* to) {
  constexpr std::make_index_sequence<kLanes> kAll;
  if constexpr (kParts == 1) {
    std::memcpy(to, sums, sizeof(T) * kCount);
  } else if constexpr (kCount * kParts > kLanes) {
    constexpr int kVectors = kCount * kParts / kLanes;
#pragma GCC unroll 8
    for (int i = 0; i < kVectors; i += 2) {
      AddNeighbours(sums[i], sums[i + 1], kAll);
      sums[i / 2] = sums[i];
    }
    SumEach<T, kLanes, kParts / 2, kCount>(sums, to);
  } else {
    AddNeighbours(sums[0], sums[0], kAll);
    SumEach<T, kLanes, kParts / 2, kCount>(sums, to);
  }
}

// kRows x kColumns results, whose sums are in registers.
template <class T, int kLanes, int kRows, int kColumns, class B>
[[gnu::always_inline]] inline void DotTile(const FewRows<T, B>& t, int64_t i, int64_t j) {
  using V = Vector<T, kLanes>;
  const T* const a = t.a + i * t.a_row;
  const B* const b = t.b + j * t.b_column;
  V sums[kRows][kColumns] = {};
  int64_t p = 0;
  for (; p + kLanes <= t.k; p += kLanes) {
    V x[kRows];
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) Load(a + r * t.a_row + p, x[r]);
#pragma GCC unroll 8
    for (int q = 0; q < kColumns; ++q) {
      V y;
      Load(b + q * t.b_column + p, y);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) sums[r][q] += x[r] * y;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    T results[kColumns];
    SumEach<T, kLanes, kLanes, kColumns>(sums[r], results);
    T* const c = t.c + (i + r) * t.c_row + j * t.c_column;
#pragma GCC unroll 8
    for (int q = 0; q < kColumns; ++q) {
      for (int64_t s = p; s < t.k; ++s)
        results[q] += a[r * t.a_row + s] * static_cast<T>(b[q * t.b_column + s]);
      c[q * t.c_column] = results[q];
    }
  }
}

template <class T, int kLanes, int kColumns, class B>
[[gnu::always_inline]] inline void DotColumns(const FewRows<T, B>& t, int64_t j) {
  int64_t i = 0;
  for (; i + 4 <= t.rows; i += 4) DotTile<T, kLanes, 4, kColumns>(t, i, j);
  for (; i + 2 <= t.rows; i += 2) DotTile<T, kLanes, 2, kColumns>(t, i, j);
  for (; i < t.rows; ++i) DotTile<T, kLanes, 1, kColumns>(t, i, j);
}

template <class T, int kLanes, class B>
[[gnu::always_inline]] inline void AllDots(const FewRows<T, B>& t) {
  int64_t j = t.begin;
  if (t.rows == 1) {
    for (; j + 8 <= t.end; j += 8) DotTile<T, kLanes, 1, 8>(t, 0, j);
  }
  for (; j + 4 <= t.end; j += 4) DotColumns<T, kLanes, 4>(t, j);
  for (; j < t.end; ++j) DotColumns<T, kLanes, 1>(t, j);
}

// Lanes of a block of columns: [row][lane][column].
template <class T>
struct LaneSums {
  T* data;
  int64_t lanes, block;
  T* at(int64_t row, int64_t lane) const { return data + (row * lanes + lane) * block; }
};

// Adds the terms p, p + kLanes, ..., kTerms of them, to their lane of `count` columns from j on. The
// first ones make the lane.
template <class T, int kLanes, int kTerms, class B>
[[gnu::always_inline]] inline void AddTerms(const FewRows<T, B>& t, const LaneSums<T>& sums,
                                            int64_t p, int64_t j, int64_t count) {
  using V = Vector<T, kLanes>;
  const T* const a = t.a + p * t.a_column;
  const B* const b = t.b + p * t.b_row + j;
  const int64_t a_step = kLanes * t.a_column, b_step = kLanes * t.b_row;
  const bool is_first = p < kLanes;
  int64_t q = 0;
  for (; q + kLanes <= count; q += kLanes) {
    V y[kTerms];
#pragma GCC unroll 8
    for (int d = 0; d < kTerms; ++d) Load(b + d * b_step + q, y[d]);
    for (int64_t i = 0; i < t.rows; ++i) {
      T* const lane = sums.at(i, p % kLanes) + q;
      V sum = {};
      if (!is_first) Load(lane, sum);
#pragma GCC unroll 8
      for (int d = 0; d < kTerms; ++d) sum += a[i * t.a_row + d * a_step] * y[d];
      std::memcpy(lane, &sum, sizeof sum);
    }
  }
  for (; q < count; ++q) {
    for (int64_t i = 0; i < t.rows; ++i) {
      T* const lane = sums.at(i, p % kLanes) + q;
      T sum = is_first ? T{} : *lane;
#pragma GCC unroll 8
      for (int d = 0; d < kTerms; ++d)
        sum += a[i * t.a_row + d * a_step] * static_cast<T>(b[d * b_step + q]);
      *lane = sum;
    }
  }
}

// c from the lanes, neighbours first, and from the terms from p on, as DotTile has them.
template <class T, int kLanes, class B>
[[gnu::always_inline]] inline void AddLanes(const FewRows<T, B>& t, const LaneSums<T>& sums,
                                            int64_t p, int64_t j, int64_t count) {
  for (int64_t i = 0; i < t.rows; ++i) {
    const T* a = t.a + i * t.a_row;
    for (int lanes = p > 0 ? kLanes : 0; lanes > 1; lanes /= 2) {
      for (int lane = 0; lane < lanes; lane += 2) {
        const T *x = sums.at(i, lane), *y = sums.at(i, lane + 1);
        T* const to = sums.at(i, lane / 2);
        int64_t q = 0;
        for (; q + kLanes <= count; q += kLanes) {
          Vector<T, kLanes> u, v;
          Load(x + q, u);
          Load(y + q, v);
          u += v;
          std::memcpy(to + q, &u, sizeof u);
        }
        for (; q < count; ++q) to[q] = x[q] + y[q];
      }
    }
    const T* total = sums.at(i, 0);
    for (int64_t q = 0; q < count; ++q) {
      T sum = p > 0 ? total[q] : T{};
      for (int64_t s = p; s < t.k; ++s)
        sum += a[s * t.a_column] * static_cast<T>(t.b[s * t.b_row + (j + q) * t.b_column]);
      t.c[i * t.c_row + (j + q) * t.c_column] = sum;
    }
  }
}

// Makes the first of kCount vectors their sum, neighbours first.
template <int kCount, class V>
[[gnu::always_inline]] inline void SumNeighbours(V* v) {
  if constexpr (kCount > 1) {
#pragma GCC unroll 8
    for (int i = 0; i < kCount / 2; ++i) v[i] = v[2 * i] + v[2 * i + 1];
    SumNeighbours<kCount / 2>(v);
  }
}

// kLanes columns from j on, whose lanes are registers: the values of AddTerms and AddLanes.
template <class T, int kLanes, class B>
[[gnu::always_inline]] inline void RowsInRegisters(const FewRows<T, B>& t, int64_t j) {
  using V = Vector<T, kLanes>;
  for (int64_t i = 0; i < t.rows; ++i) {
    const T* a = t.a + i * t.a_row;
    const B* b = t.b + j;
    V lanes[kLanes] = {}, y;
    int64_t p = 0;
    for (; p + kLanes <= t.k; p += kLanes) {
#pragma GCC unroll 16
      for (int lane = 0; lane < kLanes; ++lane, a += t.a_column, b += t.b_row) {
        Load(b, y);
        lanes[lane] += *a * y;
      }
    }
    SumNeighbours<kLanes>(lanes);
    V& sum = lanes[0];
    for (; p < t.k; ++p, a += t.a_column, b += t.b_row) {
      Load(b, y);
      sum += *a * y;
    }
    T* const c = t.c + i * t.c_row + j * t.c_column;
    for (int q = 0; q < kLanes; ++q) c[q * t.c_column] = sum[q];
  }
}

template <class T, int kLanes, class B>
[[gnu::always_inline]] inline void AllRows(const FewRows<T, B>& t, T* scratch, int64_t block) {
  constexpr int kTerms = 8;
  // A factor that stays in the innermost cache may be read in strips, again for each row.
  constexpr int64_t kSmall = 32768;
  const LaneSums<T> sums{scratch, kLanes, block};
  int64_t begin = t.begin;
  if (t.k * (t.end - t.begin) * static_cast<int64_t>(sizeof(B)) <= kSmall) {
    for (; begin + kLanes <= t.end; begin += kLanes) RowsInRegisters<T, kLanes>(t, begin);
  }
  for (int64_t j = begin; j < t.end; j += block) {
    const int64_t count = std::min(block, t.end - j);
    int64_t p = 0;
    for (; p + kTerms * kLanes <= t.k; p += kTerms * kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane)
        AddTerms<T, kLanes, kTerms>(t, sums, p + lane, j, count);
    }
    for (; p + kLanes <= t.k; p += kLanes) {
      for (int64_t lane = 0; lane < kLanes; ++lane)
        AddTerms<T, kLanes, 1>(t, sums, p + lane, j, count);
    }
    AddLanes<T, kLanes>(t, sums, p, j, count);
  }
}

template <class T, class B>
struct Loops {
  void (*dots)(const FewRows<T, B>&);
  void (*rows)(const FewRows<T, B>&, T* scratch, int64_t block);
  int64_t lanes;
};

template <class T, class B>
void DotsAnywhere(const FewRows<T, B>& t) {
  AllDots<T, 16 / sizeof(T)>(t);
}
template <class T, class B>
void RowsAnywhere(const FewRows<T, B>& t, T* scratch, int64_t block) {
  AllRows<T, 16 / sizeof(T)>(t, scratch, block);
}

#if defined(__x86_64__)
#define LAZULI_AVX512 gnu::target("avx512f,avx512vl,avx512dq,fma,prefer-vector-width=512")
template <class T, class B>
[[gnu::target("avx2,fma")]] void DotsAvx2(const FewRows<T, B>& t) {
  AllDots<T, 32 / sizeof(T)>(t);
}
template <class T, class B>
[[gnu::target("avx2,fma")]] void RowsAvx2(const FewRows<T, B>& t, T* scratch, int64_t block) {
  AllRows<T, 32 / sizeof(T)>(t, scratch, block);
}
template <class T, class B>
[[LAZULI_AVX512]] void DotsAvx512(const FewRows<T, B>& t) {
  AllDots<T, 64 / sizeof(T)>(t);
}
template <class T, class B>
[[LAZULI_AVX512]] void RowsAvx512(const FewRows<T, B>& t, T* scratch, int64_t block) {
  AllRows<T, 64 / sizeof(T)>(t, scratch, block);
}
#undef LAZULI_AVX512
#endif

template <class T, class B>
Loops<T, B> BestLoops() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq"))
    return {DotsAvx512<T, B>, RowsAvx512<T, B>, 64 / sizeof(T)};
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c"))
    return {DotsAvx2<T, B>, RowsAvx2<T, B>, 32 / sizeof(T)};
#endif
  return {DotsAnywhere<T, B>, RowsAnywhere<T, B>, 16 / sizeof(T)};
}
template <class T, class B>
const Loops<T, B>& LoopsHere() {
  static const Loops<T, B> loops = BestLoops<T, B>();
  return loops;
}

// Columns whose lanes stay in the second cache while rows of b are added to them.
int64_t ColumnsOfLanes(int64_t rows, int64_t columns) {
  return std::min<int64_t>(columns, rows == 1 ? 4096 : rows == 2 ? 1024 : 256);
}

}  // namespace

template <class T, class B>
void MultiplyDots(const FewRows<T, B>& product) {
  LoopsHere<T, B>().dots(product);
}
template <class T>
int64_t AddedRowsScratch(int64_t rows, int64_t columns) {
  return rows * LoopsHere<T, T>().lanes * ColumnsOfLanes(rows, columns);
}
template <class T, class B>
void AddScaledRows(const FewRows<T, B>& product, T* scratch) {
  LoopsHere<T, B>().rows(product, scratch,
                         ColumnsOfLanes(product.rows, product.end - product.begin));
}

#define LAZULI_FEW_ROWS(T, B)                             \
  template void MultiplyDots<T, B>(const FewRows<T, B>&); \
  template void AddScaledRows<T, B>(const FewRows<T, B>&, T*);
LAZULI_FEW_ROWS(float, float)
LAZULI_FEW_ROWS(float, ir::bfloat16)
LAZULI_FEW_ROWS(float, ir::half)
LAZULI_FEW_ROWS(float, int8_t)
LAZULI_FEW_ROWS(float, uint8_t)
LAZULI_FEW_ROWS(double, double)
#undef LAZULI_FEW_ROWS
template int64_t AddedRowsScratch<float>(int64_t, int64_t);
template int64_t AddedRowsScratch<double>(int64_t, int64_t);

}  // namespace lazuli::cpu
