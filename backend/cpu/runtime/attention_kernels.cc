// This file is compiled with contraction of products and sums to fma, as libraries do it: attention
// has the bounds of products of matrices. Loops over vectors are unrolled, so that sums stay in
// registers.
#include "backend/cpu/runtime/attention_kernels.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <limits>
#include <type_traits>
#include <utility>

#include "backend/cpu/runtime/vectors.h"
#include "ir/recipes/tables.h"
#include "ir/types/half.h"

namespace lazuli::cpu {
namespace {

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

template <class V, class T>
[[gnu::always_inline]] inline void LoadTile(const T* from, V& v) {
  std::memcpy(&v, from, sizeof v);
}
template <class V, class T>
[[gnu::always_inline]] inline void StoreTile(const V& v, T* to) {
  std::memcpy(to, &v, sizeof v);
}

// kRows rows of kVectors vectors, whose sums are in registers.
template <class T, int kLanes, int kRows, int kVectors>
[[gnu::always_inline]] inline void ProductTile(const TileProduct<T>& t, int64_t i, int64_t j) {
  using V = Vector<T, kLanes>;
  const T* a = t.a + i * t.a_row;
  const T* b = t.b + j;
  V sums[kRows][kVectors] = {};
  for (int64_t p = 0; p < t.k; ++p, a += t.a_column, b += t.b_row) {
    V y[kVectors];
#pragma GCC unroll 8
    for (int q = 0; q < kVectors; ++q) LoadTile(b + q * kLanes, y[q]);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      const T x = a[r * t.a_row];
#pragma GCC unroll 8
      for (int q = 0; q < kVectors; ++q) sums[r][q] += y[q] * x;
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
    T* const c = t.c + (i + r) * t.c_row + j;
#pragma GCC unroll 8
    for (int q = 0; q < kVectors; ++q) {
      V before = {};
      if (t.adds) LoadTile(c + q * kLanes, before);
      const V sum = before + sums[r][q];
      StoreTile(sum, c + q * kLanes);
    }
  }
}

template <class T, int kLanes, int kVectors>
[[gnu::always_inline]] inline void ProductColumns(const TileProduct<T>& t, int64_t j) {
  int64_t i = 0;
  for (; i + 6 <= t.rows; i += 6) ProductTile<T, kLanes, 6, kVectors>(t, i, j);
  for (; i + 2 <= t.rows; i += 2) ProductTile<T, kLanes, 2, kVectors>(t, i, j);
  for (; i < t.rows; ++i) ProductTile<T, kLanes, 1, kVectors>(t, i, j);
}

// Vectors beside each other that leave registers for six rows: 32 registers of 64 bytes, else 16.
template <class T, int kLanes>
constexpr int kVectorsOfTile = sizeof(T) * kLanes == 64 ? 4 : 2;

template <class T, int kLanes>
[[gnu::always_inline]] inline void Product(const TileProduct<T>& t) {
  constexpr int kVectors = kVectorsOfTile<T, kLanes>;
  int64_t j = 0;
  for (; j + kVectors * kLanes <= t.columns; j += kVectors * kLanes)
    ProductColumns<T, kLanes, kVectors>(t, j);
  for (; j < t.columns; j += kLanes) ProductColumns<T, kLanes, 1>(t, j);
}

// Elements of u and v in turn, the first and the second half of them.
template <class V, std::size_t... kIndex>
[[gnu::always_inline]] inline void Zip(V& u, V& v, std::index_sequence<kIndex...>) {
  constexpr int kCount = sizeof...(kIndex);
  const V first = __builtin_shufflevector(
      u, v, (static_cast<int>(kIndex / 2) + (kIndex % 2 == 1 ? kCount : 0))...);
  v = __builtin_shufflevector(
      u, v, (static_cast<int>(kIndex / 2) + kCount / 2 + (kIndex % 2 == 1 ? kCount : 0))...);
  u = first;
}

template <class T, int kLanes>
[[gnu::always_inline]] inline void TransposeSquare(const T* from, int64_t from_row, T* to,
                                                   int64_t to_row) {
  using V = Vector<T, kLanes>;
  V x[kLanes], y[kLanes];
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) LoadTile(from + i * from_row, x[i]);
#pragma GCC unroll 4
  for (int step = 1; step < kLanes; step *= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < kLanes / 2; ++i) {
      V u = x[i], v = x[i + kLanes / 2];
      Zip(u, v, std::make_index_sequence<kLanes>());
      y[2 * i] = u;
      y[2 * i + 1] = v;
    }
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) x[i] = y[i];
  }
