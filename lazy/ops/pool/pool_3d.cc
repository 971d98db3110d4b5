// Pooling of volumes, one dim after the other, since largest elements and means are those of largest
// elements and means.
#include <algorithm>
#include <string_view>

#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/pool/pool.h"

namespace lazuli::lazy {
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
  int64_t last = room / stride + (ceil_mode && room % stride != 0 ? 1 : 0);
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

}  // namespace lazuli::lazy
