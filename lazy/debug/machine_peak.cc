#include "lazy/debug/machine_peak.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <memory>

#include "ir/support/flags.h"
#include "ir/support/parallel_for.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace lazuli::lazy {
namespace {

constexpr int kTries = 5;  // of which the fastest counts

template <class F>
double BestSeconds(F&& f) {
  double best = 1e9;
  for (int i = 0; i < kTries; ++i) {
    const auto start = std::chrono::steady_clock::now();
    f();
    const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - start;
    best = std::min(best, elapsed.count());
  }
  return best;
}

#if defined(__x86_64__)
// Two chains of products for each port that has a latency of four cycles, and some to spare.
constexpr int kChains = 12;
constexpr int64_t kRounds = 100'000;

// `multiply_add` is of the instruction set of who calls this, into which both are inlined.
template <class Vector, class F>
[[gnu::always_inline]] inline void RunChains(const F& multiply_add) {
  Vector sums[kChains];
  for (Vector& sum : sums) sum = Vector{} + 0.5f;
  const Vector factor = sums[0];
  for (int64_t i = 0; i < kRounds; ++i) {
#pragma GCC unroll 12
    for (Vector& sum : sums) multiply_add(sum, factor);
  }
  Vector all = sums[0];
  for (const Vector& sum : sums) all += sum;
  volatile Vector used = all;
  static_cast<void>(used);
}

[[gnu::target("avx512f")]] void Multiply512() {
  RunChains<__m512>([](__m512& sum, const __m512& factor) __attribute__((target("avx512f"))) {
    sum = _mm512_fmadd_ps(sum, factor, factor);
  });
}

[[gnu::target("avx2,fma")]] void Multiply256() {
  RunChains<__m256>([](__m256& sum, const __m256& factor) __attribute__((target("avx2,fma"))) {
    sum = _mm256_fmadd_ps(sum, factor, factor);
  });
}

double MeasureGflops() {
  const bool wide = __builtin_cpu_supports("avx512f") != 0;
  if (!wide && (__builtin_cpu_supports("avx2") == 0 || __builtin_cpu_supports("fma") == 0))
    return 0;
  const int64_t threads = ir::NumThreads();
  const double seconds = BestSeconds([&] {
    ir::ParallelFor(threads, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) wide ? Multiply512() : Multiply256();
    });
  });
  const double per_thread = 2.0 * (wide ? 16 : 8) * kChains * kRounds;
  return per_thread * static_cast<double>(threads) / seconds / 1e9;
}
#else
double MeasureGflops() { return 0; }
#endif

// More than caches hold.
double MeasureGbs() {
  constexpr int64_t kBytes = int64_t{64} << 20;
  const auto from = std::make_unique<char[]>(kBytes), to = std::make_unique<char[]>(kBytes);
  const double seconds = BestSeconds([&] {
    ir::ParallelFor(kBytes, kBytes / 8, [&](int64_t begin, int64_t end) {
      std::memcpy(to.get() + begin, from.get() + begin, static_cast<std::size_t>(end - begin));
    });
  });
  return 2.0 * kBytes / seconds / 1e9;
}

}  // namespace

MachinePeak GetMachinePeak() {
  static const MachinePeak measured{
      .gflops = flags().peak_gflops() > 0 ? 0 : MeasureGflops(),
      .gbs = flags().peak_gbs() > 0 ? 0 : MeasureGbs(),
  };
  MachinePeak peak = measured;
  if (flags().peak_gflops() > 0) peak.gflops = static_cast<double>(flags().peak_gflops());
  if (flags().peak_gbs() > 0) peak.gbs = static_cast<double>(flags().peak_gbs());
  return peak;
}

}  // namespace lazuli::lazy
