// c[i] += a[i,p] b[p], rows as vectors, four p at a time; some rows of b stay in the cache while
// all rows of a task use them. Compiled for several processors, of which the first that this one
// can run is taken.
#include "backend/cpu/runtime/integer_matmul.h"

#include <algorithm>
#include <type_traits>

#include "ir/support/parallel_for.h"

namespace lazuli::cpu {
namespace {

// A task's rows of c, and all of b.
template <class U>
struct MatmulRows {
  const U* a;
  int64_t a_row, a_column;
  const U* b;  // row major, without gaps
  U* c;        // likewise
  int64_t m, n, k;
};
template <class U>
using RowsFunction = void (*)(const MatmulRows<U>&);

// Bytes of b that stay in a core's cache.
constexpr int64_t kCachedBytes = 128 * 1024;

template <class U>
[[gnu::always_inline]] inline void AddRows(const MatmulRows<U>& rows, int64_t i, int64_t p,
                                           int64_t last) {
  using Wide = std::common_type_t<U, unsigned>;  // unsigned: it wraps
  U* __restrict c = rows.c + i * rows.n;
  const U* a = rows.a + i * rows.a_row;
  const auto at = [&](int64_t q) { return static_cast<Wide>(a[q * rows.a_column]); };
  for (; p + 4 <= last; p += 4) {
    const Wide a0 = at(p), a1 = at(p + 1), a2 = at(p + 2), a3 = at(p + 3);
    const U *b0 = rows.b + p * rows.n, *b1 = b0 + rows.n, *b2 = b1 + rows.n, *b3 = b2 + rows.n;
    for (int64_t j = 0; j < rows.n; ++j)
      c[j] = static_cast<U>(c[j] + a0 * b0[j] + a1 * b1[j] + a2 * b2[j] + a3 * b3[j]);
  }
  for (; p < last; ++p) {
    const Wide a0 = at(p);
    const U* b0 = rows.b + p * rows.n;
    for (int64_t j = 0; j < rows.n; ++j) c[j] = static_cast<U>(c[j] + a0 * b0[j]);
  }
}

template <class U>
[[gnu::always_inline]] inline void Multiply(const MatmulRows<U>& rows) {
  std::fill_n(rows.c, rows.m * rows.n, U{0});
  const auto width = static_cast<int64_t>(sizeof(U));
  const int64_t block = std::max<int64_t>(4, kCachedBytes / (rows.n * width) / 4 * 4);
  for (int64_t p = 0; p < rows.k; p += block) {
    const int64_t last = std::min(rows.k, p + block);
    for (int64_t i = 0; i < rows.m; ++i) AddRows(rows, i, p, last);
  }
}

template <class U>
void MultiplyAnywhere(const MatmulRows<U>& rows) {
  Multiply(rows);
}

#if defined(__x86_64__)
template <class U>
[[gnu::target("avx2")]] void MultiplyAvx2(const MatmulRows<U>& rows) {
  Multiply(rows);
}
template <class U>
[[gnu::target("avx512f,avx512bw,avx512dq,avx512vl")]] void MultiplyAvx512(
    const MatmulRows<U>& rows) {
  Multiply(rows);
}
template <class U>
RowsFunction<U> BestMultiply() {
  if (__builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vl"))
    return MultiplyAvx512<U>;
  return __builtin_cpu_supports("avx2") ? MultiplyAvx2<U> : MultiplyAnywhere<U>;
}
#else
template <class U>
RowsFunction<U> BestMultiply() {
  return MultiplyAnywhere<U>;
}
#endif

// Multiplications worth a thread.
constexpr int64_t kGrainWork = 65536;

template <class U>
class IntegerMatmul final : public LibraryCall {
 public:
  explicit IntegerMatmul(const MatmulSpec& spec)
      : spec_(spec),
        packs_(spec.b_strides[2] != 1 || spec.b_strides[1] != spec.n ||
               (spec.batch > 1 && spec.b_strides[0] != spec.k * spec.n)),
        multiply_(BestMultiply<U>()) {}

  int64_t scratch_bytes() const override {
    return packs_ ? spec_.batch * spec_.k * spec_.n * static_cast<int64_t>(sizeof(U)) : 0;
  }
  absl::Status Run(const LibraryBuffers& buffers) const override {
    const auto* a = reinterpret_cast<const U*>(buffers.a);
    const auto* b = reinterpret_cast<const U*>(buffers.b);
    auto* c = reinterpret_cast<U*>(buffers.result);
    if (packs_) {
      Pack(b, reinterpret_cast<U*>(buffers.scratch));
      b = reinterpret_cast<const U*>(buffers.scratch);
    }
    const int64_t per_row = std::max<int64_t>(1, spec_.n * spec_.k);
    ParallelFor(spec_.batch * spec_.m, std::max<int64_t>(1, kGrainWork / per_row),
                [&](int64_t begin, int64_t end) { MultiplyRows(a, b, c, begin, end); });
    return absl::OkStatus();
  }
  std::string Details() const override { return "integers"; }

 private:
  void Pack(const U* b, U* packed) const {
    const auto& [batch, row, column] = spec_.b_strides;
    for (int64_t i = 0; i < spec_.batch; ++i) {
      for (int64_t p = 0; p < spec_.k; ++p) {
        for (int64_t j = 0; j < spec_.n; ++j) *packed++ = b[i * batch + p * row + j * column];
      }
    }
  }
  // Rows of all batches are numbered through.
  void MultiplyRows(const U* a, const U* b, U* c, int64_t begin, int64_t end) const {
    const auto& [batch, row, column] = spec_.a_strides;
    while (begin < end) {
      const int64_t i = begin / spec_.m, first = begin % spec_.m;
      const int64_t count = std::min(end - begin, spec_.m - first);
      multiply_({.a = a + i * batch + first * row,
                 .a_row = row,
                 .a_column = column,
                 .b = b + i * spec_.k * spec_.n,
                 .c = c + begin * spec_.n,
                 .m = count,
                 .n = spec_.n,
                 .k = spec_.k});
      begin += count;
    }
  }

  MatmulSpec spec_;
  bool packs_;
  RowsFunction<U> multiply_;
};

}  // namespace

std::unique_ptr<LibraryCall> PlanIntegerMatmul(const MatmulSpec& spec) {
  if (!IsIntegral(spec.dtype)) return nullptr;
  switch (ir::Row(spec.dtype).bits) {
    case 8:
      return std::make_unique<IntegerMatmul<uint8_t>>(spec);
    case 16:
      return std::make_unique<IntegerMatmul<uint16_t>>(spec);
    case 32:
      return std::make_unique<IntegerMatmul<uint32_t>>(spec);
    case 64:
      return std::make_unique<IntegerMatmul<uint64_t>>(spec);
    default:
      return nullptr;
  }
}

}  // namespace lazuli::cpu
