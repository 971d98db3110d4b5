// Convolutions made of that of images: of volumes, and transposed ones of all ranks.
#include <algorithm>
#include <string_view>

#include "lazy/ops/convolution/convolution.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/linear/matmul.h"

namespace lazuli::lazy {

Dims Sizes(std::string_view op, std::string_view what, absl::Span<const int64_t> given, int64_t n,
           int64_t fallback, int64_t least) {
  Dims sizes(At(n), given.empty() ? fallback : given[0]);
  if (given.size() == sizes.size()) sizes.assign(given.begin(), given.end());
  if ((given.size() > 1 && given.size() != sizes.size()) ||
      std::any_of(sizes.begin(), sizes.end(), [&](int64_t v) { return v < least; })) {
    ThrowRecordError(op, InvalidArgument(what, " must be one number or ", n, " from ", least,
                                         " on, not (", Join(given, ", "), ")"));
  }
  return sizes;
}

namespace {

struct Convolving {
  Dims stride, padding, dilation;
  int64_t groups;
};

Tensor WithBias(std::string_view op, const Tensor& y, const Tensor& bias) {
  if (!bias.defined()) return y;
  if (bias.rank() != 1 || bias.dim(0) != y.dim(1) || bias.dtype() != y.dtype()) {
    ThrowRecordError(
        op, InvalidArgument("bias ", bias.shape(), " must have a number for each channel of ",
                            y.shape(), ", of its dtype"));
  }
  Dims dims(At(y.rank()), 1);
  dims[1] = y.dim(1);
  return y + Reshape(bias, dims);
}

// Of [N, C, D, H, W]: the taps along the depth are channels of images [N * D', C * kd, H, W].
Tensor OfVolumes(const Tensor& x, const Tensor& weight, const Convolving& c) {
  const int64_t n = x.dim(0), channels = x.dim(1), taps = weight.dim(2);
  Dims low(5, 0), none(5, 0);
  low[2] = c.padding[0];
  const Tensor padded = PadZeros(x, low, low, none);
  const int64_t room = padded.dim(2) - c.dilation[0] * (taps - 1) - 1;
  const int64_t depth = room < 0 ? 0 : room / c.stride[0] + 1;
  Tensors slices;
  for (int64_t t = 0; t < taps; ++t) {
    Dims starts(5, 0), limits = DimsOf(padded.shape()), steps(5, 1);
    starts[2] = t * c.dilation[0];
    limits[2] = starts[2] + (depth - 1) * c.stride[0] + 1;
    steps[2] = c.stride[0];
    slices.push_back(Slice(padded, starts, limits, steps));
  }
  const Tensor apart = Permute(Stack(slices, 2), {0, 3, 1, 2, 4, 5});
  const Tensor images = Reshape(apart, {n * depth, channels * taps, x.dim(3), x.dim(4)});
  const Tensor kernel =
      Reshape(weight, {weight.dim(0), weight.dim(1) * taps, weight.dim(3), weight.dim(4)});
  const Tensor y = Conv2d(images, kernel, Tensor(),
                          {{c.stride[1], c.stride[2]},
                           {c.padding[1], c.padding[2]},
                           {c.dilation[1], c.dilation[2]},
                           c.groups});
  return Permute(Reshape(y, {n, depth, y.dim(1), y.dim(2), y.dim(3)}), {0, 2, 1, 3, 4});
}

void CheckVolumes(const Tensor& x, const Tensor& weight, const Convolving& c) {
  bool fits = x.rank() == 5 && weight.rank() == 5 && c.groups > 0 &&
              x.dim(1) == weight.dim(1) * c.groups && weight.dim(0) % c.groups == 0;
  for (int64_t i = 0; fits && i < 3; ++i) {
    const int64_t reach = c.dilation[At(i)] * (weight.dim(i + 2) - 1) + 1;
    fits = weight.dim(i + 2) > 0 && x.dim(i + 2) + 2 * c.padding[At(i)] >= reach;
  }
  if (fits) return;
  ThrowRecordError("conv3d",
                   InvalidArgument("takes x [N, C, D, H, W] and weight [O, C / groups, kd, "
                                   "kh, kw] no larger than the padded x, not ",
                                   x.shape(), " and ", weight.shape(), " with groups ", c.groups));
}

struct Transposing {
  std::string_view op;
  int64_t n;  // dims
  Convolving c;
  Dims output_padding;
};

// Sizes of the result; throws where operands do not fit.
Dims CheckedTransposed(const Transposing& t, const Tensor& x, const Tensor& weight) {
  bool fits = x.rank() == t.n + 2 && weight.rank() == t.n + 2 && t.c.groups > 0 &&
              x.dim(1) == weight.dim(0) && weight.dim(0) % t.c.groups == 0;
  if (!fits) {
    ThrowRecordError(
        t.op, InvalidArgument("takes x [N, C, ...] and weight [C, O / groups, ...] of ", t.n,
                              " dims, not ", x.shape(), " and ", weight.shape(), " with groups ",
                              t.c.groups));
  }
  CheckFactors(t.op, x, weight);
  Dims sizes;
  for (int64_t i = 0; i < t.n; ++i) {
    const std::size_t d = At(i);
    if (t.output_padding[d] >= std::max(t.c.stride[d], t.c.dilation[d])) {
      ThrowRecordError(t.op, InvalidArgument("output padding must be smaller than either stride or "
                                             "dilation, but got output_padding (",
                                             Join(t.output_padding, ", "), ")"));
    }
    sizes.push_back((x.dim(i + 2) - 1) * t.c.stride[d] - 2 * t.c.padding[d] +
                    t.c.dilation[d] * (weight.dim(i + 2) - 1) + t.output_padding[d] + 1);
    fits = fits && sizes.back() > 0;
  }
  if (!fits) {
    ThrowRecordError(t.op, InvalidArgument("the result of ", x.shape(), " and ", weight.shape(),
                                           " would have the sizes (", Join(sizes, ", "), ")"));
  }
  return sizes;
}

Tensor TransposedOfImages(const Transposing& t, const Tensor& x, const Tensor& weight) {
  const Dims size = CheckedTransposed(t, x, weight);
  const auto pair = [](const Dims& d) { return Pair{d[0], d[1]}; };
  return Record(Conv2dInputGradOp{pair(t.c.stride), pair(t.c.padding), pair(t.c.dilation),
                                  t.c.groups, pair(size)},
                x, weight);
}

// A convolution of x, with zeros between and around its elements, with the kernel turned round.
Tensor TransposedOfVolumes(const Transposing& t, const Tensor& x, const Tensor& weight) {
  CheckedTransposed(t, x, weight);
  Dims low(5, 0), high(5, 0), between(5, 0), inner = DimsOf(weight.shape());
  for (std::size_t i = 0; i < 3; ++i) {
    low[i + 2] = t.c.dilation[i] * (weight.dim(static_cast<int64_t>(i) + 2) - 1) - t.c.padding[i];
    high[i + 2] = low[i + 2] + t.output_padding[i];
    between[i + 2] = t.c.stride[i] - 1;
  }
  const int64_t groups = t.c.groups, in = weight.dim(0) / groups, out = weight.dim(1);
  inner.erase(inner.begin(), inner.begin() + 2);
  Dims apart{groups, in, out}, joined{groups * out, in};
  apart.insert(apart.end(), inner.begin(), inner.end());
  joined.insert(joined.end(), inner.begin(), inner.end());
  const Tensor turned = Flip(weight, {2, 3, 4});
  const Tensor kernel = Reshape(Transpose(Reshape(turned, apart), 1, 2), joined);
  return OfVolumes(PadZeros(x, low, high, between), kernel,
                   {{1, 1, 1}, {0, 0, 0}, t.c.dilation, groups});
}

// Of images, as volumes of one slice.
Tensor TransposedBeyond(Transposing t, const Tensor& x, const Tensor& weight) {
  CheckedTransposed(t, x, weight);
  t.n = 3;
  for (Dims* d : {&t.c.stride, &t.c.dilation}) d->insert(d->begin(), 1);
  for (Dims* d : {&t.c.padding, &t.output_padding}) d->insert(d->begin(), 0);
  return Squeeze(TransposedOfVolumes(t, Unsqueeze(x, 2), Unsqueeze(weight, 2)), 2);
}

struct TransposedArguments {
  absl::Span<const int64_t> stride, padding, output_padding, dilation;
  int64_t groups;
};

Transposing CheckedArguments(std::string_view op, int64_t n, const TransposedArguments& a) {
  return {op,
          n,
          {Sizes(op, "stride", a.stride, n, 1, 1), Sizes(op, "padding", a.padding, n, 0, 0),
           Sizes(op, "dilation", a.dilation, n, 1, 1), a.groups},
          Sizes(op, "output_padding", a.output_padding, n, 0, 0)};
}

}  // namespace

Tensor Conv3d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              absl::Span<const int64_t> stride, absl::Span<const int64_t> padding,
              absl::Span<const int64_t> dilation, int64_t groups) {
  if (x.rank() == 4 && weight.rank() == 5) {
    return Squeeze(Conv3d(Unsqueeze(x, 0), weight, bias, stride, padding, dilation, groups), 0);
  }
  const Convolving c{Sizes("conv3d", "stride", stride, 3, 1, 1),
                     Sizes("conv3d", "padding", padding, 3, 0, 0),
                     Sizes("conv3d", "dilation", dilation, 3, 1, 1), groups};
  CheckVolumes(x, weight, c);
  return WithBias("conv3d", OfVolumes(x, weight, c), bias);
}