#pragma GCC unroll 16
  for (int i = 0; i < kLanes; ++i) StoreTile(x[i], to + i * to_row);
}

template <class T, int kLanes>
[[gnu::always_inline]] inline void TransposeAll(const T* from, int64_t from_row, int64_t rows,
                                                int64_t columns, T* to, int64_t to_row) {
  const int64_t whole_rows = rows - rows % kLanes, whole_columns = columns - columns % kLanes;
  for (int64_t i = 0; i < whole_rows; i += kLanes) {
    for (int64_t j = 0; j < whole_columns; j += kLanes)
      TransposeSquare<T, kLanes>(from + i * from_row + j, from_row, to + j * to_row + i, to_row);
  }
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = i < whole_rows ? whole_columns : 0; j < columns; ++j)
      to[j * to_row + i] = from[i * from_row + j];
  }
}

// exp(x) for x <= 0, by the recipe's polynomial; 0 where it would be subnormal. NaN stays.
template <class T, int kLanes>
[[gnu::always_inline]] inline void NegativeExp(Vector<T, kLanes>& x) {
  using V = Vector<T, kLanes>;
  using Bits = Vector<BitsOf<T>, kLanes>;
  constexpr bool kF32 = sizeof(T) == 4;
  constexpr T kLow = kF32 ? -87 : -708, kRounder = static_cast<T>(kF32 ? 0x1.8p23 : 0x1.8p52);
  constexpr T kLn2High = static_cast<T>(kF32 ? 0x1.62e300p-1 : 0x1.62e42fee00000p-1);
  constexpr T kLn2Low = static_cast<T>(kF32 ? 0x1.2fefa2p-17 : 0x1.a39ef35793c76p-33);
  constexpr int kMantissa = std::numeric_limits<T>::digits - 1;
  constexpr BitsOf<T> kBias = std::numeric_limits<T>::max_exponent - 1;
  const auto& coefficients = hlo::recipes::internal::Tables<T>::kExp;
  const V shifted = x * static_cast<T>(0x1.71547652b82fep0) + kRounder;  // 1 / ln(2)
  const V n = shifted - kRounder;
  const V r = x - n * kLn2High - n * kLn2Low;
  constexpr int kLast = static_cast<int>(std::size(hlo::recipes::internal::Tables<T>::kExp)) - 1;
  V sum = V{} + static_cast<T>(coefficients[kLast]);
#pragma GCC unroll 16
  for (int i = kLast - 1; i >= 0; --i) sum = sum * r + static_cast<T>(coefficients[i]);
  const V value = r * r * sum + r + 1;
  // The low bits of `shifted` hold n, and shifting drops the others.
  const Bits power = (reinterpret_cast<Bits>(shifted) + kBias) << kMantissa;
  const V result = value * reinterpret_cast<V>(power);
  x = x < kLow ? V{} : result;
}

// The same value in all orders of a vector's halves.
template <class T, int kLanes>
[[gnu::always_inline]] inline T SumOf(const Vector<T, kLanes>& v) {
  T x[kLanes];
  StoreTile(v, x);
#pragma GCC unroll 8
  for (int n = kLanes / 2; n > 0; n /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) x[i] += x[i + n];
  }
  return x[0];
}

