#include "backend/cpu/runtime/fft_thunk.h"

#include <algorithm>

#include "backend/cpu/runtime/fourier.h"
#include "ir/support/parallel_for.h"

namespace lazuli::cpu {
namespace {

using Complex = Fourier::Complex;
using hlo::FftType;

// Elements of the last dimension of an array as they are in memory, to and from work memory.
template <class T>
void Load(const std::byte* from, int64_t count, Complex* to) {
  const T* elements = reinterpret_cast<const T*>(from);
  for (int64_t i = 0; i < count; ++i) to[i] = Complex(elements[i]);
}
template <class T>
void Store(const Complex* from, int64_t count, double scale, std::byte* to) {
  T* elements = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < count; ++i) {
    if constexpr (std::is_floating_point_v<T>) {
      elements[i] = static_cast<T>(from[i].real() * scale);
    } else {
      elements[i] = T(from[i] * scale);
    }
  }
}

// Calls f with a value of the host type of an element type that fft knows.
template <class F>
void VisitFftType(DType dtype, F&& f) {
  switch (dtype) {
    case DType::kF32:
      return f(float{});
    case DType::kF64:
      return f(double{});
    case DType::kC64:
      return f(std::complex<float>{});
    default:
      return f(std::complex<double>{});
  }
}

struct FftSpec {
  FftType type{};
  Dims lengths;  // of the last dimensions
  DType operand_type{}, result_type{};
  int64_t rows = 0, operand_columns = 0, result_columns = 0;
  BufferId operand = 0, result = 0, scratch = 0;
  LAZULI_ATTRS(type, lengths, operand_type, result_type, rows, operand_columns, result_columns,
               operand, result, scratch);
};

class FftThunk final : public SpecThunk<FftSpec> {
 public:
  FftThunk(ThunkInfo info, std::vector<BufferUse> uses, FftSpec spec)
      : SpecThunk(std::move(info), std::move(uses), std::move(spec)),
        columns_(spec_.lengths.back()) {
    const bool inverse = spec_.type == FftType::kIfft || spec_.type == FftType::kIrfft;
    for (int64_t n : spec_.lengths) {
      transforms_.emplace_back(n, inverse);
      if (inverse) scale_ /= static_cast<double>(n);
    }
  }

  absl::Status Execute(const RunBuffers& run) const override {
    auto* const work = run.at<Complex>(spec_.scratch);
    const bool last_at_end = spec_.type == FftType::kIrfft;
    const int64_t others = static_cast<int64_t>(transforms_.size()) - 1;
    EachRow([&](int64_t row, Complex* scratch) {
      LoadRow(run, row, work + row * columns_);
      if (!last_at_end) transforms_.back().Run(work + row * columns_, scratch);
    });
    // What the results need of the last dimension, or what is there before it is mirrored.
    const int64_t needed = std::min(spec_.operand_columns, spec_.result_columns);
    int64_t stride = columns_;
    for (int64_t d = others - 1; d >= 0; --d) {
      AlongDimension(work, transforms_[static_cast<std::size_t>(d)], stride, needed);
      stride *= transforms_[static_cast<std::size_t>(d)].size();
    }
    EachRow([&](int64_t row, Complex* scratch) {
      Complex* const x = work + row * columns_;
      if (last_at_end) {
        for (int64_t i = spec_.operand_columns; i < columns_; ++i)
          x[i] = std::conj(x[columns_ - i]);
        transforms_.back().Run(x, scratch);
      }
      StoreRow(run, row, x);
    });
    return absl::OkStatus();
  }
  std::string Details() const override { return Str(spec_.rows, " rows of ", columns_); }

 private:
  template <class F>
  void EachRow(F&& f) const {
    constexpr int64_t kWorth = 8192;  // elements for a thread
    ParallelFor(
        spec_.rows, std::max<int64_t>(1, kWorth / columns_), [&](int64_t begin, int64_t end) {
          std::vector<Complex> scratch(static_cast<std::size_t>(transforms_.back().scratch()));
          for (int64_t row = begin; row < end; ++row) f(row, scratch.data());
        });
  }

