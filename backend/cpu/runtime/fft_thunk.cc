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

class FftThunk final : public Thunk {
 public:
  FftThunk(const hlo::Instruction& i, BufferId operand, BufferId result, BufferId scratch)
      : Thunk(ThunkInfo::Of("fft", i), {{.buffer = operand},
                                        {.buffer = result, .write = true},
                                        {.buffer = scratch, .write = true}}),
        operand_(operand),
        result_(result),
        scratch_(scratch),
        operand_type_(i.operand(0)->shape().dtype()),
        result_type_(i.shape().dtype()),
        attrs_(i.attrs_as<hlo::FftAttrs>()) {
    const Shape& x = i.operand(0)->shape();
    const bool inverse = attrs_.fft_type == FftType::kIfft || attrs_.fft_type == FftType::kIrfft;
    for (int64_t n : attrs_.fft_length) {
      transforms_.emplace_back(n, inverse);
      if (inverse) scale_ /= static_cast<double>(n);
    }
    columns_ = attrs_.fft_length.back();
    operand_columns_ = x.dim(x.rank() - 1);
    result_columns_ = i.shape().dim(x.rank() - 1);
    rows_ = x.num_elements() / operand_columns_;
  }

  absl::Status Execute(const RunBuffers& run) const override {
    auto* const work = run.at<Complex>(scratch_);
    const bool last_at_end = attrs_.fft_type == FftType::kIrfft;
    const int64_t others = static_cast<int64_t>(transforms_.size()) - 1;
    EachRow([&](int64_t row, Complex* scratch) {
      LoadRow(run, row, work + row * columns_);
      if (!last_at_end) transforms_.back().Run(work + row * columns_, scratch);
    });
    // What the results need of the last dimension, or what is there before it is mirrored.
    const int64_t needed = std::min(operand_columns_, result_columns_);
    int64_t stride = columns_;
    for (int64_t d = others - 1; d >= 0; --d) {
      AlongDimension(work, transforms_[static_cast<std::size_t>(d)], stride, needed);
      stride *= transforms_[static_cast<std::size_t>(d)].size();
    }
    EachRow([&](int64_t row, Complex* scratch) {
      Complex* const x = work + row * columns_;
      if (last_at_end) {
        for (int64_t i = operand_columns_; i < columns_; ++i) x[i] = std::conj(x[columns_ - i]);
        transforms_.back().Run(x, scratch);
      }
      StoreRow(run, row, x);
    });
    return absl::OkStatus();
  }
  std::string Details() const override { return Str(rows_, " rows of ", columns_); }

 private:
  template <class F>
  void EachRow(F&& f) const {
    constexpr int64_t kWorth = 8192;  // elements for a thread
    ParallelFor(rows_, std::max<int64_t>(1, kWorth / columns_), [&](int64_t begin, int64_t end) {
      std::vector<Complex> scratch(static_cast<std::size_t>(transforms_.back().scratch()));
      for (int64_t row = begin; row < end; ++row) f(row, scratch.data());
    });
  }

  // Lines along a dimension whose elements are `stride` apart; the first `needed` of each row.
  void AlongDimension(Complex* work, const Fourier& transform, int64_t stride,
                      int64_t needed) const {
    const int64_t size = transform.size(), inner = stride / columns_ * needed;
    const int64_t lines = rows_ * columns_ / (size * stride) * inner;
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
    VisitFftType(operand_type_, [&]<class T>(T) {
      Load<T>(run.at(operand_) + row * operand_columns_ * static_cast<int64_t>(sizeof(T)),
              operand_columns_, x);
    });
  }
  void StoreRow(const RunBuffers& run, int64_t row, const Complex* x) const {
    VisitFftType(result_type_, [&]<class T>(T) {
      Store<T>(x, result_columns_, scale_,
               run.at(result_) + row * result_columns_ * static_cast<int64_t>(sizeof(T)));
    });
  }

  BufferId operand_, result_, scratch_;
  DType operand_type_, result_type_;
  hlo::FftAttrs attrs_;
  std::vector<Fourier> transforms_;  // of the last dimensions
  double scale_ = 1;
  int64_t rows_ = 0, columns_ = 0, operand_columns_ = 0, result_columns_ = 0;
};

}  // namespace

std::unique_ptr<Thunk> MakeFftThunk(const hlo::Instruction& fft,
                                    const std::vector<BufferId>& operands,
                                    const std::vector<BufferId>& results,
                                    const std::function<BufferId(int64_t)>& new_buffer) {
  const Shape& x = fft.operand(0)->shape();
  if (x.num_elements() == 0 || fft.shape().num_elements() == 0) return nullptr;
  for (int64_t n : fft.attrs_as<hlo::FftAttrs>().fft_length) {
    if (n > INT32_MAX) return nullptr;  // squares of places must not overflow
  }
  const int64_t rows = x.num_elements() / x.dim(x.rank() - 1);
  const int64_t columns = fft.attrs_as<hlo::FftAttrs>().fft_length.back();
  const BufferId scratch = new_buffer(rows * columns * static_cast<int64_t>(sizeof(Complex)));
  return std::make_unique<FftThunk>(fft, operands[0], results[0], scratch);
}

}  // namespace lazuli::cpu
