#include "backend/cpu/runtime/few_rows.h"

#include <algorithm>
#include <optional>

#include "backend/cpu/runtime/few_rows_kernels.h"
#include "backend/cpu/runtime/parts.h"
#include "ir/support/str.h"
#include "ir/types/half.h"

namespace lazuli::cpu {
namespace {

// Multiplications of a part, which a thread takes at a time.
constexpr int64_t kPartWork = 1 << 18;
// Columns of a part: a multiple of these, so that rows of b are read in runs that are long enough for
// the processor to read ahead.
constexpr int64_t kColumns = 4096, kColumnsOfDots = 64;
// Where that makes few parts, terms are cut: into so many parts at most, of at least so many.
constexpr int64_t kMostTermParts = 16, kLeastTerms = 512;
// With so many parts of columns, dots need no parts of terms for other threads.
constexpr int64_t kEnoughColumnParts = 4, kDotsAtATime = 8;

// What is computed, and how it is cut. Nothing here depends on the number of threads.
struct FewRowsPlan {
  MatmulSpec spec;       // with few rows
  bool swaps = false;    // a and b, rows and columns
  bool dots = false;     // the terms of b's columns lie side by side, else its columns
  bool packs_a = false;  // as rows of terms, of the dtype of the sums
  int64_t products_of_part = 1, product_parts = 1;  // of the batch
  int64_t columns_of_part = 0, column_parts = 1;
  int64_t terms_of_part = 0, term_parts = 1;  // of which the sums are added up in their order
  // Dots read whole columns, all parts of their terms one after the other, if there are enough of them.
  bool dots_whole() const { return dots && column_parts >= kEnoughColumnParts; }
  int64_t parts() const { return product_parts * column_parts * (dots_whole() ? 1 : term_parts); }
  int64_t packed() const { return packs_a ? spec.batch * spec.m * spec.k : 0; }
  int64_t sums() const { return term_parts > 1 ? term_parts * spec.batch * spec.m * spec.n : 0; }
};

MatmulSpec Swapped(const MatmulSpec& spec) {
  const auto transposed = [](const std::array<int64_t, 3>& s) {
    return std::array<int64_t, 3>{s[0], s[2], s[1]};
  };
  MatmulSpec swapped = spec;
  std::swap(swapped.a_dtype, swapped.b_dtype);
  swapped.m = spec.n;
  swapped.n = spec.m;
  swapped.a_strides = transposed(spec.b_strides);
  swapped.b_strides = transposed(spec.a_strides);
  swapped.c_strides = transposed(spec.c_strides);
  return swapped;
}

// Into how many parts `units` are cut, `wanted` at most: equal ones, if there are such that are not much
// larger, since what follows the product can then be done part by part.
int64_t PartsOf(int64_t units, int64_t wanted) {
  const int64_t most = std::min(units, wanted);
  for (int64_t parts = most; parts > most / 4; --parts) {
    if (units % parts == 0) return parts;
  }
  return most;
}

void Cut(FewRowsPlan& plan) {
  const auto up = [](int64_t x, int64_t by) { return (x + by - 1) / by; };
  const int64_t batch = plan.spec.batch, n = plan.spec.n, k = plan.spec.k,
                work = plan.spec.m * n * k;
  plan.products_of_part = std::clamp<int64_t>(kPartWork / work, 1, batch);
  plan.product_parts = up(batch, plan.products_of_part);
  const int64_t wanted = std::max<int64_t>(1, work / kPartWork);
  const int64_t unit = plan.dots ? kColumnsOfDots : kColumns, units = up(n, unit);
  plan.columns_of_part = up(units, PartsOf(units, wanted)) * unit;
  plan.column_parts = up(n, plan.columns_of_part);
  // By the sizes alone: how a sum is cut shows in its bits.
  if (n <= kColumns) plan.term_parts = std::clamp<int64_t>(k / kLeastTerms, 1, kMostTermParts);
  plan.terms_of_part = up(k, plan.term_parts);
  plan.term_parts = up(k, plan.terms_of_part);
}

std::optional<FewRowsPlan> PlanOf(const MatmulSpec& spec, bool swaps) {
  FewRowsPlan plan{.spec = swaps ? Swapped(spec) : spec, .swaps = swaps};
  const MatmulSpec& s = plan.spec;
  if (s.m > s.n || s.m > kMostRows) return std::nullopt;
  plan.dots = s.b_strides[1] == 1 && s.k > 1;
  if (!plan.dots && s.b_strides[2] != 1) return std::nullopt;
  plan.packs_a = (plan.dots && s.a_strides[2] != 1) || s.a_dtype != s.dtype;
  Cut(plan);
  return plan;
}

// T is the type of sums and the result, B that of the large factor.
template <class T, class B = T>
class FewRowsMatmul final : public LibraryCall {
 public:
  FewRowsMatmul(const FewRowsPlan& plan, int threads)
      : plan_(plan),
        workers_(WorkersFor(plan.parts(), threads)),
        lanes_(plan.dots ? 0
                         : AddedRowsScratch<T>(plan.spec.m,
                                               std::min(plan.spec.n, plan.columns_of_part))) {}

