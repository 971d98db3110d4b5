#include "backend/cpu/runtime/eigen/matmul.h"

#include <algorithm>
#include <complex>

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

  void RunBlock(const T* a, const T* b, T* c, int64_t batch, int64_t row, int64_t column) const {
    const int64_t rows = std::min(kTileRows, spec_.m - row);
    const int64_t columns = std::min(kTileColumns, spec_.n - column);
    const auto& [a_batch, a_row, a_column] = spec_.a_strides;
    const auto& [b_batch, b_row, b_column] = spec_.b_strides;
    const T* x = a + batch * a_batch + row * a_row;
    const T* y = b + batch * b_batch + column * b_column;
    const int64_t c_row = spec_.c_strides[1];
    Eigen::Map<Matrix, 0, Eigen::OuterStride<>> z(
        c + batch * spec_.c_strides[0] + row * c_row + column, rows, columns,
        Eigen::OuterStride<>(c_row));
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
