#include "lazy/ops/pool/pool.h"

#include <algorithm>
#include <string_view>

#include "lazy/ops/core/wide.h"

namespace lazuli::lazy {
namespace {

// The window of an op of pool.h.
template <class T>
hlo::Window WindowOf(const T& op) {
  hlo::Window window(2);
  for (std::size_t i = 0; i < 2; ++i) {
    window.push_back({.size = op.kernel[i],
                      .stride = op.stride[i],
                      .pad_low = op.padding[i],
                      .pad_high = op.padding[i] + op.overhang[i]});
  }
  return window;
}

template <class T>
absl::Status CheckPool(const T& op, const Shape& x) {
  if (x.rank() != 4) return InvalidArgument("takes x [N, C, H, W], not ", x);
  for (std::size_t i = 0; i < 2; ++i) {
    if (op.kernel[i] < 1 || op.stride[i] < 1 || op.padding[i] < 0 ||
        op.padding[i] * 2 > op.kernel[i]) {
      return InvalidArgument("kernel ", PairText(op.kernel), ", stride ", PairText(op.stride),
                             ", padding ", PairText(op.padding),
                             ": sizes and strides start at 1, padding is at most half the kernel");
    }
    if (x.dim(static_cast<int64_t>(i) + 2) + 2 * op.padding[i] + op.overhang[i] < op.kernel[i]) {
      return InvalidArgument("kernel ", PairText(op.kernel), " is larger than the padded input ",
                             x);
    }
  }
  return absl::OkStatus();
}

double Taps(const Pair& kernel) { return static_cast<double>(kernel[0] * kernel[1]); }

// A window is summed in order, so with its size grow the error and the work of the gradient's
// windows. Larger ones that lie side by side, as those of a global mean do, are a reduction.
constexpr double kLongWindow = 64;

template <class T>
bool IsLongTiling(const T& op, const Pair& size) {
  const Pair none{0, 0};
  return Taps(op.kernel) > kLongWindow && op.kernel == op.stride && op.padding == none &&
         op.overhang == none && size[0] % op.kernel[0] == 0 && size[1] % op.kernel[1] == 0;
}

// [N, C, H, W] in which a window is two dims: [N, C, H / kh, kh, W / kw, kw].
Dims TiledDims(const Shape& x, const Pair& size, const Pair& kernel) {
  return {x.dim(0), x.dim(1), size[0] / kernel[0], kernel[0], size[1] / kernel[1], kernel[1]};
}

lowering::Op WindowMeans(lowering::Builder& b, lowering::Op x, const AvgPool2dOp& op) {
  const Pair size{x.shape().dim(2), x.shape().dim(3)};
  const lowering::Op wide = Wide(x);
  const lowering::Op sum =
      IsLongTiling(op, size)
          ? b.Reduce(lowering::Opcode::kAdd, b.Reshape(wide, TiledDims(x.shape(), size, op.kernel)),
                     {3, 5})
          : b.ReduceWindow(lowering::Opcode::kAdd, wide, WindowOf(op));
  return b.Convert(b.DividedBy(sum, b.Full(sum.shape(), Taps(op.kernel))), x.dtype());
}

}  // namespace

Pair Reach(const Pool2dAttrs& a) {
  return {(a.kernel[0] - 1) * a.dilation[0] + 1, (a.kernel[1] - 1) * a.dilation[1] + 1};
}

Pair Overhang(const Shape& x, const Pool2dAttrs& a) {
  Pair overhang{0, 0};
  if (!a.ceil_mode || x.rank() != 4 || a.stride[0] < 1 || a.stride[1] < 1) return overhang;
  for (std::size_t i = 0; i < 2; ++i) {
    // From where the first window begins to the end of x, and to where a last whole one may begin.
    const int64_t end = a.padding[i] + x.dim(static_cast<int64_t>(i) + 2);
    const int64_t whole = end + a.padding[i] - Reach(a)[i];
    int64_t begin = (whole + a.stride[i] - 1) / a.stride[i] * a.stride[i];
    if (begin >= end) begin -= a.stride[i];
    overhang[i] = std::max<int64_t>(0, begin - whole);
  }
  return overhang;
}

lowering::Op MaxPool2dOp::Lower(lowering::Builder& b, lowering::Op x) const {
  if (absl::Status status = CheckPool(*this, x.shape()); !status.ok())
    return b.Error(std::move(status));
  return b.ReduceWindow(lowering::Opcode::kMaximum, x, WindowOf(*this));
}

Tensors MaxPool2dOp::Vjp(const Saved& s, const Tensor& dy) const {
  return {Record(MaxPool2dGradOp{kernel, stride, padding, overhang}, s.x(), dy)};
}

lowering::Op MaxPool2dGradOp::Lower(lowering::Builder& b, lowering::Op x, lowering::Op dy) const {
  return b.SelectAndScatter(x, dy, WindowOf(*this));
}

Tensors MaxPool2dGradOp::Vjp(const Saved& s, const Tensor& g) const {
  return {Tensor(), Record(MaxPool2dPickOp{kernel, stride, padding, overhang}, s.x(), g)};
}

// By a reduction of (x, g, whether it is an element): the init, and the padding, which are none,
// lose against -inf, too. Of two elements the one stays that Builder::SelectAndScatter keeps.
lowering::Op MaxPool2dPickOp::Lower(lowering::Builder& b, lowering::Op x, lowering::Op g) const {
  using enum hlo::ComparisonDirection;
  using lowering::Opcode;
  const hlo::Window window = WindowOf(*this);
  if (b.shapes_only()) return b.ReduceWindow(Opcode::kMaximum, g, window);
  const Shape value(x.dtype()), picked(g.dtype()), flag(DType::kPred);
  hlo::Computation* pick = b.Region(
      "pick", {value, picked, flag, value, picked, flag},
      [](lowering::Builder& r, absl::Span<const lowering::Op> p) {
        const lowering::Op beats =
            r.Binary(Opcode::kOr, r.Compare(kGt, p[3], p[0]), r.Compare(kNe, p[3], p[3]));
        const lowering::Op none = r.Unary(Opcode::kNot, p[2]);
        const lowering::Op moves = r.Binary(Opcode::kAnd, p[5], r.Binary(Opcode::kOr, none, beats));
        return r.Tuple({r.Select(moves, p[3], p[0]), r.Select(moves, p[4], p[1]),
                        r.Binary(Opcode::kOr, p[2], p[5])});
      });
  const lowering::Op zero = b.Scalar(x.dtype(), 0), zero_g = b.Scalar(g.dtype(), 0);
  const lowering::Op is_element = b.Full(Shape(DType::kPred, x.shape().dims()), 1);
  const lowering::Op all =
      b.Add(Opcode::kReduceWindow, {x, g, is_element, zero, zero_g, b.Scalar(DType::kPred, 0)},
            hlo::WindowAttrs{window}, absl::MakeConstSpan(&pick, 1));
  return b.GetTupleElement(all, 1);
}

Tensors MaxPool2dPickOp::Vjp(const Saved& s, const Tensor& h) const {
  return {Tensor(), Record(MaxPool2dGradOp{kernel, stride, padding, overhang}, s.x(), h)};
}

lowering::Op AvgPool2dOp::Lower(lowering::Builder& b, lowering::Op x) const {
  absl::Status status = CheckPool(*this, x.shape());
  if (status.ok() && !IsFloat(x.dtype())) status = InvalidArgument("takes floats, not ", x.shape());
  if (!status.ok()) return b.Error(std::move(status));
  return WindowMeans(b, x, *this);
}

Tensors AvgPool2dOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Pair size{s.shape().dim(2), s.shape().dim(3)};
  return {Record(AvgPool2dGradOp{kernel, stride, padding, overhang, size}, dy)};
}