template <class T, int kLanes>
[[gnu::always_inline]] inline T LargestOf(const T* x, int64_t count) {
  using V = Vector<T, kLanes>;
  constexpr T kNone = -std::numeric_limits<T>::infinity();
  // Several at a time: a comparison need not wait for the one before.
  V most = V{} + kNone, others[3] = {most, most, most};
  int64_t i = 0;
  for (; i + 4 * kLanes <= count; i += 4 * kLanes) {
    V v;
    LoadTile(x + i, v);
    most = v > most ? v : most;
#pragma GCC unroll 4
    for (int k = 0; k < 3; ++k) {
      LoadTile(x + i + (k + 1) * kLanes, v);
      others[k] = v > others[k] ? v : others[k];
    }
  }
  for (; i < count; i += kLanes) {
    V v;
    LoadTile(x + i, v);
    most = v > most ? v : most;
  }
#pragma GCC unroll 4
  for (int k = 0; k < 3; ++k) most = others[k] > most ? others[k] : most;
  T all[kLanes];
  StoreTile(most, all);
#pragma GCC unroll 8
  for (int n = kLanes / 2; n > 0; n /= 2) {
#pragma GCC unroll 8
    for (int i = 0; i < n; ++i) all[i] = std::max(all[i], all[i + n]);
  }
  return all[0];
}

template <class T, int kLanes>
[[gnu::always_inline]] inline T ExponentialsOf(T* x, int64_t count, T shift) {
  using V = Vector<T, kLanes>;
  V sum = {}, other = {};
  int64_t i = 0;
  for (; i + 2 * kLanes <= count; i += 2 * kLanes) {
    V u, v;
    LoadTile(x + i, u);
    LoadTile(x + i + kLanes, v);
    u = u - shift;
    v = v - shift;
    NegativeExp<T, kLanes>(u);
    NegativeExp<T, kLanes>(v);
    sum += u;
    other += v;
    StoreTile(u, x + i);
    StoreTile(v, x + i + kLanes);
  }
  for (; i < count; i += kLanes) {
    V v;
    LoadTile(x + i, v);
    v = v - shift;
    NegativeExp<T, kLanes>(v);
    sum += v;
    StoreTile(v, x + i);
  }
  return SumOf<T, kLanes>(sum + other);
}

template <class T, int kLanes>
[[gnu::always_inline]] inline void ScaleAll(T* x, int64_t count, T factor) {
  for (int64_t i = 0; i < count; i += kLanes) {
    Vector<T, kLanes> v;
    LoadTile(x + i, v);
    v *= factor;
    StoreTile(v, x + i);
  }
}

template <class T, int kLanes>
[[gnu::always_inline]] inline void AddTo(T* x, const T* y, int64_t stride, int64_t count) {
  int64_t i = 0;
  for (; stride == 1 && i + kLanes <= count; i += kLanes) {
    Vector<T, kLanes> u, v;
    LoadTile(x + i, u);
    LoadTile(y + i, v);
    u += v;
    StoreTile(u, x + i);
  }
  for (; i < count; ++i) x[i] += y[i * stride];
}

template <class T, int kLanes>
[[gnu::always_inline]] inline void HideAt(T* x, const uint8_t* mask, int64_t stride, int64_t count,
                                          bool shown, T number) {
  using V = Vector<T, kLanes>;
  int64_t i = 0;
  for (; stride == 1 && i + kLanes <= count; i += kLanes) {
    V v;
    Vector<uint8_t, kLanes> bytes;
    LoadTile(x + i, v);
    LoadTile(mask + i, bytes);
    const auto flags = __builtin_convertvector(bytes, Vector<BitsOf<T>, kLanes>);
    v = (flags != 0) == -BitsOf<T>{shown} ? v : V{} + number;
    StoreTile(v, x + i);
  }
  for (; i < count; ++i) x[i] = (mask[i * stride] != 0) == shown ? x[i] : number;
}

