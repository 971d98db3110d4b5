// Windows for transforms, as torch.hann_window and its like.
#include <numbers>
#include <string_view>

#include "lazy/ops/core/default_type.h"
#include "lazy/ops/core/functions.h"

namespace lazuli::lazy {
namespace {

struct WindowArguments {
  std::string_view op;
  int64_t length;
  bool periodic;
  std::optional<DType> dtype;
  backend::Device device;
};

// f of n / N, N being the last n of a window whose end is its begin again, in f64.
template <class F>
Tensor Window(const WindowArguments& a, F&& f) {
  const DType dtype = a.dtype.value_or(DefaultFloat());
  if (!IsFloat(dtype)) {
    ThrowRecordError(a.op,
                     InvalidArgument("expects floating point dtypes, got ", DTypeText(dtype)));
  }
  if (a.length < 0) {
    ThrowRecordError(a.op, InvalidArgument("requires non-negative window_length, got ", a.length));
  }
  if (a.length <= 1) return FullConstant(Shape(dtype, {a.length}), 1, a.device);
  const Tensor n = Arange(a.length, DType::kF64, a.device);
  return To(f(n / static_cast<double>(a.periodic ? a.length : a.length - 1)), dtype);
}

Tensor Cosine(const Tensor& share, double turns) {
  return Cos(share * (2 * turns * std::numbers::pi));
}

Tensor Raised(const WindowArguments& a, double alpha, double beta) {
  return Window(a, [&](const Tensor& share) { return alpha - Cosine(share, 1) * beta; });
}

}  // namespace

Tensor BartlettWindow(int64_t window_length, bool periodic, std::optional<DType> dtype,
                      backend::Device device) {
  return Window({"bartlett_window", window_length, periodic, dtype, device},
                [](const Tensor& share) { return 1.0 - Abs(share * 2.0 - 1.0); });
}

Tensor BlackmanWindow(int64_t window_length, bool periodic, std::optional<DType> dtype,
                      backend::Device device) {
  return Window(
      {"blackman_window", window_length, periodic, dtype, device},
      [](const Tensor& share) { return 0.42 - Cosine(share, 1) * 0.5 + Cosine(share, 2) * 0.08; });
}

Tensor HammingWindow(int64_t window_length, bool periodic, double alpha, double beta,
                     std::optional<DType> dtype, backend::Device device) {
  return Raised({"hamming_window", window_length, periodic, dtype, device}, alpha, beta);
}

Tensor HannWindow(int64_t window_length, bool periodic, std::optional<DType> dtype,
                  backend::Device device) {
  return Raised({"hann_window", window_length, periodic, dtype, device}, 0.5, 0.5);
}

Tensor KaiserWindow(int64_t window_length, bool periodic, double beta, std::optional<DType> dtype,
                    backend::Device device) {
  return Window({"kaiser_window", window_length, periodic, dtype, device},
                [&](const Tensor& share) {
                  const Tensor off = share * 2.0 - 1.0;
                  const Tensor whole = FullConstant(Shape(DType::kF64), beta, device);
                  return I0(Sqrt(1.0 - off * off) * beta) / I0(whole);
                });
}

}  // namespace lazuli::lazy