// Each element of x gets the sum of dy over the windows that cover it: windows of the same kernel
// over dy, which zeros spread by the stride and surround.
lowering::Op AvgPool2dGradOp::Lower(lowering::Builder& b, lowering::Op dy) const {
  if (IsLongTiling(*this, size)) {
    const lowering::Op share = b.DividedBy(Wide(dy), b.Full(Wide(dy).shape(), Taps(kernel)));
    const lowering::Op spread =
        b.Broadcast(share, TiledDims(dy.shape(), size, kernel), {0, 1, 2, 4});
    return b.Convert(b.Reshape(spread, {dy.shape().dim(0), dy.shape().dim(1), size[0], size[1]}),
                     dy.dtype());
  }
  Dims low(4, 0), high(4, 0), interior(4, 0);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::size_t d = i + 2;
    const int64_t spread = (dy.shape().dim(static_cast<int64_t>(d)) - 1) * stride[i] + 1;
    low[d] = kernel[i] - 1 - padding[i];
    high[d] = size[i] + kernel[i] - 1 - low[d] - spread;
    interior[d] = stride[i] - 1;
  }
  const lowering::Op spread = b.Pad(dy, b.Scalar(dy.dtype(), 0), low, high, interior);
  return WindowMeans(b, spread, AvgPool2dOp{kernel, {1, 1}, {0, 0}, {0, 0}});
}

Tensors AvgPool2dGradOp::Vjp(const Saved&, const Tensor& g) const {
  return {Record(AvgPool2dOp{kernel, stride, padding, overhang}, g)};
}
Tensor MeansOfWindows(const Tensor& x, const Pool2dAttrs& a, bool count_padding) {
  const Pair overhang = Overhang(x.shape(), a);
  Tensor mean = Record(AvgPool2dOp{a.kernel, a.stride, a.padding, overhang}, x);
  const bool all_count = count_padding || a.padding == Pair{0, 0};
  if (all_count && overhang == Pair{0, 0}) return mean;
  // Divided by the share of each window that counts: the mean of ones there.
  Pair size{x.dim(2), x.dim(3)}, around = a.padding;
  if (count_padding) {
    size = {size[0] + 2 * around[0], size[1] + 2 * around[1]};
    around = {0, 0};
  }
  const Tensor ones = FullConstant(Shape(x.dtype(), {1, 1, size[0], size[1]}), 1, x.device());
  return mean / Record(AvgPool2dOp{a.kernel, a.stride, around, overhang}, ones);
}