template <class T, int kLanes>
[[gnu::always_inline]] inline T WeightsOf(T* x, const T* y, int64_t count, T shift, T factor) {
  Vector<T, kLanes> sum = {};
  for (int64_t i = 0; i < count; i += kLanes) {
    Vector<T, kLanes> u, v;
    LoadTile(x + i, u);
    LoadTile(y + i, v);
    u = u - shift;
    NegativeExp<T, kLanes>(u);
    u = u * factor;
    sum += u * v;
    StoreTile(u, x + i);
  }
  return SumOf<T, kLanes>(sum);
}

template <class T, int kLanes>
[[gnu::always_inline]] inline void SlopesOf(const T* weights, T* slopes, int64_t count, T mean) {
  for (int64_t i = 0; i < count; i += kLanes) {
    Vector<T, kLanes> u, v;
    LoadTile(weights + i, u);
    LoadTile(slopes + i, v);
    v = u * (v - mean);
    StoreTile(v, slopes + i);
  }
}

template <class T, int kLanes>
[[gnu::always_inline]] inline bool FiniteAll(const T* x, int64_t count) {
  Vector<T, kLanes> sum = {};  // of zeros, or NaN
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Vector<T, kLanes> v;
    LoadTile(x + i, v);
    sum += v - v;
  }
  T rest = SumOf<T, kLanes>(sum);
  for (; i < count; ++i) rest += x[i] - x[i];
  return rest == 0;
}

// The loops for one kind of processor.
#define LAZULI_TILE_LOOPS(name, target, bytes)                                                   \
  template <class T>                                                                             \
  struct name {                                                                                  \
    static constexpr int kLanes = bytes / sizeof(T);                                             \
    target static void Multiply(const TileProduct<T>& t) { Product<T, kLanes>(t); }              \
    target static void Transpose(const T* from, int64_t from_row, int64_t rows, int64_t columns, \
                                 T* to, int64_t to_row) {                                        \
      TransposeAll<T, kLanes>(from, from_row, rows, columns, to, to_row);                        \
    }                                                                                            \
    target static T Largest(const T* x, int64_t n) { return LargestOf<T, kLanes>(x, n); }        \
    target static T Exponentials(T* x, int64_t n, T shift) {                                     \
      return ExponentialsOf<T, kLanes>(x, n, shift);                                             \
    }                                                                                            \
    target static void Scale(T* x, int64_t n, T factor) { ScaleAll<T, kLanes>(x, n, factor); }   \
    target static void Add(T* x, const T* y, int64_t stride, int64_t n) {                        \
      AddTo<T, kLanes>(x, y, stride, n);                                                         \
    }                                                                                            \
    target static void Hide(T* x, const uint8_t* mask, int64_t stride, int64_t n, bool shown,    \
                            T number) {                                                          \
      HideAt<T, kLanes>(x, mask, stride, n, shown, number);                                      \
    }                                                                                            \
    target static T Weights(T* x, const T* y, int64_t n, T shift, T factor) {                    \
      return WeightsOf<T, kLanes>(x, y, n, shift, factor);                                       \
    }                                                                                            \
    target static void Slopes(const T* weights, T* slopes, int64_t n, T mean) {                  \
      SlopesOf<T, kLanes>(weights, slopes, n, mean);                                             \
    }                                                                                            \
    target static bool Finite(const T* x, int64_t n) { return FiniteAll<T, kLanes>(x, n); }      \
    static constexpr TileLoops<T> kLoops{                                                        \
        kLanes, Multiply, Transpose, Largest, Exponentials, Scale,                               \
        Add,    Hide,     Weights,   Slopes,  Finite};                                           \
  };
LAZULI_TILE_LOOPS(TilesAnywhere, , 16)
#if defined(__x86_64__)
LAZULI_TILE_LOOPS(TilesAvx2, [[gnu::target("avx2,fma")]], 32)
LAZULI_TILE_LOOPS(TilesAvx512,
                  [[gnu::target("avx512f,avx512vl,avx512dq,fma,prefer-vector-width=512")]], 64)
