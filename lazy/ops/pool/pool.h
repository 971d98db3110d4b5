// Pooling of images: windows of x [N, C, H, W], padded on both sides. The last windows reach `overhang`
// rows and columns beyond the padding (ceil_mode); nothing there counts.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>

#include "lazy/ops/core/functions.h"
#include "lazy/ops/core/op.h"

namespace lazuli::lazy {

struct MaxPool2dOp {
  Pair kernel, stride, padding, overhang;
  LAZULI_OP("max_pool2d", "aten::max_pool2d", kernel, stride, padding, overhang);
  static constexpr OpDoc kDoc{
      "The largest element of each window of x [N, C, H, W]; padding is never the largest.", {"x"}};
  static constexpr Saves kSaves = kSaveX;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

struct MaxPool2dGradOp {
  Pair kernel, stride, padding, overhang;
  LAZULI_OP("max_pool2d_grad", "aten::max_pool2d_with_indices_backward", kernel, stride, padding,
            overhang);
  static constexpr OpDoc kDoc{
      "Adds dy at the position of each window's maximum in x: the first of equal elements, the "
      "last NaN.",
      {"x", "dy"}};
  static constexpr Saves kSaves = kSaveX;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x, lowering::Op dy) const;
  Tensors Vjp(const Saved& s, const Tensor& g) const;
};

// The transpose of MaxPool2dGradOp, for gradients of gradients.
struct MaxPool2dPickOp {
  Pair kernel, stride, padding, overhang;
  LAZULI_OP("max_pool2d_pick", "aten::max_pool2d_pick", kernel, stride, padding, overhang);
  static constexpr OpDoc kDoc{"The element of g where each window of x has its maximum.",
                              {"x", "g"}};
  static constexpr Saves kSaves = kSaveX;
  lowering::Op Lower(lowering::Builder& b, lowering::Op x, lowering::Op g) const;
  Tensors Vjp(const Saved& s, const Tensor& h) const;
};

struct AvgPool2dOp {
  Pair kernel, stride, padding, overhang;
  LAZULI_OP("avg_pool2d", "aten::avg_pool2d", kernel, stride, padding, overhang);
  static constexpr OpDoc kDoc{"Mean of each window of x [N, C, H, W]; padding counts as zeros.",
                              {"x"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op x) const;
  Tensors Vjp(const Saved& s, const Tensor& dy) const;
};

// Gradient of avg_pool2d, whose input has the height and width `size`.
struct AvgPool2dGradOp {
  Pair kernel, stride, padding, overhang, size;
  LAZULI_OP("avg_pool2d_grad", "aten::avg_pool2d_backward", kernel, stride, padding, overhang,
            size);
  static constexpr OpDoc kDoc{"dy spread evenly over each window of avg_pool2d.", {"dy"}};
  lowering::Op Lower(lowering::Builder& b, lowering::Op dy) const;
  Tensors Vjp(const Saved& s, const Tensor& g) const;
};

// The rows and columns that a window spans.
Pair Reach(const Pool2dAttrs& a);
// How far the last window reaches beyond the padding: with ceil_mode one that begins in x, or in
// the padding before it, is one. What is no pooling has none; the op refuses it.
Pair Overhang(const Shape& x, const Pool2dAttrs& a);

// --- by the elements of each window, beside each other, whose number is part of the program
// The largest elements, and the positions in their image of the first that are.
std::pair<Tensor, Tensor> LargestOfWindows(const Tensor& x, const Pool2dAttrs& a);
// What is beyond an image counts as: below all numbers of the dtype.
double LeastOf(DType dtype);
// Sums of integers over numbers of them, rounded towards 0.
Tensor MeanOfIntegers(const Tensor& sum, const Tensor& count, DType dtype);
// Sums of integers divided by how many elements count, or by a divisor, rounded towards 0.
Tensor MeansOfIntegerWindows(const Tensor& x, const Pool2dAttrs& a, bool count_padding,
                             std::optional<int64_t> divisor);

// One number for each of n dims: the only one stands for all, none for the fallback.
Dims OneForEachDim(std::string_view op, std::string_view what, absl::Span<const int64_t> given,
                   std::size_t n, const Dims& fallback);

// [N, C, L] as an image with one row.
Tensor AsImage(std::string_view op, const Tensor& x);

// The mean of each window of floats. Without count_padding the padding in a window does not count.
Tensor MeansOfWindows(const Tensor& x, const Pool2dAttrs& a, bool count_padding);

// The elements at each place of the windows, along a new last dim: [N, C, H', W', kh * kw]. `padded`
// is x with its padding, and what the last windows reach beyond it.
Tensor Places(const Tensor& padded, const Pool2dAttrs& a);

}  // namespace lazuli::lazy