  int64_t scratch_bytes() const override {
    return (workers_ * lanes_ + plan_.packed() + plan_.sums()) * static_cast<int64_t>(sizeof(T));
  }
  absl::Status Run(const LibraryBuffers& buffers) const override {
    const std::byte* const small = plan_.swaps ? buffers.b : buffers.a;
    const auto* b = reinterpret_cast<const B*>(plan_.swaps ? buffers.a : buffers.b);
    auto* const c = reinterpret_cast<T*>(buffers.result);
    T* const lanes = reinterpret_cast<T*>(buffers.scratch);
    T* const packed = lanes + workers_ * lanes_;
    const T* a = packed;
    if (plan_.packs_a) {
      Pack(small, packed);
    } else {
      a = reinterpret_cast<const T*>(small);
    }
    T* const sums = packed + plan_.packed();
    LAZULI_RETURN_IF_ERROR(ForEachPart(plan_.parts(), workers_, [&](Part part) {
      RunCut({a, b, c, sums, lanes + part.worker * lanes_}, part.index);
      return absl::OkStatus();
    }));
    if (plan_.term_parts > 1) AddUp(sums, c);
    return absl::OkStatus();
  }
  // The rows of a product with few columns.
  Parts parts() const override {
    const MatmulSpec& s = plan_.spec;
    const bool splits = plan_.swaps && !plan_.packs_a && plan_.term_parts == 1 && s.batch == 1 &&
                        s.n == plan_.column_parts * plan_.columns_of_part;
    const bool row_major = s.b_strides[1] == 1 && s.b_strides[2] == s.k;
    return splits ? Parts{.count = plan_.column_parts, .a = row_major} : Parts{};
  }
  absl::Status RunPart(const LibraryBuffers& buffers, Part part) const override {
    RunColumns({reinterpret_cast<const T*>(buffers.b), reinterpret_cast<const B*>(buffers.a),
                reinterpret_cast<T*>(buffers.result), nullptr,
                reinterpret_cast<T*>(buffers.scratch) + part.worker * lanes_},
               0, part.index, 0);
    return absl::OkStatus();
  }
  std::string Details() const override {
    return Str("few ", plan_.swaps ? "columns" : "rows", plan_.dots ? ", dots" : "",
               plan_.parts() > 1 ? Str(", ", plan_.parts(), " parts") : "");
  }

 private:
  int64_t Results() const { return plan_.spec.m * plan_.spec.n; }

  struct ProductArrays {
    const T* a;
    const B* b;
    T *c, *sums, *lanes;
  };
  void RunCut(const ProductArrays& arrays, int64_t part) const {
    const int64_t column = part % plan_.column_parts, rest = part / plan_.column_parts,
                  terms = plan_.dots_whole() ? 1 : plan_.term_parts, term = rest % terms,
                  product = rest / terms * plan_.products_of_part,
                  last = std::min(plan_.spec.batch, product + plan_.products_of_part);
    for (int64_t batch = product; batch < last; ++batch) RunColumns(arrays, batch, column, term);
  }
  void RunColumns(const ProductArrays& arrays, int64_t batch, int64_t column, int64_t term) const {
    const int64_t begin = column * plan_.columns_of_part,
                  end = std::min(plan_.spec.n, begin + plan_.columns_of_part);
    if (!plan_.dots_whole()) return RunOne(arrays, batch, begin, end, term);
    for (int64_t j = begin; j < end; j += kDotsAtATime) {
      for (term = 0; term < plan_.term_parts; ++term)
        RunOne(arrays, batch, j, std::min(end, j + kDotsAtATime), term);
    }
  }
  void RunOne(const ProductArrays& arrays, int64_t batch, int64_t begin, int64_t end,
              int64_t term) const {
    const auto& [a, b, c, sums, lanes] = arrays;
    const MatmulSpec& s = plan_.spec;
    const int64_t first = term * plan_.terms_of_part;
    FewRows<T, B> product{.a = a + batch * s.a_strides[0],
                          .a_row = s.a_strides[1],
                          .a_column = s.a_strides[2],
                          .b = b + batch * s.b_strides[0] + first * s.b_strides[1],
                          .b_row = s.b_strides[1],
                          .b_column = s.b_strides[2],
                          .c = c + batch * s.c_strides[0],
                          .c_row = s.c_strides[1],
                          .c_column = s.c_strides[2],
                          .rows = s.m,
                          .k = std::min(plan_.terms_of_part, s.k - first),
                          .begin = begin,
                          .end = end};
    if (plan_.packs_a) {
      product.a = a + batch * s.m * s.k;
      product.a_row = s.k;
      product.a_column = 1;
    }
    product.a += first * product.a_column;
    if (plan_.term_parts > 1) {
      product.c = sums + (term * s.batch + batch) * Results();
      product.c_row = s.n;
      product.c_column = 1;
    }
    plan_.dots ? MultiplyDots(product) : AddScaledRows(product, lanes);
  }

