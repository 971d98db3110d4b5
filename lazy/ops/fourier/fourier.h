// Discrete Fourier transforms along several dims: of complex numbers, and of real numbers, whose
// spectra have a second half that is the conjugate of the first, and is left out.
//
// They lower to HLO's fft, which transforms up to three trailing dims: other dims are moved there.
// The gradient of a transform is a transform in the other direction, so that it has gradients, too.
#pragma once

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

// What the sums are multiplied by, n being the number of elements of the signal along the dims. The
// numbers are PyTorch's.
enum class FftScale : uint8_t { kOne, kOneByRootN, kOneByN };

struct FftC2cOp {
  Dims dims;
  FftScale scale;
  bool forward;
  LAZULI_OP("fft_c2c", "aten::_fft_c2c", dims, scale, forward);
  static constexpr OpDoc kDoc{
      "The Fourier transform of complex x along dims, or the inverse one, without its division.",
      {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct FftR2cOp {
  Dims dims;
  FftScale scale;
  LAZULI_OP("fft_r2c", "aten::_fft_r2c", dims, scale);
  static constexpr OpDoc kDoc{
      "The Fourier transform of real x along dims, of which the last, of n elements, keeps the "
      "first n/2 + 1.",
      {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct FftC2rOp {
  Dims dims;
  FftScale scale;
  int64_t last_size;
  LAZULI_OP("fft_c2r", "aten::_fft_c2r", dims, scale, last_size);
  static constexpr OpDoc kDoc{
      "The inverse Fourier transform, without its division, along dims, of a spectrum whose last "
      "dim has the first last_size/2 + 1 elements: a real signal of last_size.",
      {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

// Along dims that are those of x, each once. Without dims x itself.
Tensor FftC2c(const Tensor& x, absl::Span<const int64_t> dims, FftScale scale, bool forward);
Tensor FftR2c(const Tensor& x, absl::Span<const int64_t> dims, FftScale scale);
Tensor FftC2r(const Tensor& x, absl::Span<const int64_t> dims, FftScale scale, int64_t last_size);

// x as what is transformed: integers as floats of the default dtype; `complex`: real numbers as
// complex ones. Throws for floats of 16 bits or fewer.
Tensor Transformable(std::string_view op, const Tensor& x, bool complex);

}  // namespace lazuli::lazy
