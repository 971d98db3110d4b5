#include "backend/cpu/runtime/eigen/matmul.h"

#include <algorithm>
#include <complex>
#include <type_traits>

#include <Eigen/Core>

#include "backend/cpu/runtime/integer_matmul.h"
#include "ir/support/parallel_for.h"

namespace lazuli::cpu {
namespace {

// The part of the result that one task makes. Fixed, so that blocking does not depend on the number
// of threads.
constexpr int64_t kTileRows = 128;
constexpr int64_t kTileColumns = 512;

template <class T>
class EigenMatmul final : public LibraryCall {
 public:
  explicit EigenMatmul(const MatmulSpec& spec) : spec_(spec) {}

  absl::Status Run(const LibraryBuffers& buffers) const override {
    const int64_t down = (spec_.m + kTileRows - 1) / kTileRows;
    const int64_t across = (spec_.n + kTileColumns - 1) / kTileColumns;
    const int64_t work = std::min(kTileRows, spec_.m) * std::min(kTileColumns, spec_.n) * spec_.k;
    const int64_t grain = std::max<int64_t>(1, 65536 / std::max<int64_t>(1, work));
    ParallelFor(spec_.batch * down * across, grain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        RunBlock(reinterpret_cast<const T*>(buffers.a), reinterpret_cast<const T*>(buffers.b),
                 reinterpret_cast<T*>(buffers.result), i / (down * across),
                 i / across % down * kTileRows, i % across * kTileColumns);
      }
    });
    return absl::OkStatus();
  }
  std::string Details() const override { return "Eigen"; }

 private:
  using Matrix = Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  using RowMajorMap = Eigen::Map<const Matrix, 0, Eigen::OuterStride<>>;
  using ColumnMajorMap =
      Eigen::Map<const Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::ColMajor>, 0,
                 Eigen::OuterStride<>>;

  using Part = decltype(std::real(T()));
  using PartStride = Eigen::Stride<Eigen::Dynamic, Eigen::Dynamic>;
  using PartMatrix = Eigen::Matrix<Part, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  template <class Map>
  static Map PartOf(auto* x, int64_t part, int64_t rows, int64_t columns, int64_t row_stride,
                    int64_t column_stride) {
    using Pointer =
        std::conditional_t<std::is_const_v<std::remove_pointer_t<decltype(x)>>, const Part*, Part*>;
    return Map(reinterpret_cast<Pointer>(x) + part, rows, columns,
               PartStride(2 * row_stride, 2 * column_stride));
  }

  // Complex numbers by their parts. Eigen multiplies its products by 1 + 0i, which makes NaN of
  // infinity.
  void MultiplyParts(const T* x, const T* y, T* z, int64_t rows, int64_t columns) const {
    const auto left = [&](int64_t part) {
      return PartOf<Eigen::Map<const PartMatrix, 0, PartStride>>(
          x, part, rows, spec_.k, spec_.a_strides[1], spec_.a_strides[2]);
    };
    const auto right = [&](int64_t part) {
      return PartOf<Eigen::Map<const PartMatrix, 0, PartStride>>(
          y, part, spec_.k, columns, spec_.b_strides[1], spec_.b_strides[2]);
    };
    auto real =
        PartOf<Eigen::Map<PartMatrix, 0, PartStride>>(z, 0, rows, columns, spec_.c_strides[1], 1);
    auto imaginary =
        PartOf<Eigen::Map<PartMatrix, 0, PartStride>>(z, 1, rows, columns, spec_.c_strides[1], 1);
    real.noalias() = left(0) * right(0);
    real.noalias() -= left(1) * right(1);
    imaginary.noalias() = left(0) * right(1);
    imaginary.noalias() += left(1) * right(0);
  }

  void RunBlock(const T* a, const T* b, T* c, int64_t batch, int64_t row, int64_t column) const {
    const int64_t rows = std::min(kTileRows, spec_.m - row);
    const int64_t columns = std::min(kTileColumns, spec_.n - column);
    const auto& [a_batch, a_row, a_column] = spec_.a_strides;
    const auto& [b_batch, b_row, b_column] = spec_.b_strides;
    const T* x = a + batch * a_batch + row * a_row;
    const T* y = b + batch * b_batch + column * b_column;
    const int64_t c_row = spec_.c_strides[1];
    T* const to = c + batch * spec_.c_strides[0] + row * c_row + column;
    if constexpr (!std::is_same_v<T, Part>) {
      MultiplyParts(x, y, to, rows, columns);
      return;
    }
    Eigen::Map<Matrix, 0, Eigen::OuterStride<>> z(to, rows, columns, Eigen::OuterStride<>(c_row));
    const auto multiply = [&](const auto& left) {
      if (b_column == 1) {
        z.noalias() = left * RowMajorMap(y, spec_.k, columns, Eigen::OuterStride<>(b_row));
      } else {
        z.noalias() = left * ColumnMajorMap(y, spec_.k, columns, Eigen::OuterStride<>(b_column));
      }
    };
    if (a_column == 1) {
      multiply(RowMajorMap(x, rows, spec_.k, Eigen::OuterStride<>(a_row)));
    } else {
      multiply(ColumnMajorMap(x, rows, spec_.k, Eigen::OuterStride<>(a_column)));
    }
  }

  MatmulSpec spec_;
};

}  // namespace

std::unique_ptr<LibraryCall> PlanEigenMatmul(const MatmulSpec& spec) {
  if (spec.a_dtype != spec.dtype || spec.b_dtype != spec.dtype) return nullptr;
  switch (spec.dtype) {
    case DType::kF32:
      return std::make_unique<EigenMatmul<float>>(spec);
    case DType::kF64:
      return std::make_unique<EigenMatmul<double>>(spec);
    case DType::kC64:
      return std::make_unique<EigenMatmul<std::complex<float>>>(spec);
    case DType::kC128:
      return std::make_unique<EigenMatmul<std::complex<double>>>(spec);
    default:
      return PlanIntegerMatmul(spec);
  }
}

}  // namespace lazuli::cpu