Tensor ConvTranspose1d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                       absl::Span<const int64_t> stride, absl::Span<const int64_t> padding,
                       absl::Span<const int64_t> output_padding, int64_t groups,
                       absl::Span<const int64_t> dilation) {
  constexpr char kOp[] = "conv_transpose1d";
  if (x.rank() == 2 && weight.rank() == 3) {
    return Squeeze(ConvTranspose1d(Unsqueeze(x, 0), weight, bias, stride, padding, output_padding,
                                   groups, dilation),
                   0);
  }
  Transposing t = CheckedArguments(kOp, 1, {stride, padding, output_padding, dilation, groups});
  CheckedTransposed(t, x, weight);
  for (Dims* d : {&t.c.stride, &t.c.dilation}) d->insert(d->begin(), 1);
  for (Dims* d : {&t.c.padding, &t.output_padding}) d->insert(d->begin(), 0);
  t.n = 2;
  const bool beyond = t.output_padding[1] >= t.c.stride[1];
  const Tensor image = Unsqueeze(x, -2), kernel = Unsqueeze(weight, -2);
  const Tensor y =
      beyond ? TransposedBeyond(t, image, kernel) : TransposedOfImages(t, image, kernel);
  return WithBias(kOp, Squeeze(y, -2), bias);
}