  void Pack(const std::byte* a, T* packed) const {
    switch (plan_.spec.a_dtype) {
      case DType::kBF16:
        return PackFrom(reinterpret_cast<const ir::bfloat16*>(a), packed);
      case DType::kF16:
        return PackFrom(reinterpret_cast<const ir::half*>(a), packed);
      case DType::kS8:
        return PackFrom(reinterpret_cast<const int8_t*>(a), packed);
      case DType::kU8:
        return PackFrom(reinterpret_cast<const uint8_t*>(a), packed);
      default:
        return PackFrom(reinterpret_cast<const T*>(a), packed);
    }
  }
  template <class A>
  void PackFrom(const A* a, T* packed) const {
    const MatmulSpec& s = plan_.spec;
    for (int64_t batch = 0; batch < s.batch; ++batch) {
      for (int64_t i = 0; i < s.m; ++i) {
        const A* row = a + batch * s.a_strides[0] + i * s.a_strides[1];
        for (int64_t p = 0; p < s.k; ++p) *packed++ = static_cast<T>(row[p * s.a_strides[2]]);
      }
    }
  }

  void AddUp(const T* sums, T* c) const {
    const MatmulSpec& s = plan_.spec;
    const int64_t all = s.batch * Results();
    for (int64_t batch = 0; batch < s.batch; ++batch) {
      for (int64_t i = 0; i < s.m; ++i) {
        for (int64_t j = 0; j < s.n; ++j) {
          const T* part = sums + (batch * s.m + i) * s.n + j;
          T sum = part[0];
          for (int64_t term = 1; term < plan_.term_parts; ++term) sum += part[term * all];
          c[batch * s.c_strides[0] + i * s.c_strides[1] + j * s.c_strides[2]] = sum;
        }
      }
    }
  }

  FewRowsPlan plan_;
  int64_t workers_;
  int64_t lanes_;  // elements of scratch memory for the lanes of one worker
};

}  // namespace

std::unique_ptr<LibraryCall> PlanFewRows(const MatmulSpec& spec, int threads) {
  if (spec.dtype != DType::kF32 && spec.dtype != DType::kF64) return nullptr;
  if (!TakesFactor(spec.dtype, spec.a_dtype) || !TakesFactor(spec.dtype, spec.b_dtype))
    return nullptr;
  std::optional<FewRowsPlan> plan = PlanOf(spec, /*swaps=*/false);
  if (!plan) plan = PlanOf(spec, /*swaps=*/true);
  if (!plan) return nullptr;
  switch (plan->spec.b_dtype) {
    case DType::kF64:
      return std::make_unique<FewRowsMatmul<double>>(*plan, threads);
    case DType::kBF16:
      return std::make_unique<FewRowsMatmul<float, ir::bfloat16>>(*plan, threads);
    case DType::kF16:
      return std::make_unique<FewRowsMatmul<float, ir::half>>(*plan, threads);
    case DType::kS8:
      return std::make_unique<FewRowsMatmul<float, int8_t>>(*plan, threads);
    case DType::kU8:
      return std::make_unique<FewRowsMatmul<float, uint8_t>>(*plan, threads);
    default:
      return std::make_unique<FewRowsMatmul<float>>(*plan, threads);
  }
}

}  // namespace lazuli::cpu