#endif
#undef LAZULI_TILE_LOOPS

// The exponent of a 16-bit float that is not finite.
template <class H>
constexpr uint16_t kNotFinite = std::is_same_v<H, ir::bfloat16> ? 0x7f80 : 0x7c00;

template <class H>
[[gnu::always_inline]] inline float WideOf(uint16_t bits) {
  return static_cast<float>(Eigen::numext::bit_cast<H>(bits));
}
template <class H>
[[gnu::always_inline]] inline uint16_t NarrowOf(float x) {
  return Eigen::numext::bit_cast<uint16_t>(static_cast<H>(x));
}

// Vectors of bf16, whose bits are the upper ones of the f32.
template <int kLanes>
[[gnu::always_inline]] inline void WidenVector(const Vector<uint16_t, kLanes>& x, float* to,
                                               ir::bfloat16) {
  const auto wide = __builtin_convertvector(x, Vector<uint32_t, kLanes>) << 16;
  StoreTile(wide, to);
}
template <int kLanes>
[[gnu::always_inline]] inline void NarrowVector(const Vector<float, kLanes>& x, uint16_t* to,
                                                ir::bfloat16) {
  using Bits = Vector<uint32_t, kLanes>;
  const Bits bits = reinterpret_cast<Bits>(x);
  const Bits rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16, quiet = bits >> 16 | 0x40;
  const auto narrow = __builtin_convertvector(x == x ? rounded : quiet, Vector<uint16_t, kLanes>);
  StoreTile(narrow, to);
}
#if defined(__x86_64__)
// GCC 12 would convert each lane of f16 by an instruction of its own. Processors with AVX2 convert
// all lanes by one.
template <int kLanes>
[[gnu::always_inline]] inline void WidenVector(const Vector<uint16_t, kLanes>& x, float* to,
                                               ir::half) {
  Vector<float, kLanes> wide;
  asm("vcvtph2ps %1, %0" : "=v"(wide) : "vm"(x));
  StoreTile(wide, to);
}
template <int kLanes>
[[gnu::always_inline]] inline void NarrowVector(const Vector<float, kLanes>& x, uint16_t* to,
                                                ir::half) {
  Vector<uint16_t, kLanes> narrow;
  asm("vcvtps2ph $0, %1, %0" : "=vm"(narrow) : "v"(x));
  StoreTile(narrow, to);
}
#endif

// Whether vectors of so many lanes have the conversions above.
template <class H, int kLanes>
constexpr bool kWidensVectors = std::is_same_v<H, ir::bfloat16> || kLanes > 4;

template <class H, int kLanes>
[[gnu::always_inline]] inline void WidenAll(const uint16_t* x, int64_t count, float* to) {
  int64_t i = 0;
  if constexpr (kWidensVectors<H, kLanes>) {
    for (; i + kLanes <= count; i += kLanes) {
      Vector<uint16_t, kLanes> v;
      LoadTile(x + i, v);
      WidenVector<kLanes>(v, to + i, H());
    }
  }
  for (; i < count; ++i) to[i] = WideOf<H>(x[i]);
}
template <class H, int kLanes>
[[gnu::always_inline]] inline void NarrowAll(const float* x, int64_t count, uint16_t* to) {
  int64_t i = 0;
  if constexpr (kWidensVectors<H, kLanes>) {
    for (; i + kLanes <= count; i += kLanes) {
      Vector<float, kLanes> v;
      LoadTile(x + i, v);
      NarrowVector<kLanes>(v, to + i, H());
    }
  }
  for (; i < count; ++i) to[i] = NarrowOf<H>(x[i]);
}
template <class H, int kLanes>
[[gnu::always_inline]] inline bool HalvesAreFinite(const uint16_t* x, int64_t count) {
  constexpr int kWide = 2 * kLanes;
  Vector<uint16_t, kWide> found = {};
  int64_t i = 0;
  for (; i + kWide <= count; i += kWide) {
    Vector<uint16_t, kWide> v;
    LoadTile(x + i, v);
    found |= reinterpret_cast<Vector<uint16_t, kWide>>((v & kNotFinite<H>) == kNotFinite<H>);
  }
  uint16_t all[kWide];
  StoreTile(found, all);
  uint16_t any = 0;
  for (const uint16_t one : all) any |= one;
  for (; i < count; ++i) any |= (x[i] & kNotFinite<H>) == kNotFinite<H>;
  return any == 0;
}

