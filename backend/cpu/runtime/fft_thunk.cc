#include "backend/cpu/runtime/fft_thunk.h"

#include <complex>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/runtime/fourier.h"

namespace lazuli::cpu {
namespace {

using hlo::FftType;

struct FftSpec {
  FftType type{};
  Dims lengths;  // of the last dimensions
  DType operand_type{};
  int64_t rows = 0, operand_columns = 0, result_columns = 0;
  BufferId operand = 0, result = 0, scratch = 0;
  LAZULI_ATTRS(type, lengths, operand_type, rows, operand_columns, result_columns, operand, result,
               scratch);
};

// The transforms of a spec, planned once.
class FftPlan {
 public:
  virtual ~FftPlan() = default;
  virtual void Run(const std::byte* x, std::byte* y, std::byte* scratch) const = 0;
};

template <class T>
class FftPlanOf final : public FftPlan {
 public:
  using Complex = std::complex<T>;
  using Along = typename Fourier<T>::Along;

  explicit FftPlanOf(const FftSpec& spec) : spec_(spec) {
    const bool real = spec.type == FftType::kRfft || spec.type == FftType::kIrfft;
    double scale = 1;
    for (int64_t n : spec.lengths) scale /= static_cast<double>(n);
    inverse_ = spec.type == FftType::kIfft || spec.type == FftType::kIrfft;
    if (inverse_) scale_ = static_cast<T>(scale);
    for (std::size_t i = 0; i + 1 < spec.lengths.size(); ++i)
      others_.emplace_back(spec.lengths[i], Along::kColumns);
    if (real) {
      real_ = std::make_unique<RealFourier<T>>(spec.lengths.back());
    } else {
      complex_ = std::make_unique<Fourier<T>>(spec.lengths.back(), Along::kRows);
    }
  }

  void Run(const std::byte* x, std::byte* y, std::byte* scratch) const override {
    auto* const spectrum = reinterpret_cast<Complex*>(y);
    const auto* const numbers = reinterpret_cast<const Complex*>(x);
    if (spec_.type == FftType::kIrfft) {
      auto* const signal = reinterpret_cast<T*>(y);
      if (others_.empty()) return real_->Inverse(numbers, signal, spec_.rows, scale_);
      auto* const half = reinterpret_cast<Complex*>(scratch);
      TransformOthers(numbers, half, spec_.operand_columns);
      return real_->Inverse(half, signal, spec_.rows, scale_);
    }
    const int64_t n = spec_.result_columns;
    if (spec_.type == FftType::kRfft) {
      real_->Forward(reinterpret_cast<const T*>(x), spectrum, spec_.rows);
    } else {
      complex_->Rows(numbers, n, spectrum, n, spec_.rows, {inverse_, scale_});
    }
    TransformOthers(spectrum, spectrum, n);
  }

 private:
  // Transforms along the dims before the last one, which has `last` elements, the later ones first.
  void TransformOthers(const Complex* x, Complex* y, int64_t last) const {
    int64_t neighbours = last, rows = spec_.rows;
    for (auto transform = others_.rbegin(); transform != others_.rend(); ++transform) {
      rows /= transform->size();
      transform->Columns(x, y, neighbours, rows, {.inverse = inverse_});
      neighbours *= transform->size();
      x = y;
    }
  }

  FftSpec spec_;
  bool inverse_ = false;
  T scale_ = 1;
  std::unique_ptr<RealFourier<T>> real_;  // of the last dim
  std::unique_ptr<Fourier<T>> complex_;
  std::vector<Fourier<T>> others_;
};

bool IsDouble(const FftSpec& spec) {
  return spec.operand_type == DType::kF64 || spec.operand_type == DType::kC128;
}

class FftThunk final : public SpecThunk<FftSpec> {
 public:
  FftThunk(ThunkInfo info, std::vector<BufferUse> uses, FftSpec spec)
      : SpecThunk(std::move(info), std::move(uses), std::move(spec)) {
    if (IsDouble(spec_)) {
      plan_ = std::make_unique<FftPlanOf<double>>(spec_);
    } else {
      plan_ = std::make_unique<FftPlanOf<float>>(spec_);
    }
  }

  absl::Status Execute(const RunBuffers& run) const override {
    plan_->Run(run.at(spec_.operand), run.at(spec_.result), run.at(spec_.scratch));
    return absl::OkStatus();
  }
  std::string Details() const override {
    return Str(spec_.rows, " rows of ", spec_.lengths.back());
  }

 private:
  std::unique_ptr<FftPlan> plan_;
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
  // Holds half a spectrum that is transformed along its other dims before the last one.
  const bool half = fft.attrs_as<hlo::FftAttrs>().fft_type == FftType::kIrfft &&
                    fft.attrs_as<hlo::FftAttrs>().fft_length.size() > 1;
  const BufferId scratch = new_buffer(half ? x.byte_size() : 0);
  return std::make_unique<FftThunk>(ThunkInfo::Of("fft", fft),
                                    std::vector<BufferUse>{{.buffer = operands[0]},
                                                           {.buffer = results[0], .write = true},
                                                           {.buffer = scratch, .write = true}},
                                    FftSpec{.type = fft.attrs_as<hlo::FftAttrs>().fft_type,
                                            .lengths = fft.attrs_as<hlo::FftAttrs>().fft_length,
                                            .operand_type = x.dtype(),
                                            .rows = rows,
                                            .operand_columns = x.dim(x.rank() - 1),
                                            .result_columns = fft.shape().dim(x.rank() - 1),
                                            .operand = operands[0],
                                            .result = results[0],
                                            .scratch = scratch});
}

ThunkKind FftThunkKind() { return ThunkKind::Of<FftThunk>("fft"); }

}  // namespace lazuli::cpu
