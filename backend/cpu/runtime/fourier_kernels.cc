// This file is compiled with contraction of products and sums to fma, as libraries do. Loops over
// vectors are unrolled, so that a butterfly stays in registers.
#include "backend/cpu/runtime/fourier_kernels.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <utility>

#include "backend/cpu/runtime/vectors.h"

namespace lazuli::cpu {
namespace {

#define LAZULI_INLINE [[gnu::always_inline]] inline

template <class T, int kLanes>
struct FourierLanes {
  using V = Vector<T, kLanes>;
  struct C {
    V re, im;
  };
  static constexpr int kCount = kLanes;

  LAZULI_INLINE static C At(const T* x, int64_t i) {
    C c;
    std::memcpy(&c.re, x + 2 * kLanes * i, sizeof c.re);
    std::memcpy(&c.im, x + 2 * kLanes * i + kLanes, sizeof c.im);
    return c;
  }
  LAZULI_INLINE static void Put(T* x, int64_t i, const C& c) {
    std::memcpy(x + 2 * kLanes * i, &c.re, sizeof c.re);
    std::memcpy(x + 2 * kLanes * i + kLanes, &c.im, sizeof c.im);
  }
};

// --- butterflies: each works in place, its results are in order

template <class C>
LAZULI_INLINE C Plus(const C& a, const C& b) {
  return {a.re + b.re, a.im + b.im};
}
template <class C>
LAZULI_INLINE C Minus(const C& a, const C& b) {
  return {a.re - b.re, a.im - b.im};
}
// -i a
template <class C>
LAZULI_INLINE C Quarter(const C& a) {
  return {a.im, -a.re};
}
template <class C, class T>
LAZULI_INLINE C Turned(const C& a, T re, T im) {
  return {a.re * re - a.im * im, a.re * im + a.im * re};
}

template <class C>
LAZULI_INLINE void Butterfly4(C& a, C& b, C& c, C& d) {
  const C s = Plus(a, c), t = Minus(a, c), u = Plus(b, d), v = Quarter(Minus(b, d));
  a = Plus(s, u);
  b = Plus(t, v);
  c = Minus(s, u);
  d = Minus(t, v);
}

template <class T, class C>
LAZULI_INLINE void Butterfly8(C* x) {
  const T half = static_cast<T>(0.70710678118654752440);
  Butterfly4(x[0], x[2], x[4], x[6]);
  Butterfly4(x[1], x[3], x[5], x[7]);
  const C o1{(x[3].re + x[3].im) * half, (x[3].im - x[3].re) * half};
  const C o2 = Quarter(x[5]);
  const C o3{(x[7].im - x[7].re) * half, (x[7].re + x[7].im) * -half};
  const C e0 = x[0], e1 = x[2], e2 = x[4], e3 = x[6], o0 = x[1];
  x[0] = Plus(e0, o0), x[4] = Minus(e0, o0);
  x[1] = Plus(e1, o1), x[5] = Minus(e1, o1);
  x[2] = Plus(e2, o2), x[6] = Minus(e2, o2);
  x[3] = Plus(e3, o3), x[7] = Minus(e3, o3);
}

// Of an odd number of elements: sums of x[j] and x[r - j] share cosines, differences share sines.
template <class T, int r, class C>
LAZULI_INLINE void ButterflyOdd(C* x, const T* roots) {
  constexpr int half = r / 2;
  C sums[half + 1], differences[half + 1], first = x[0];
#pragma GCC unroll 8
  for (int j = 1; j <= half; ++j) {
    sums[j] = Plus(x[j], x[r - j]);
    differences[j] = Minus(x[j], x[r - j]);
    x[0] = Plus(x[0], sums[j]);
  }
#pragma GCC unroll 8
  for (int k = 1; k <= half; ++k) {
    C a{first.re + sums[1].re * roots[k], first.im + sums[1].im * roots[k]};
    C b{differences[1].re * roots[r + k], differences[1].im * roots[r + k]};
#pragma GCC unroll 8
    for (int j = 2; j <= half; ++j) {
      const T cosine = roots[j * k % r], sine = roots[r + j * k % r];
      a = {a.re + sums[j].re * cosine, a.im + sums[j].im * cosine};
      b = {b.re + differences[j].re * sine, b.im + differences[j].im * sine};
    }
    x[k] = Plus(a, Quarter(b));
    x[r - k] = Minus(a, Quarter(b));
  }
}

template <class T, int kRadix, class C>
LAZULI_INLINE void Butterfly(C* x, const T* roots) {
  if constexpr (kRadix == 2) {
    const C difference = Minus(x[0], x[1]);
    x[0] = Plus(x[0], x[1]);
    x[1] = difference;
  } else if constexpr (kRadix == 4) {
    Butterfly4(x[0], x[1], x[2], x[3]);
  } else if constexpr (kRadix == 8) {
    Butterfly8<T>(x);
  } else {
    ButterflyOdd<T, kRadix>(x, roots);
  }
}

// --- passes

// The butterflies of one place.
template <class L, class T, int kRadix, bool kTurns>
LAZULI_INLINE void PassAt(const FourierPass<T>& pass, int64_t p, const T* x, T* y) {
  typename L::C c[kRadix];
  constexpr int r = kRadix;
  const T* const turns = pass.turns + 2 * p * (r - 1);
  for (int64_t q = 0; q < pass.s; ++q) {
#pragma GCC unroll 16
    for (int j = 0; j < r; ++j) c[j] = L::At(x, q + pass.s * (p + pass.m * j));
    Butterfly<T, kRadix>(c, pass.roots);
    L::Put(y, q + pass.s * r * p, c[0]);
#pragma GCC unroll 16
    for (int k = 1; k < r; ++k) {
      L::Put(y, q + pass.s * (r * p + k),
             kTurns ? Turned(c[k], turns[2 * k - 2], turns[2 * k - 1]) : c[k]);
    }
  }
}

// A pass of any odd radix, without unrolled loops: such passes are rare.
template <class L, class T>
LAZULI_INLINE void PassOfAny(const FourierPass<T>& pass, const T* x, T* y) {
  typename L::C sums[kMostFourierRadix / 2 + 1], differences[kMostFourierRadix / 2 + 1];
  const int64_t r = pass.radix, half = r / 2, step = pass.s * pass.m;
  const T* const roots = pass.roots;
  for (int64_t i = 0; i < step; ++i) {
    const int64_t p = i / pass.s, to = i % pass.s + pass.s * r * p;
    const T* const turns = pass.turns + 2 * p * (r - 1);
    const typename L::C first = L::At(x, i);
    typename L::C sum = first;
    for (int64_t j = 1; j <= half; ++j) {
      const typename L::C u = L::At(x, i + step * j), v = L::At(x, i + step * (r - j));
      sums[j] = Plus(u, v);
      differences[j] = Minus(u, v);
      sum = Plus(sum, sums[j]);
    }
    L::Put(y, to, sum);
    for (int64_t k = 1; k <= half; ++k) {
      typename L::C a = first, b{first.re * 0, first.im * 0};
      for (int64_t j = 1, at = k; j <= half; ++j, at = at + k < r ? at + k : at + k - r) {
        a = {a.re + sums[j].re * roots[at], a.im + sums[j].im * roots[at]};
        b = {b.re + differences[j].re * roots[r + at], b.im + differences[j].im * roots[r + at]};
      }
      const typename L::C q = Quarter(b), low = Plus(a, q), high = Minus(a, q);
      const T* const other = turns + 2 * (r - k) - 2;
      L::Put(y, to + pass.s * k, Turned(low, turns[2 * k - 2], turns[2 * k - 1]));
      L::Put(y, to + pass.s * (r - k), Turned(high, other[0], other[1]));
    }
  }
}

template <class L, class T, int kRadix>
LAZULI_INLINE void PassOf(const FourierPass<T>& pass, const T* x, T* y) {
  PassAt<L, T, kRadix, false>(pass, 0, x, y);
  for (int64_t p = 1; p < pass.m; ++p) PassAt<L, T, kRadix, true>(pass, p, x, y);
}

template <class L, class T>
LAZULI_INLINE T* RunPasses(const FourierPass<T>* passes, int64_t count, T* x, T* y) {
  for (int64_t i = 0; i < count; ++i) {
    const FourierPass<T>& pass = passes[i];
    switch (pass.radix) {
      case 2:
        PassOf<L, T, 2>(pass, x, y);
        break;
      case 3:
        PassOf<L, T, 3>(pass, x, y);
        break;
      case 4:
        PassOf<L, T, 4>(pass, x, y);
        break;
      case 5:
        PassOf<L, T, 5>(pass, x, y);
        break;
      case 7:
        PassOf<L, T, 7>(pass, x, y);
        break;
      case 8:
        PassOf<L, T, 8>(pass, x, y);
        break;
      default:
        PassOfAny<L, T>(pass, x, y);
    }
    std::swap(x, y);
  }
  return x;
}

// --- between arrays of complex numbers and work memory

template <class V, std::size_t... kIndex>
LAZULI_INLINE V Evens(const V& u, const V& v, std::index_sequence<kIndex...>) {
  return __builtin_shufflevector(u, v, static_cast<int>(2 * kIndex)...);
}
template <class V, std::size_t... kIndex>
LAZULI_INLINE V Odds(const V& u, const V& v, std::index_sequence<kIndex...>) {
  return __builtin_shufflevector(u, v, static_cast<int>(2 * kIndex + 1)...);
}
template <class V, std::size_t... kIndex>
LAZULI_INLINE V LowMixed(const V& u, const V& v, std::index_sequence<kIndex...>) {
  return __builtin_shufflevector(u, v,
                                 static_cast<int>(kIndex / 2 + kIndex % 2 * sizeof...(kIndex))...);
}
template <class V, std::size_t... kIndex>
LAZULI_INLINE V HighMixed(const V& u, const V& v, std::index_sequence<kIndex...>) {
  constexpr std::size_t kLanes = sizeof...(kIndex);
  return __builtin_shufflevector(
      u, v, static_cast<int>(kLanes / 2 + kIndex / 2 + kIndex % 2 * kLanes)...);
}
template <class V, std::size_t... kIndex>
LAZULI_INLINE V Reversed(const V& v, std::index_sequence<kIndex...>) {
  return __builtin_shufflevector(v, v, static_cast<int>(sizeof...(kIndex) - 1 - kIndex)...);
}

// Real and imaginary parts of as many neighbours as there are lanes: apart, and together again.
template <class L, class T>
LAZULI_INLINE typename L::C Apart(const T* from) {
  constexpr std::make_index_sequence<L::kCount> kAll;
  typename L::V u, v;
  std::memcpy(&u, from, sizeof u);
  std::memcpy(&v, from + L::kCount, sizeof v);
  return {Evens(u, v, kAll), Odds(u, v, kAll)};
}
template <class L, class T>
LAZULI_INLINE void Together(const typename L::C& c, T* to) {
  constexpr std::make_index_sequence<L::kCount> kAll;
  const typename L::V u = LowMixed(c.re, c.im, kAll), v = HighMixed(c.re, c.im, kAll);
  std::memcpy(to, &u, sizeof u);
  std::memcpy(to + L::kCount, &v, sizeof v);
}

template <class C>
LAZULI_INLINE C SwappedIf(bool swapped, const C& c) {
  return swapped ? C{c.im, c.re} : c;
}

template <class L, class T>
LAZULI_INLINE void LoadLanes(const T* from, int64_t stride, int64_t n, int64_t count, bool swapped,
                             T* to) {
  if (count == L::kCount) {
    for (int64_t i = 0; i < n; ++i) {
      const T* const here = from + 2 * i * stride;
      // The next lanes, which are taken next, and which no prefetcher of a processor guesses.
      __builtin_prefetch(here + 2 * L::kCount);
      __builtin_prefetch(here + 3 * L::kCount);
      L::Put(to, i, SwappedIf(swapped, Apart<L>(here)));
    }
    return;
  }
  T some[2 * L::kCount] = {};
  for (int64_t i = 0; i < n; ++i) {
    std::copy_n(from + 2 * i * stride, 2 * count, some);
    L::Put(to, i, SwappedIf(swapped, Apart<L>(some)));
  }
}

template <class L, class T>
LAZULI_INLINE typename L::C Outward(const T* from, int64_t i, bool swapped, T scale) {
  const typename L::C c = SwappedIf(swapped, L::At(from, i));
  return {c.re * scale, c.im * scale};
}

template <class L, class T>
LAZULI_INLINE void StoreLanes(const T* from, int64_t n, int64_t count, bool swapped, T scale, T* to,
                              int64_t stride) {
  if (count == L::kCount) {
    for (int64_t i = 0; i < n; ++i)
      Together<L>(Outward<L>(from, i, swapped, scale), to + 2 * i * stride);
    return;
  }
  T some[2 * L::kCount];
  for (int64_t i = 0; i < n; ++i) {
    Together<L>(Outward<L>(from, i, swapped, scale), some);
    std::copy_n(some, 2 * count, to + 2 * i * stride);
  }
}

// Transposes as many vectors as there are lanes.
template <class L>
LAZULI_INLINE void TurnSquare(typename L::V* x) {
  constexpr std::make_index_sequence<L::kCount> kAll;
  constexpr int kHalf = L::kCount / 2;
#pragma GCC unroll 4
  for (int stage = 1; stage < L::kCount; stage *= 2) {
    typename L::V y[L::kCount];
#pragma GCC unroll 8
    for (int i = 0; i < kHalf; ++i) {
      y[2 * i] = LowMixed(x[i], x[i + kHalf], kAll);
      y[2 * i + 1] = HighMixed(x[i], x[i + kHalf], kAll);
    }
#pragma GCC unroll 16
    for (int i = 0; i < L::kCount; ++i) x[i] = y[i];
  }
}

template <class L, class T>
LAZULI_INLINE void LoadRowLanes(const T* from, int64_t stride, int64_t n, int64_t count,
                                bool swapped, T* to) {
  constexpr int kLanes = L::kCount;
  int64_t i = 0;
  for (; count == kLanes && i + kLanes <= n; i += kLanes) {
    typename L::V re[kLanes], im[kLanes];
#pragma GCC unroll 16
    for (int l = 0; l < kLanes; ++l) {
      const typename L::C c = SwappedIf(swapped, Apart<L>(from + 2 * (l * stride + i)));
      re[l] = c.re, im[l] = c.im;
    }
    TurnSquare<L>(re);
    TurnSquare<L>(im);
#pragma GCC unroll 16
    for (int l = 0; l < kLanes; ++l) L::Put(to, i + l, {re[l], im[l]});
  }
  for (; i < n; ++i) {
    T* const element = to + 2 * kLanes * i;
    std::fill_n(element, 2 * kLanes, T(0));
    for (int64_t l = 0; l < count; ++l) {
      element[l] = from[2 * (l * stride + i) + (swapped ? 1 : 0)];
      element[kLanes + l] = from[2 * (l * stride + i) + (swapped ? 0 : 1)];
    }
  }
}

template <class L, class T>
LAZULI_INLINE void StoreRowLanes(const T* from, int64_t n, int64_t count, bool swapped, T scale,
                                 T* to, int64_t stride) {
  constexpr int kLanes = L::kCount;
  int64_t i = 0;
  for (; count == kLanes && i + kLanes <= n; i += kLanes) {
    typename L::V re[kLanes], im[kLanes];
#pragma GCC unroll 16
    for (int l = 0; l < kLanes; ++l) {
      const typename L::C c = Outward<L>(from, i + l, swapped, scale);
      re[l] = c.re, im[l] = c.im;
    }
    TurnSquare<L>(re);
    TurnSquare<L>(im);
#pragma GCC unroll 16
    for (int l = 0; l < kLanes; ++l) Together<L>({re[l], im[l]}, to + 2 * (l * stride + i));
  }
  for (; i < n; ++i) {
    const T* const element = from + 2 * kLanes * i;
    for (int64_t l = 0; l < count; ++l) {
      to[2 * (l * stride + i) + (swapped ? 1 : 0)] = element[l] * scale;
      to[2 * (l * stride + i) + (swapped ? 0 : 1)] = element[kLanes + l] * scale;
    }
  }
}

template <class L, class T>
LAZULI_INLINE void TurnOver(T* x, const T* turns, int64_t n, int64_t count, T* to, int64_t block) {
  constexpr int kLanes = L::kCount;
  for (int64_t e = 0; e < n; e += kLanes) {
    typename L::V re[kLanes], im[kLanes];
#pragma GCC unroll 16
    for (int i = 0; i < kLanes; ++i) {
      const int64_t at = std::min<int64_t>(e + i, n - 1);  // lanes behind the last are not read
      const typename L::C c = L::At(x, at), t = L::At(turns, at);
      re[i] = c.re * t.re - c.im * t.im;
      im[i] = c.re * t.im + c.im * t.re;
    }
    TurnSquare<L>(re);
    TurnSquare<L>(im);
    T* const here = to + e / kLanes * block;
    if (count == kLanes) {
#pragma GCC unroll 16
      for (int l = 0; l < kLanes; ++l) L::Put(here, l, {re[l], im[l]});
    } else {
      for (int l = 0; l < count; ++l) L::Put(here, l, {re[l], im[l]});
    }
  }
}

template <class L, class T>
LAZULI_INLINE void Pairs(const T* from, const T* turns, int64_t h, bool inverse, T* to) {
  constexpr int kLanes = L::kCount;
  constexpr std::make_index_sequence<kLanes> kAll;
  const T half = static_cast<T>(0.5), sign = inverse ? T(-1) : T(1);
  const T* const imag = turns + h / 2 + 1;
  int64_t k = 1;
  for (; 2 * (k + kLanes) <= h; k += kLanes) {
    const int64_t j = h - k - kLanes + 1;
    const typename L::C a = Apart<L>(from + 2 * k), r = Apart<L>(from + 2 * j);
    const typename L::C b{Reversed(r.re, kAll), -Reversed(r.im, kAll)};
    typename L::V t_re, t_im;
    std::memcpy(&t_re, turns + k, sizeof t_re);
    std::memcpy(&t_im, imag + k, sizeof t_im);
    const typename L::C e{(a.re + b.re) * half, (a.im + b.im) * half};
    const typename L::C g = Turned(Minus(a, b), t_re, t_im * sign);
    Together<L>(Plus(e, g), to + 2 * k);
    Together<L>({Reversed(e.re - g.re, kAll), Reversed(g.im - e.im, kAll)}, to + 2 * j);
  }
  for (; 2 * k <= h; ++k) {
    const T* const a = from + 2 * k;
    const T* const b = from + 2 * (h - k);
    const T e_re = (a[0] + b[0]) * half, e_im = (a[1] - b[1]) * half;
    const T d_re = a[0] - b[0], d_im = a[1] + b[1], t_re = turns[k], t_im = imag[k] * sign;
    const T g_re = d_re * t_re - d_im * t_im, g_im = d_re * t_im + d_im * t_re;
    to[2 * (h - k)] = e_re - g_re, to[2 * (h - k) + 1] = g_im - e_im;
    to[2 * k] = e_re + g_re, to[2 * k + 1] = e_im + g_im;
  }
}

template <class L, class T>
LAZULI_INLINE void PairLanes(T* x, const T* turns, int64_t h, bool inverse) {
  using C = typename L::C;
  const T half = static_cast<T>(0.5), sign = inverse ? T(-1) : T(1);
  const T* const imag = turns + h / 2 + 1;
  const C first = L::At(x, 0);
  if (inverse) {
    const C last = L::At(x, h);
    L::Put(x, 0, {(first.re - last.re) * half, (first.re + last.re) * half});
  } else {
    const typename L::V none = first.re * 0;
    L::Put(x, 0, {first.re + first.im, none});
    L::Put(x, h, {first.re - first.im, none});
  }
  for (int64_t k = 1; 2 * k <= h; ++k) {
    const C a = L::At(x, k), other = L::At(x, h - k), b{other.re, -other.im};
    const C e{(a.re + b.re) * half, (a.im + b.im) * half};
    const C g = Turned(Minus(a, b), turns[k], imag[k] * sign);
    L::Put(x, h - k, SwappedIf(inverse, C{e.re - g.re, g.im - e.im}));
    L::Put(x, k, SwappedIf(inverse, Plus(e, g)));
  }
}

template <class L, class T>
LAZULI_INLINE void Multiply(const T* x, const T* y, int64_t n, Conjugates conjugates, T scale,
                            T* to) {
  const T first = conjugates.first ? T(-1) : T(1);
  const T imaginary = conjugates.result ? -scale : scale;
  int64_t i = 0;
  for (; i + L::kCount <= n; i += L::kCount) {
    const typename L::C a = Apart<L>(x + 2 * i), b = Apart<L>(y + 2 * i);
    const typename L::V im = a.im * first;
    Together<L>({(a.re * b.re - im * b.im) * scale, (a.re * b.im + im * b.re) * imaginary},
                to + 2 * i);
  }
  for (; i < n; ++i) {
    const T re = x[2 * i], im = x[2 * i + 1] * first, b_re = y[2 * i], b_im = y[2 * i + 1];
    to[2 * i] = (re * b_re - im * b_im) * scale;
    to[2 * i + 1] = (re * b_im + im * b_re) * imaginary;
  }
}

// --- the loops for one kind of processor

#define LAZULI_FOURIER_LOOPS(Name, kBytes, ...)                                                    \
  template <class T>                                                                               \
  struct Name {                                                                                    \
    using L = FourierLanes<T, kBytes / sizeof(T)>;                                                 \
    using Complex = std::complex<T>;                                                               \
    __VA_ARGS__ static T* Run(const FourierPass<T>* passes, int64_t count, T* x, T* y) {           \
      return RunPasses<L>(passes, count, x, y);                                                    \
    }                                                                                              \
    __VA_ARGS__ static void Load(const Complex* from, int64_t stride, int64_t n, int64_t count,    \
                                 bool swapped, T* to) {                                            \
      LoadLanes<L>(reinterpret_cast<const T*>(from), stride, n, count, swapped, to);               \
    }                                                                                              \
    __VA_ARGS__ static void Store(const T* from, int64_t n, int64_t count, bool swapped, T scale,  \
                                  Complex* to, int64_t stride) {                                   \
      StoreLanes<L>(from, n, count, swapped, scale, reinterpret_cast<T*>(to), stride);             \
    }                                                                                              \
    __VA_ARGS__ static void LoadRows(const Complex* from, int64_t stride, int64_t n,               \
                                     int64_t count, bool swapped, T* to) {                         \
      LoadRowLanes<L>(reinterpret_cast<const T*>(from), stride, n, count, swapped, to);            \
    }                                                                                              \
    __VA_ARGS__ static void StoreRows(const T* from, int64_t n, int64_t count, bool swapped,       \
                                      T scale, Complex* to, int64_t stride) {                      \
      StoreRowLanes<L>(from, n, count, swapped, scale, reinterpret_cast<T*>(to), stride);          \
    }                                                                                              \
    __VA_ARGS__ static void TurnedOver(T* x, const T* turns, int64_t n, int64_t count, T* to,      \
                                       int64_t block) {                                            \
      TurnOver<L>(x, turns, n, count, to, block);                                                  \
    }                                                                                              \
    __VA_ARGS__ static void AllPairs(const Complex* from, const T* turns, int64_t h, bool inverse, \
                                     Complex* to) {                                                \
      Pairs<L>(reinterpret_cast<const T*>(from), turns, h, inverse, reinterpret_cast<T*>(to));     \
    }                                                                                              \
    __VA_ARGS__ static void LanePairs(T* x, const T* turns, int64_t h, bool inverse) {             \
      PairLanes<L>(x, turns, h, inverse);                                                          \
    }                                                                                              \
    __VA_ARGS__ static void Products(const Complex* x, const Complex* y, int64_t n,                \
                                     Conjugates conjugates, T scale, Complex* to) {                \
      Multiply<L>(reinterpret_cast<const T*>(x), reinterpret_cast<const T*>(y), n, conjugates,     \
                  scale, reinterpret_cast<T*>(to));                                                \
    }                                                                                              \
    static constexpr FourierLoops<T> kLoops{L::kCount, Run,        Load,     Store,     LoadRows,  \
                                            StoreRows, TurnedOver, AllPairs, LanePairs, Products}; \
  };

LAZULI_FOURIER_LOOPS(LoopsAnywhere, 16, )
#if defined(__x86_64__)
LAZULI_FOURIER_LOOPS(LoopsAvx2, 32, [[gnu::target("avx2,fma")]])
LAZULI_FOURIER_LOOPS(LoopsAvx512, 64,
                     [[gnu::target("avx512f,avx512vl,avx512dq,fma,prefer-vector-width=512")]])
#endif
#undef LAZULI_FOURIER_LOOPS
#undef LAZULI_INLINE

template <class T>
const FourierLoops<T>& BestFourierLoops() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
      __builtin_cpu_supports("avx512dq"))
    return LoopsAvx512<T>::kLoops;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return LoopsAvx2<T>::kLoops;
#endif
  return LoopsAnywhere<T>::kLoops;
}

}  // namespace

template <class T>
const FourierLoops<T>& FourierLoopsHere() {
  static const FourierLoops<T>& loops = BestFourierLoops<T>();
  return loops;
}
template const FourierLoops<float>& FourierLoopsHere();
template const FourierLoops<double>& FourierLoopsHere();

}  // namespace lazuli::cpu