template <int kLanes>
[[gnu::always_inline]] inline void PairAll(const uint16_t* x, const uint16_t* y, int64_t count,
                                           uint32_t* to) {
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    Vector<uint16_t, kLanes> u, v;
    LoadTile(x + i, u);
    LoadTile(y + i, v);
    using Wide = Vector<uint32_t, kLanes>;
    const Wide pair = __builtin_convertvector(u, Wide) | __builtin_convertvector(v, Wide) << 16;
    StoreTile(pair, to + i);
  }
  for (; i < count; ++i) to[i] = x[i] | static_cast<uint32_t>(y[i]) << 16;
}

#define LAZULI_HALF_LOOPS(name, target, lanes)                                               \
  template <class H>                                                                         \
  struct name {                                                                              \
    target static void Widen(const uint16_t* x, int64_t n, float* to) {                      \
      WidenAll<H, lanes>(x, n, to);                                                          \
    }                                                                                        \
    target static void Narrow(const float* x, int64_t n, uint16_t* to) {                     \
      NarrowAll<H, lanes>(x, n, to);                                                         \
    }                                                                                        \
    target static bool Finite(const uint16_t* x, int64_t n) {                                \
      return HalvesAreFinite<H, lanes>(x, n);                                                \
    }                                                                                        \
    target static void Pair(const uint16_t* x, const uint16_t* y, int64_t n, uint32_t* to) { \
      PairAll<lanes>(x, y, n, to);                                                           \
    }                                                                                        \
    static constexpr HalfLoops kLoops{Widen, Narrow, Finite, Pair};                          \
  };
LAZULI_HALF_LOOPS(HalvesAnywhere, , 4)
#if defined(__x86_64__)
LAZULI_HALF_LOOPS(HalvesAvx2, [[gnu::target("avx2,fma,f16c")]], 8)
LAZULI_HALF_LOOPS(HalvesAvx512,
                  [[gnu::target("avx512f,avx512vl,avx512bw,avx512dq,fma,f16c,"
                                "prefer-vector-width=512")]],
                  16)
#endif
#undef LAZULI_HALF_LOOPS

template <class H>
HalfLoops BestHalfLoops() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
    return HalvesAvx512<H>::kLoops;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("f16c"))
    return HalvesAvx2<H>::kLoops;
#endif
  return HalvesAnywhere<H>::kLoops;
}

template <class T>
TileLoops<T> BestTileLoops() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq"))
    return TilesAvx512<T>::kLoops;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return TilesAvx2<T>::kLoops;
#endif
  return TilesAnywhere<T>::kLoops;
}

}  // namespace

template <class T>
const TileLoops<T>& TileLoopsHere() {
  static const TileLoops<T> loops = BestTileLoops<T>();
  return loops;
}
const HalfLoops& HalfLoopsHere(DType dtype) {
  static const HalfLoops of_bf16 = BestHalfLoops<ir::bfloat16>(),
                         of_f16 = BestHalfLoops<ir::half>();
  return dtype == DType::kBF16 ? of_bf16 : of_f16;
}
template const TileLoops<float>& TileLoopsHere<float>();
template const TileLoops<double>& TileLoopsHere<double>();

}  // namespace lazuli::cpu
