// LibTorch's functions for one kind of resizing, padding or set of unique elements each. They are
// interpolate(), pad() and unique() with their words.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "lazuli/nn/functional.h"
#include "lazuli/torch/array_ref.h"
#include "lazuli/torch/tensor.h"

namespace lazuli::internal {

// By a size or by factors, of which one is given.
inline Tensor Resampled(const Tensor& x, const std::optional<std::vector<std::int64_t>>& size,
                        const char* mode, std::optional<bool> align_corners,
                        const std::optional<std::vector<double>>& factors, SourceLocation loc) {
  return nn::functional::interpolate(x, size ? Dims(*size) : Dims(),
                                     factors ? *factors : std::vector<double>(), mode,
                                     align_corners, std::nullopt, false, loc);
}

}  // namespace lazuli::internal

namespace lazuli::torch_names {

#define LAZULI_UPSAMPLE_NEAREST(n)                                                          \
  inline Tensor upsample_nearest##n##d(                                                     \
      const Tensor& x, const OptionalIntArrayRef& size,                                     \
      const std::optional<std::vector<double>>& scale_factors = std::nullopt, LAZULI_LOC) { \
    return internal::Resampled(x, size, "nearest", std::nullopt, scale_factors, loc);       \
  }
#define LAZULI_UPSAMPLE(name, mode)                                                          \
  inline Tensor name(const Tensor& x, const OptionalIntArrayRef& size, bool align_corners,   \
                     const std::optional<std::vector<double>>& scale_factors = std::nullopt, \
                     LAZULI_LOC) {                                                           \
    return internal::Resampled(x, size, mode, align_corners, scale_factors, loc);            \
  }
LAZULI_UPSAMPLE_NEAREST(1)
LAZULI_UPSAMPLE_NEAREST(2)
LAZULI_UPSAMPLE_NEAREST(3)
LAZULI_UPSAMPLE(upsample_linear1d, "linear")
LAZULI_UPSAMPLE(upsample_bilinear2d, "bilinear")
LAZULI_UPSAMPLE(upsample_bicubic2d, "bicubic")
LAZULI_UPSAMPLE(upsample_trilinear3d, "trilinear")
#undef LAZULI_UPSAMPLE_NEAREST
#undef LAZULI_UPSAMPLE

// So many elements on each side, the last dim first.
#define LAZULI_PAD(name, mode)                                              \
  inline Tensor name(const Tensor& x, const IntList& padding, LAZULI_LOC) { \
    return lazuli::pad(x, padding, mode, std::nullopt, loc);                \
  }
LAZULI_PAD(reflection_pad1d, "reflect")
LAZULI_PAD(reflection_pad2d, "reflect")
LAZULI_PAD(reflection_pad3d, "reflect")
LAZULI_PAD(replication_pad1d, "replicate")
LAZULI_PAD(replication_pad2d, "replicate")
LAZULI_PAD(replication_pad3d, "replicate")
#undef LAZULI_PAD
inline Tensor constant_pad_nd(const Tensor& x, const IntList& padding, double value = 0,
                              LAZULI_LOC) {
  return lazuli::pad(x, padding, "constant", value, loc);
}

// The slices along a dim without repetition, where each of x is among them, and how often each
// occurs; what is not asked for is undefined.
inline std::tuple<Tensor, Tensor, Tensor> unique_dim(const Tensor& x, std::int64_t dim,
                                                     bool sorted = true,
                                                     bool return_inverse = false,
                                                     bool return_counts = false, LAZULI_LOC) {
  return lazuli::unique(x, sorted, return_inverse, return_counts, dim, loc);
}
// The same of elements.
inline std::tuple<Tensor, Tensor, Tensor> _unique2(const Tensor& x, bool sorted = true,
                                                   bool return_inverse = false,
                                                   bool return_counts = false, LAZULI_LOC) {
  return lazuli::unique(x, sorted, return_inverse, return_counts, std::nullopt, loc);
}
inline std::tuple<Tensor, Tensor> _unique(const Tensor& x, bool sorted = true,
                                          bool return_inverse = false, LAZULI_LOC) {
  auto [values, inverse, counts] =
      lazuli::unique(x, sorted, return_inverse, false, std::nullopt, loc);
  return {std::move(values), std::move(inverse)};
}
inline std::tuple<Tensor, Tensor, Tensor> unique_dim_consecutive(const Tensor& x, std::int64_t dim,
                                                                 bool return_inverse = false,
                                                                 bool return_counts = false,
                                                                 LAZULI_LOC) {
  return lazuli::unique_consecutive(x, return_inverse, return_counts, dim, loc);
}

}  // namespace lazuli::torch_names