  // Lines along a dimension whose elements are `stride` apart; the first `needed` of each row.
  void AlongDimension(Complex* work, const Fourier& transform, int64_t stride,
                      int64_t needed) const {
    const int64_t size = transform.size(), inner = stride / columns_ * needed;
    const int64_t lines = spec_.rows * columns_ / (size * stride) * inner;
    ParallelFor(lines, std::max<int64_t>(1, 8192 / size), [&](int64_t begin, int64_t end) {
      std::vector<Complex> line(static_cast<std::size_t>(size)),
          scratch(static_cast<std::size_t>(transform.scratch()));
      for (int64_t l = begin; l < end; ++l) {
        const int64_t in = l % inner;
        Complex* x = work + l / inner * size * stride + in / needed * columns_ + in % needed;
        for (int64_t i = 0; i < size; ++i) line[static_cast<std::size_t>(i)] = x[i * stride];
        transform.Run(line.data(), scratch.data());
        for (int64_t i = 0; i < size; ++i) x[i * stride] = line[static_cast<std::size_t>(i)];
      }
    });
  }

  void LoadRow(const RunBuffers& run, int64_t row, Complex* x) const {
    VisitFftType(spec_.operand_type, [&]<class T>(T) {
      Load<T>(run.at(spec_.operand) + row * spec_.operand_columns * static_cast<int64_t>(sizeof(T)),
              spec_.operand_columns, x);
    });
  }
  void StoreRow(const RunBuffers& run, int64_t row, const Complex* x) const {
    VisitFftType(spec_.result_type, [&]<class T>(T) {
      Store<T>(x, spec_.result_columns, scale_,
               run.at(spec_.result) + row * spec_.result_columns * static_cast<int64_t>(sizeof(T)));
    });
  }

  int64_t columns_;                  // of the transformed rows
  std::vector<Fourier> transforms_;  // of the last dimensions
  double scale_ = 1;
};

}  // namespace

ThunkOrReason MakeFftThunk(const hlo::Instruction& fft, const std::vector<BufferId>& operands,
                           const std::vector<BufferId>& results,
                           const std::function<BufferId(int64_t)>& new_buffer) {
  const Shape& x = fft.operand(0)->shape();
  if (x.num_elements() == 0 || fft.shape().num_elements() == 0) return "it has no elements";
  for (int64_t n : fft.attrs_as<hlo::FftAttrs>().fft_length) {
    if (n > INT32_MAX)
      return "its length is above 2^31 - 1";  // squares of places must not overflow
  }
  const int64_t rows = x.num_elements() / x.dim(x.rank() - 1);
  const int64_t columns = fft.attrs_as<hlo::FftAttrs>().fft_length.back();
  const BufferId scratch = new_buffer(rows * columns * static_cast<int64_t>(sizeof(Complex)));
  return std::make_unique<FftThunk>(ThunkInfo::Of("fft", fft),
                                    std::vector<BufferUse>{{.buffer = operands[0]},
                                                           {.buffer = results[0], .write = true},
                                                           {.buffer = scratch, .write = true}},
                                    FftSpec{.type = fft.attrs_as<hlo::FftAttrs>().fft_type,
                                            .lengths = fft.attrs_as<hlo::FftAttrs>().fft_length,
                                            .operand_type = x.dtype(),
                                            .result_type = fft.shape().dtype(),
                                            .rows = rows,
                                            .operand_columns = x.dim(x.rank() - 1),
                                            .result_columns = fft.shape().dim(x.rank() - 1),
                                            .operand = operands[0],
                                            .result = results[0],
                                            .scratch = scratch});
}

ThunkKind FftThunkKind() { return ThunkKind::Of<FftThunk>("fft"); }

}  // namespace lazuli::cpu