namespace {

// What the arguments say, checked.
Pool2dAttrs PoolAttrs(std::string_view op, const Tensor& x, const Pool2dAttrs& a) {
  for (int64_t d = 1; d < x.rank(); ++d) {
    if (x.dim(d) == 0)
      ThrowRecordError(op, InvalidArgument("takes images that have elements, not ", x.shape()));
  }
  if (a.dilation[0] < 1 || a.dilation[1] < 1) {
    ThrowRecordError(op,
                     InvalidArgument("dilation ", PairText(a.dilation), ": dilations start at 1"));
  }
  const MaxPool2dOp windows{Reach(a), a.stride, a.padding, Overhang(x.shape(), a)};
  if (absl::Status status = CheckPool(windows, x.shape()); !status.ok())
    ThrowRecordError(op, status);
  return a;
}

// Of windows whose elements lie side by side.
Tensor Largest(const Tensor& x, const Pool2dAttrs& a) {
  return Record(MaxPool2dOp{a.kernel, a.stride, a.padding, Overhang(x.shape(), a)}, x);
}

}  // namespace

Tensor MaxPool2d(const Tensor& x, Pair kernel, std::optional<Pair> stride, Pair padding,
                 Pair dilation, bool ceil_mode) {
  if (x.rank() == 3)
    return Squeeze(MaxPool2d(Unsqueeze(x, 0), kernel, stride, padding, dilation, ceil_mode), 0);
  const Pool2dAttrs a =
      PoolAttrs("max_pool2d", x, {kernel, stride.value_or(kernel), padding, ceil_mode, dilation});
  return dilation == Pair{1, 1} ? Largest(x, a) : LargestOfWindows(x, a).first;
}

std::pair<Tensor, Tensor> MaxPool2dWithIndices(const Tensor& x, Pair kernel,
                                               std::optional<Pair> stride, Pair padding,
                                               Pair dilation, bool ceil_mode) {
  if (x.rank() == 3) {
    const auto [y, indices] =
        MaxPool2dWithIndices(Unsqueeze(x, 0), kernel, stride, padding, dilation, ceil_mode);
    return {Squeeze(y, 0), Squeeze(indices, 0)};
  }
  const Pool2dAttrs a =
      PoolAttrs("max_pool2d", x, {kernel, stride.value_or(kernel), padding, ceil_mode, dilation});
  std::pair<Tensor, Tensor> largest = LargestOfWindows(x, a);
  // The values are one op, so that a program that reads no indices computes none.
  if (dilation == Pair{1, 1}) largest.first = Largest(x, a);
  return largest;
}

Tensor AvgPool2d(const Tensor& x, Pair kernel, std::optional<Pair> stride, Pair padding,
                 bool ceil_mode, bool count_include_pad, std::optional<int64_t> divisor) {
  if (x.rank() == 3) {
    return Squeeze(
        AvgPool2d(Unsqueeze(x, 0), kernel, stride, padding, ceil_mode, count_include_pad, divisor),
        0);
  }
  if (divisor == 0) ThrowRecordError("avg_pool2d", InvalidArgument("divisor_override is 0"));
  if (x.dtype() == DType::kPred || IsComplex(x.dtype()))
    ThrowRecordError("avg_pool2d", Unimplemented("is not implemented for ", x.shape()));
  const Pool2dAttrs a =
      PoolAttrs("avg_pool2d", x, {kernel, stride.value_or(kernel), padding, ceil_mode});
  if (!IsFloat(x.dtype())) return MeansOfIntegerWindows(x, a, count_include_pad, divisor);
  if (!divisor) return MeansOfWindows(x, a, count_include_pad);
  return InWide(x, [&](const Tensor& wide) {
    const AvgPool2dOp mean{a.kernel, a.stride, a.padding, Overhang(x.shape(), a)};
    return Record(mean, wide) * (Taps(kernel) / static_cast<double>(*divisor));
  });
}

Tensor AsImage(std::string_view op, const Tensor& x) {
  if (x.rank() != 2 && x.rank() != 3)
    ThrowRecordError(op, InvalidArgument("takes x [N, C, L], not ", x.shape()));
  return Unsqueeze(x, -2);
}

Dims OneForEachDim(std::string_view op, std::string_view what, absl::Span<const int64_t> given,
                   std::size_t n, const Dims& fallback) {
  if (given.empty() && !fallback.empty()) return fallback;
  if (given.size() == 1) return Dims(n, given[0]);
  if (given.size() == n) return Dims(given.begin(), given.end());
  ThrowRecordError(
      op, InvalidArgument(what, " must be one number or ", n, ", not (", Join(given, ", "), ")"));
}

}  // namespace lazuli::lazy