Tensor ConvTranspose2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                       absl::Span<const int64_t> stride, absl::Span<const int64_t> padding,
                       absl::Span<const int64_t> output_padding, int64_t groups,
                       absl::Span<const int64_t> dilation) {
  constexpr char kOp[] = "conv_transpose2d";
  if (x.rank() == 3 && weight.rank() == 4) {
    return Squeeze(ConvTranspose2d(Unsqueeze(x, 0), weight, bias, stride, padding, output_padding,
                                   groups, dilation),
                   0);
  }
  const Transposing t =
      CheckedArguments(kOp, 2, {stride, padding, output_padding, dilation, groups});
  // Elements that no window reaches, which are no part of a gradient of conv2d().
  const bool beyond = t.output_padding[0] >= t.c.stride[0] || t.output_padding[1] >= t.c.stride[1];
  const Tensor y = beyond ? TransposedBeyond(t, x, weight) : TransposedOfImages(t, x, weight);
  return WithBias(kOp, y, bias);
}

Tensor ConvTranspose3d(const Tensor& x, const Tensor& weight, const Tensor& bias,
                       absl::Span<const int64_t> stride, absl::Span<const int64_t> padding,
                       absl::Span<const int64_t> output_padding, int64_t groups,
                       absl::Span<const int64_t> dilation) {
  constexpr char kOp[] = "conv_transpose3d";
  if (x.rank() == 4 && weight.rank() == 5) {
    return Squeeze(ConvTranspose3d(Unsqueeze(x, 0), weight, bias, stride, padding, output_padding,
                                   groups, dilation),
                   0);
  }
  const Transposing t =
      CheckedArguments(kOp, 3, {stride, padding, output_padding, dilation, groups});
  return WithBias(kOp, TransposedOfVolumes(t, x, weight), bias);
}

}  // namespace lazuli::lazy
