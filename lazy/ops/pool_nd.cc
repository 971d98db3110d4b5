// Pooling of other ranks than images: of volumes one dim after the other, since largest elements and
// means are those of largest elements and means; adaptive windows by gathering their elements.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "ir/support/wrong_type.h"
#include "lazy/ops/functions.h"
#include "lazy/ops/pool.h"
#include "lazy/ops/shape_ops.h"
#include "lazy/ops/wide.h"

namespace lazuli::lazy {

Dims OneForEachDim(std::string_view op, std::string_view what, absl::Span<const int64_t> given,
                   std::size_t n, const Dims& fallback) {
  if (given.empty() && !fallback.empty()) return fallback;
  if (given.size() == 1) return Dims(n, given[0]);
  if (given.size() == n) return Dims(given.begin(), given.end());
  ThrowRecordError(
      op, InvalidArgument(what, " must be one number or ", n, ", not (", Join(given, ", "), ")"));
}

namespace {

struct Volumes {
  Dims kernel, stride, padding;
};

Volumes CheckedVolumes(std::string_view op, const Tensor& x, absl::Span<const int64_t> kernel,
                       absl::Span<const int64_t> stride, absl::Span<const int64_t> padding) {
  bool fits = x.rank() == 5;
  for (int64_t d = 1; fits && d < 5; ++d) fits = x.dim(d) > 0;
  if (!fits) {
    ThrowRecordError(
        op, InvalidArgument("takes x [N, C, D, H, W] of which only N may be 0, not ", x.shape()));
  }
  if (kernel.empty()) ThrowRecordError(op, InvalidArgument("kernel has no numbers"));
  const Dims size = OneForEachDim(op, "kernel", kernel, 3, {});
  Volumes v{size, OneForEachDim(op, "stride", stride, 3, size),
            OneForEachDim(op, "padding", padding, 3, {0, 0, 0})};
  for (std::size_t i = 0; i < 3; ++i) {
    if (v.kernel[i] < 1 || v.stride[i] < 1 || v.padding[i] < 0 || v.padding[i] * 2 > v.kernel[i]) {
      ThrowRecordError(
          op, InvalidArgument("kernel (", Join(v.kernel, ", "), "), stride (", Join(v.stride, ", "),
                              "), padding (", Join(v.padding, ", "),
                              "): sizes and strides start at 1, padding is at most "
                              "half the kernel"));
    }
  }
  return v;
}

// f over height and width, then over the depth: pools of images with (kernel, stride, padding).
template <class F>
Tensor OneAfterTheOther(const Tensor& x, const Volumes& v, F&& f) {
  const auto pair = [](const Dims& d) { return Pair{d[1], d[2]}; };
  const Tensor slices = Reshape(x, {x.dim(0), x.dim(1) * x.dim(2), x.dim(3), x.dim(4)});
  const Tensor flat = f(slices, pair(v.kernel), pair(v.stride), pair(v.padding));
  const int64_t h = flat.dim(2), w = flat.dim(3);
  const Tensor columns = Reshape(flat, {x.dim(0), x.dim(1), x.dim(2), h * w});
  const Tensor y = f(columns, Pair{v.kernel[0], 1}, Pair{v.stride[0], 1}, Pair{v.padding[0], 0});
  return Reshape(y, {x.dim(0), x.dim(1), y.dim(2), h, w});
}

// x with zeros so that each window is whole.
Tensor WithWholeWindows(const Tensor& x, const Volumes& v, bool ceil_mode) {
  Dims low(5, 0), high(5, 0), none(5, 0);
  for (std::size_t i = 0; i < 3; ++i) {
    const int64_t n = x.dim(static_cast<int64_t>(i) + 2), pad = v.padding[i];
    const int64_t room = n + 2 * pad - v.kernel[i];
    int64_t last = (ceil_mode ? (room + v.stride[i] - 1) / v.stride[i] : room / v.stride[i]);
    if (last * v.stride[i] >= n + pad) --last;  // a window that begins behind x
    low[i + 2] = pad;
    high[i + 2] = std::max(last * v.stride[i] + v.kernel[i] - n - pad, -n);
  }
  return PadZeros(x, low, high, none);
}

// --- adaptive: window i of m reaches from floor(i n / m) to ceil((i + 1) n / m).

// [m, k]: the positions in each window, k being the most; the last one several times.
Tensor WindowPositions(int64_t n, int64_t m, backend::Device device) {
  int64_t k = 1;
  const auto begin = [&](int64_t i) { return i * n / m; };
  const auto end = [&](int64_t i) { return ((i + 1) * n + m - 1) / m; };
  for (int64_t i = 0; i < m; ++i) k = std::max(k, end(i) - begin(i));
  const Dims plane{m, k};
  const auto number = [](int64_t v) { return Constant(static_cast<double>(v), DType::kS64); };
  const Tensor row = Positions(plane, 0, device);
  const Tensor first = FloorDivide(row * static_cast<double>(n), number(m));
  const Tensor last =
      FloorDivide(row * static_cast<double>(n) + static_cast<double>(n + m - 1), number(m)) - 1.0;
  return Minimum(first + Positions(plane, 1, device), last);
}

Dims AdaptiveSizes(std::string_view op, const Tensor& x, absl::Span<const int64_t> size,
                   int64_t n) {
  Dims sizes(size.begin(), size.end());
  if (sizes.size() == 1) sizes.assign(At(n), size[0]);
  const bool fits = x.rank() == n + 2 && sizes.size() == At(n) &&
                    std::all_of(sizes.begin(), sizes.end(), [](int64_t s) { return s >= 0; });
  bool empty = false;
  for (int64_t d = 1; fits && d < x.rank(); ++d) empty = empty || x.dim(d) == 0;
  if (fits && !empty) return sizes;
  ThrowRecordError(op, InvalidArgument("takes x [N, C, ...] of ", n,
                                       " dims with elements and as many sizes from 0 on, not ",
                                       x.shape(), " and (", Join(size, ", "), ")"));
}

std::pair<Tensor, Tensor> AdaptiveMax(std::string_view op, const Tensor& in,
                                      absl::Span<const int64_t> size, int64_t n,
                                      bool return_indices) {
  if (in.rank() == n + 1) {
    const auto [values, indices] = AdaptiveMax(op, Unsqueeze(in, 0), size, n, return_indices);
    return {Squeeze(values, 0), return_indices ? Squeeze(indices, 0) : Tensor()};
  }
  const Dims sizes = AdaptiveSizes(op, in, size, n);
  if (!IsFloat(in.dtype()))
    ThrowRecordError(op, Unimplemented("is not implemented for ", in.shape()));
  // Windows one dim after the other as new dims behind those of the result.
  Dims image(in.shape().dims().begin() + 2, in.shape().dims().end());
  int64_t count = 1;
  for (const int64_t d : image) count *= d;
  Tensor windows = in, places = Reshape(Positions({count}, 0, in.device()), image);
  const auto gather = [](const Tensor& t, int64_t d, const Tensor& positions) {
    const Tensor row = IndexSelect(t, d, Reshape(positions, {-1}));
    return MovedimView(UnflattenView(row, d, positions.shape().dims()), {d + 1}, {-1});
  };
  for (int64_t i = 0; i < n; ++i) {
    const Tensor positions = WindowPositions(in.dim(i + 2), sizes[At(i)], in.device());
    windows = gather(windows, i + 2, positions);
    places = gather(places, i, positions);
  }
  const auto flat = [n](const Tensor& t, int64_t lead) { return Flatten(t, lead + n, -1); };
  const auto [values, at] = Max(flat(windows, 2), -1, /*keepdim=*/true);
  if (!return_indices) return {Squeeze(values, -1), Tensor()};
  Dims stretched(at.shape().dims().begin(), at.shape().dims().end());
  const Tensor all = flat(places, 0);
  stretched.back() = all.dim(all.rank() - 1);
  const Tensor indices = Gather(BroadcastTo(all, stretched), -1, at);
  return {Squeeze(values, -1), Squeeze(indices, -1)};
}

}  // namespace

Tensor MaxPool3d(const Tensor& x, absl::Span<const int64_t> kernel,
                 absl::Span<const int64_t> stride, absl::Span<const int64_t> padding,
                 absl::Span<const int64_t> dilation, bool ceil_mode) {
  constexpr char kOp[] = "max_pool3d";
  if (x.rank() == 4)
    return Squeeze(MaxPool3d(Unsqueeze(x, 0), kernel, stride, padding, dilation, ceil_mode), 0);
  if (std::any_of(dilation.begin(), dilation.end(), [](int64_t d) { return d != 1; }))
    return MaxPool3dWithIndices(x, kernel, stride, padding, dilation, ceil_mode).first;
  const Volumes v = CheckedVolumes(kOp, x, kernel, stride, padding);
  return OneAfterTheOther(x, v, [&](const Tensor& t, Pair size, Pair step, Pair around) {
    return MaxPool2d(t, size, step, around, Pair{1, 1}, ceil_mode);
  });
}

namespace {

// Where the windows along a dim lie, [windows, k], among `n` elements with `pad` more before and
// whatever is needed behind them.
struct Windows1 {
  Tensor positions;
  int64_t behind;
};
Windows1 WindowsAlong(int64_t n, int64_t kernel, int64_t stride, int64_t pad, int64_t dilation,
                      bool ceil_mode, backend::Device device) {
  const int64_t reach = dilation * (kernel - 1) + 1, room = n + 2 * pad - reach;
  if (room < 0 || dilation < 1) {
    ThrowRecordError("max_pool3d", InvalidArgument("kernel ", kernel, " with dilation ", dilation,
                                                   " is larger than the padded input of ", n));
  }
  int64_t last = ceil_mode ? (room + stride - 1) / stride : room / stride;
  if (last * stride >= n + pad) --last;  // a window that begins behind x
  const Dims plane{last + 1, kernel};
  const Tensor positions = Positions(plane, 0, device) * static_cast<double>(stride) +
                           Positions(plane, 1, device) * static_cast<double>(dilation);
  return {positions, std::max<int64_t>(last * stride + reach - n - pad, 0)};
}

}  // namespace

// By gathering the elements of each window.
std::pair<Tensor, Tensor> MaxPool3dWithIndices(const Tensor& in, absl::Span<const int64_t> kernel,
                                               absl::Span<const int64_t> stride,
                                               absl::Span<const int64_t> padding,
                                               absl::Span<const int64_t> dilation, bool ceil_mode) {
  constexpr char kOp[] = "max_pool3d";
  if (in.rank() == 4) {
    const auto [values, indices] =
        MaxPool3dWithIndices(Unsqueeze(in, 0), kernel, stride, padding, dilation, ceil_mode);
    return {Squeeze(values, 0), Squeeze(indices, 0)};
  }
  const Volumes v = CheckedVolumes(kOp, in, kernel, stride, padding);
  if (in.dtype() == DType::kPred || IsComplex(in.dtype()))
    ThrowRecordError(kOp, Unimplemented("is not implemented for ", in.shape()));
  const Dims apart = OneForEachDim(kOp, "dilation", dilation, 3, {1, 1, 1});
  const Dims image(in.shape().dims().begin() + 2, in.shape().dims().end());
  Tensor windows = in,
         places = Reshape(Positions({image[0] * image[1] * image[2]}, 0, in.device()), image);
  for (int64_t i = 0; i < 3; ++i) {
    const std::size_t d = At(i);
    const auto [positions, behind] = WindowsAlong(image[d], v.kernel[d], v.stride[d], v.padding[d],
                                                  apart[d], ceil_mode, in.device());
    const auto taken = [&, &at = positions, &more = behind](const Tensor& t, int64_t dim,
                                                            double fill) {
      Dims pad(At(2 * (t.rank() - dim)), 0);
      pad[pad.size() - 2] = v.padding[d];
      pad[pad.size() - 1] = more;
      const Tensor row = IndexSelect(ConstantPadNd(t, pad, fill), dim, Reshape(at, {-1}));
      return MovedimView(UnflattenView(row, dim, at.shape().dims()), {dim + 1}, {-1});
    };
    windows = taken(windows, i + 2, LeastOf(in.dtype()));
    places = taken(places, i, 0);
  }
  const auto [values, at] = Max(Flatten(windows, 5, -1), -1, /*keepdim=*/true);
  const Tensor all = Flatten(places, 3, -1);
  Dims stretched = DimsOf(at.shape());
  stretched.back() = all.dim(3);
  const Tensor indices = Gather(BroadcastTo(all, stretched), -1, at);
  return {Squeeze(values, -1), Squeeze(indices, -1)};
}

namespace {
// Whole sums over whole counts, cut to an integer once.
Tensor MeansOfIntegerVolumes(const Tensor& x, const Volumes& v, bool ceil_mode, bool count_padding,
                             std::optional<int64_t> divisor) {
  const auto sums = [&](const Tensor& t, const Volumes& volumes) {
    return OneAfterTheOther(
        t, volumes, [&](const Tensor& images, Pair size, Pair step, Pair around) {
          return AvgPool2d(images, size, step, around, ceil_mode, true, /*divisor_override=*/1);
        });
  };
  const Tensor sum = sums(x, v);
  if (divisor) {
    const Shape one(x.dtype());
    return MeanOfIntegers(sum, FullConstant(one, static_cast<double>(*divisor), x.device()),
                          x.dtype());
  }
  Dims ones{1, 1, x.dim(2), x.dim(3), x.dim(4)};
  Volumes counted = v;
  if (count_padding) {
    for (std::size_t i = 0; i < 3; ++i) ones[i + 2] += 2 * v.padding[i];
    counted.padding = {0, 0, 0};
  }
  Tensor count = sums(FullConstant(Shape(x.dtype(), ones), 1, x.device()), counted);
  for (int64_t d = 2; d < 5; ++d) count = Narrow(count, d, 0, sum.dim(d));
  return MeanOfIntegers(sum, count, x.dtype());
}
}  // namespace

Tensor AvgPool3d(const Tensor& x, absl::Span<const int64_t> kernel,
                 absl::Span<const int64_t> stride, absl::Span<const int64_t> padding,
                 bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor_override) {
  constexpr char kOp[] = "avg_pool3d";
  if (x.rank() == 4) {
    return Squeeze(AvgPool3d(Unsqueeze(x, 0), kernel, stride, padding, ceil_mode, count_include_pad,
                             divisor_override),
                   0);
  }
  if (divisor_override == 0) ThrowRecordError(kOp, InvalidArgument("divisor must be not zero"));
  Volumes v = CheckedVolumes(kOp, x, kernel, stride, padding);
  if (!IsFloat(x.dtype()))
    return MeansOfIntegerVolumes(x, v, ceil_mode, count_include_pad, divisor_override);
  const auto means = [&](const Tensor& t, Pair size, Pair step, Pair around) {
    return AvgPool2d(t, size, step, around, !divisor_override && ceil_mode, count_include_pad,
                     std::nullopt);
  };
  if (!divisor_override) return OneAfterTheOther(x, v, means);
  const Tensor whole = WithWholeWindows(x, v, ceil_mode);
  v.padding = {0, 0, 0};
  const auto taps = static_cast<double>(v.kernel[0] * v.kernel[1] * v.kernel[2]);
  return OneAfterTheOther(whole, v, means) * (taps / static_cast<double>(*divisor_override));
}

Tensor AdaptiveAvgPool1d(const Tensor& x, absl::Span<const int64_t> size) {
  if ((x.rank() != 2 && x.rank() != 3) || size.size() != 1) {
    ThrowRecordError("adaptive_avg_pool1d",
                     InvalidArgument("takes x [N, C, L] or [C, L] and one size, not ", x.shape(),
                                     " and (", Join(size, ", "), ")"));
  }
  return Squeeze(AdaptiveAvgPool2d(Unsqueeze(x, -2), Pair{1, size[0]}), -2);
}

Tensor AdaptiveAvgPool3d(const Tensor& x, absl::Span<const int64_t> size) {
  constexpr char kOp[] = "adaptive_avg_pool3d";
  if (x.rank() == 4) return Squeeze(AdaptiveAvgPool3d(Unsqueeze(x, 0), size), 0);
  const Dims m = AdaptiveSizes(kOp, x, size, 3);
  const Tensor slices = Reshape(x, {x.dim(0), x.dim(1) * x.dim(2), x.dim(3), x.dim(4)});
  const Tensor flat = AdaptiveAvgPool2d(slices, Pair{m[1], m[2]});
  const Tensor columns = Reshape(flat, {x.dim(0), x.dim(1), x.dim(2), m[1] * m[2]});
  const Tensor y = AdaptiveAvgPool2d(columns, Pair{m[0], m[1] * m[2]});
  return Reshape(y, {x.dim(0), x.dim(1), m[0], m[1], m[2]});
}

std::pair<Tensor, Tensor> AdaptiveMaxPool1d(const Tensor& x, absl::Span<const int64_t> size,
                                            bool return_indices) {
  return AdaptiveMax("adaptive_max_pool1d", x, size, 1, return_indices);
}
std::pair<Tensor, Tensor> AdaptiveMaxPool2d(const Tensor& x, absl::Span<const int64_t> size,
                                            bool return_indices) {
  return AdaptiveMax("adaptive_max_pool2d", x, size, 2, return_indices);
}
std::pair<Tensor, Tensor> AdaptiveMaxPool3d(const Tensor& x, absl::Span<const int64_t> size,
                                            bool return_indices) {
  return AdaptiveMax("adaptive_max_pool3d", x, size, 3, return_indices);
}

Tensor InstanceNorm(const Tensor& x, const Tensor& running_mean, const Tensor& running_var,
                    const Tensor& weight, const Tensor& bias, bool use_input_stats,
                    const Number& momentum, double eps) {
  constexpr char kOp[] = "instance_norm";
  if (x.rank() < 2) ThrowRecordError(kOp, InvalidArgument("takes x [N, C, ...], not ", x.shape()));
  const int64_t n = x.dim(0), channels = x.dim(1);
  if (!use_input_stats && !(running_mean.defined() && running_var.defined())) {
    ThrowRecordError(kOp, InvalidArgument("expected running_mean and running_var to be defined "
                                          "when use_input_stats is false"));
  }
  if (!use_input_stats)
    return BatchNorm(x, running_mean, running_var, weight, bias, /*training=*/false, momentum, eps);
  int64_t count = 1;
  for (int64_t d = 2; d < x.rank(); ++d) count *= x.dim(d);
  if (count < 2) {
    ThrowRecordError(kOp, InvalidArgument("expected more than 1 spatial element when training, got "
                                          "input size ",
                                          x.shape()));
  }
  // The samples are channels of one, and what is running the mean of theirs.
  Dims dims = DimsOf(x.shape());
  dims[0] = 1;
  dims[1] = n * channels;
  const bool running = running_mean.defined() && running_var.defined();
  const auto each = [&](const Tensor& t) {
    return running ? Clone(Repeat(Detach(t), {n})) : Tensor();
  };
  const Tensor means = each(running_mean), variances = each(running_var);
  const Tensor y = Reshape(BatchNorm(Reshape(x, dims), means, variances, Tensor(), Tensor(),
                                     /*training=*/true, momentum, eps),
                           x.shape().dims());
  if (running) {
    const GradModeGuard no_grad(false);
    const auto mean_of = [&](const Tensor& t) { return Mean(Reshape(t, {n, channels}), {0}); };
    Update(kOp, running_mean, [&] { return mean_of(means); });
    Update(kOp, running_var, [&] { return mean_of(variances); });
  }
  const Dims column = ChannelDims(x.shape());
  const auto stretched = [&](std::string_view what, const Tensor& t) {
    if (t.rank() != 1 || t.dim(0) != channels) {
      ThrowRecordError(
          kOp, InvalidArgument(what, " is ", t.shape(), ", its dims must be (", channels, ")"));
    }
    return Reshape(t, column);
  };
  Tensor z = y;
  if (weight.defined()) z = z * stretched("weight", weight);
  if (bias.defined()) z = z + stretched("bias", bias);
  return z;
}

// --- dropout

namespace {

// Whether something is dropped.
bool Drops(std::string_view op, const Tensor& x, double p, bool train) {
  if (!(p >= 0 && p <= 1)) ThrowRecordError(op, InvalidArgument("p must be in [0, 1], is ", p));
  if (!train || p == 0) return false;
  if (!IsFloat(x.dtype())) ThrowRecordError(op, WrongType("takes floats, not ", x.shape()));
  return true;
}

// Ones for each of the channels, of which dropout makes the factors of all their elements.
Tensor OfChannels(std::string_view op, const Tensor& x) {
  if (x.rank() < 2) {
    ThrowRecordError(op, InvalidArgument("feature dropout requires at least 2 dimensions in the "
                                         "input: ",
                                         x.shape()));
  }
  Dims dims(At(x.rank()), 1);
  dims[0] = x.dim(0);
  dims[1] = x.dim(1);
  return FullConstant(Shape(x.dtype(), dims), 1, x.device());
}

// What is dropped becomes -1.758..., the limit of selu, and all is scaled to the mean and variance
// that it had.
Tensor AlphaDropped(const Tensor& x, const Tensor& like, double p) {
  constexpr double kLimit = -1.7580993408473766;
  if (p == 1) return x * 0.0;
  const Tensor kept =
      Ne(Dropout(FullConstant(like.shape(), 1, x.device()), p), Constant(0, like.dtype()));
  const double a = 1 / std::sqrt((kLimit * kLimit * p + 1) * (1 - p));
  return Where(kept, x * a, Constant(kLimit * a, x.dtype())) - kLimit * a * p;
}

}  // namespace

Tensor FeatureDropout(const Tensor& x, double p, bool train) {
  if (!Drops("feature_dropout", x, p, train)) return x;
  return p == 1 ? x * 0.0 : x * Dropout(OfChannels("feature_dropout", x), p);
}
Tensor AlphaDropout(const Tensor& x, double p, bool train) {
  if (!Drops("alpha_dropout", x, p, train)) return x;
  return p == 1 ? x * 0.0 : AlphaDropped(x, x, p);
}
Tensor FeatureAlphaDropout(const Tensor& x, double p, bool train) {
  if (!Drops("feature_alpha_dropout", x, p, train)) return x;
  return p == 1 ? x * 0.0 : AlphaDropped(x, OfChannels("feature_alpha_dropout", x), p);
}

}  // namespace lazuli::lazy
