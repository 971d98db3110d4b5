#include "lazy/ops/linear.h"

#include <algorithm>

#include "ir/hlo/monoid.h"
#include "lazy/ops/elementwise.h"

namespace lazuli::lazy {
namespace {

using hlo::ConvDims;
using hlo::ConvolutionAttrs;
using hlo::WindowDim;

absl::StatusOr<Shape> MatMulShape(const Shape& x, const Shape& y) {
  if (x.rank() < 2 || y.rank() < 2)
    return InvalidArgument("operands must have rank 2 or more: ", x, " x ", y);
  if (x.dim(x.rank() - 1) != y.dim(y.rank() - 2))
    return InvalidArgument("inner dimensions differ: ", x, " x ", y);
  const std::optional<DType> dtype = Promote(x.dtype(), y.dtype());
  if (!dtype)
    return InvalidArgument("dtypes of ", x, " and ", y,
                           " have no common type; convert one with to()");
  Dims dims;
  if (x.rank() > 2 || y.rank() > 2) {
    const Shape bx(*dtype, x.dims().first(static_cast<std::size_t>(x.rank() - 2)));
    const Shape by(*dtype, y.dims().first(static_cast<std::size_t>(y.rank() - 2)));
    absl::StatusOr<Dims> batch = BroadcastDims(bx, by);
    if (!batch.ok()) return InvalidArgument("batch dims do not broadcast: ", x, " x ", y);
    dims = *batch;
  }
  dims.push_back(x.dim(x.rank() - 2));
  dims.push_back(y.dim(y.rank() - 1));
  return Shape(*dtype, dims);
}

lowering::Op WithBatch(lowering::Builder& b, lowering::Op x, absl::Span<const int64_t> batch) {
  Dims dims(batch.begin(), batch.end());
  dims.push_back(x.shape().dim(x.rank() - 2));
  dims.push_back(x.shape().dim(x.rank() - 1));
  return b.BroadcastTo(x, dims);
}

std::string PairText(const Pair& p) { return Str(p[0], "x", p[1]); }

// dim_labels bf01_oi01->bf01.
ConvDims ForwardDims() {
  ConvDims d;
  d.input_batch = 0, d.input_feature = 1, d.input_spatial = {2, 3};
  d.kernel_output_feature = 0, d.kernel_input_feature = 1, d.kernel_spatial = {2, 3};
  d.output_batch = 0, d.output_feature = 1, d.output_spatial = {2, 3};
  return d;
}

}  // namespace

absl::StatusOr<Shape> MatMulOp::Infer(const Shape& x, const Shape& y) const {
  return MatMulShape(x, y);
}

lowering::Op MatMulOp::Lower(lowering::Builder& b, lowering::Op x, lowering::Op y) const {
  absl::StatusOr<Shape> shape = MatMulShape(x.shape(), y.shape());
  if (!shape.ok()) return b.Error(shape.status());
  const auto batch = shape->dims().first(static_cast<std::size_t>(shape->rank() - 2));
  x = WithBatch(b, b.Convert(x, shape->dtype()), batch);
  y = WithBatch(b, b.Convert(y, shape->dtype()), batch);
  hlo::DotAttrs attrs;
  const int64_t n = shape->rank() - 2;
  for (int64_t i = 0; i < n; ++i) {
    attrs.lhs_batch_dims.push_back(i);
    attrs.rhs_batch_dims.push_back(i);
  }
  attrs.lhs_contracting_dims = {n + 1};
  attrs.rhs_contracting_dims = {n};
  return b.Dot(x, y, std::move(attrs));
}

Tensors MatMulOp::Vjp(const Saved& s, const Tensor& dy) const {
  Tensors grads(2);
  if (s.needs(0)) {
    const Tensor y = s.x(1);
    grads[0] = SumToShape(MatMul(dy, Transpose(y, -1, -2)), s.shape(0));
  }
  if (s.needs(1)) {
    const Tensor x = s.x(0);
    grads[1] = SumToShape(MatMul(Transpose(x, -1, -2), dy), s.shape(1));
  }
  return grads;
}

Tensor MatMul(const Tensor& x, const Tensor& y) {
  if (!x.defined() || !y.defined())
    ThrowRecordError("matmul",
                     InvalidArgument("operand ", x.defined() ? 1 : 0, " is an undefined tensor"));
  if (x.rank() == 0 || y.rank() == 0) {
    ThrowRecordError("matmul", InvalidArgument("operands must have rank 1 or more: ", x.shape(),
                                               " x ", y.shape()));
  }
  if (x.rank() >= 2 && y.rank() >= 2) return Record(MatMulOp{}, x, y);
  if (x.dim(x.rank() - 1) != y.dim(std::max<int64_t>(y.rank() - 2, 0))) {
    ThrowRecordError("matmul",
                     InvalidArgument("inner dimensions differ: ", x.shape(), " x ", y.shape()));
  }
  const Tensor r =
      Record(MatMulOp{}, x.rank() == 1 ? Unsqueeze(x, 0) : x, y.rank() == 1 ? Unsqueeze(y, 1) : y);
  const Tensor rows = x.rank() == 1 ? Squeeze(r, -2) : r;
  return y.rank() == 1 ? Squeeze(rows, -1) : rows;
}

lowering::Op LinearOp::Lower(lowering::Builder& b, lowering::Op x, lowering::Op weight) const {
  const Shape &xs = x.shape(), &ws = weight.shape();
  if (xs.rank() < 1 || ws.rank() != 2 || xs.dim(xs.rank() - 1) != ws.dim(1))
    return b.Error(InvalidArgument("x ", xs, " does not fit weight ", ws, " [out, in]"));
  const std::optional<DType> dtype = Promote(xs.dtype(), ws.dtype());
  if (!dtype)
    return b.Error(InvalidArgument("dtypes of ", xs, " and ", ws,
                                   " have no common type; convert one with to()"));
  hlo::DotAttrs attrs;
  attrs.lhs_contracting_dims = {xs.rank() - 1};
  attrs.rhs_contracting_dims = {1};
  return b.Dot(b.Convert(x, *dtype), b.Convert(weight, *dtype), std::move(attrs));
}

Tensors LinearOp::Vjp(const Saved& s, const Tensor& dy) const {
  const auto rows = [](const Tensor& t) { return Reshape(t, {-1, t.dim(t.rank() - 1)}); };
  Tensors grads(2);
  if (s.needs(0)) grads[0] = Linear(dy, Transpose(s.x(1), 0, 1));
  if (s.needs(1)) grads[1] = MatMul(Transpose(rows(dy), 0, 1), rows(s.x(0)));
  return grads;
}

Tensor Linear(const Tensor& x, const Tensor& weight) { return Record(LinearOp{}, x, weight); }

// --- convolution

absl::StatusOr<Shape> Conv2dOp::Infer(const Shape& x, const Shape& weight) const {
  if (x.rank() != 4 || weight.rank() != 4) {
    return InvalidArgument("takes x [N, C, H, W] and weight [O, C / groups, kh, kw], not ", x,
                           " and ", weight);
  }
  if (groups < 1 || x.dim(1) != weight.dim(1) * groups || weight.dim(0) % groups != 0) {
    return InvalidArgument("channels of x ", x, " do not fit weight ", weight, " with groups ",
                           groups);
  }
  if (x.dtype() != weight.dtype())
    return InvalidArgument("dtypes differ: ", x, " and ", weight, "; convert one with to()");
  Dims dims{x.dim(0), weight.dim(0)};
  for (std::size_t i = 0; i < 2; ++i) {
    const int64_t d = static_cast<int64_t>(i) + 2;
    if (stride[i] < 1 || dilation[i] < 1 || padding[i] < 0) {
      return InvalidArgument("stride ", PairText(stride), ", padding ", PairText(padding),
                             ", dilation ", PairText(dilation),
                             ": strides and dilations start at 1, padding at 0");
    }
    const int64_t room = x.dim(d) + 2 * padding[i] - ((weight.dim(d) - 1) * dilation[i] + 1);
    if (room < 0)
      return InvalidArgument("kernel of weight ", weight, " is larger than the padded input ", x);
    dims.push_back(room / stride[i] + 1);
  }
  return Shape(x.dtype(), dims);
}

lowering::Op Conv2dOp::Lower(lowering::Builder& b, lowering::Op x, lowering::Op weight) const {
  ConvolutionAttrs attrs;
  attrs.dim_labels = ForwardDims();
  attrs.feature_group_count = groups;
  for (std::size_t i = 0; i < 2; ++i) {
    attrs.window.push_back(WindowDim{.size = weight.shape().dim(static_cast<int64_t>(i) + 2),
                                     .stride = stride[i],
                                     .pad_low = padding[i],
                                     .pad_high = padding[i],
                                     .window_dilation = dilation[i]});
  }
  return b.Convolution(x, weight, std::move(attrs));
}

Tensors Conv2dOp::Vjp(const Saved& s, const Tensor& dy) const {
  Tensors grads(2);
  const Shape& x = s.shape(0);
  const Shape& w = s.shape(1);
  if (s.needs(0))
    grads[0] = Record(Conv2dInputGradOp{stride, padding, dilation, groups, {x.dim(2), x.dim(3)}},
                      dy, s.x(1));
  if (s.needs(1))
    grads[1] = Record(Conv2dWeightGradOp{stride, padding, dilation, groups, {w.dim(2), w.dim(3)}},
                      s.x(0), dy);
  return grads;
}

// dx = dy, spread by the stride, convolved with the kernel flipped in space and with its feature
// dims swapped.
lowering::Op Conv2dInputGradOp::Lower(lowering::Builder& b, lowering::Op dy,
                                      lowering::Op weight) const {
  const Shape w = weight.shape();
  ConvolutionAttrs attrs;
  attrs.dim_labels = ForwardDims();
  attrs.feature_group_count = groups;
  attrs.dim_labels.kernel_input_feature = 0;
  attrs.dim_labels.kernel_output_feature = 1;
  for (std::size_t i = 0; i < 2; ++i) {
    const int64_t d = static_cast<int64_t>(i) + 2;
    const int64_t reach = (w.dim(d) - 1) * dilation[i];
    const int64_t spread = (dy.shape().dim(d) - 1) * stride[i] + 1;
    const int64_t low = reach - padding[i];
    attrs.window.push_back(WindowDim{.size = w.dim(d),
                                     .pad_low = low,
                                     .pad_high = size[i] - spread - low + reach,
                                     .base_dilation = stride[i],
                                     .window_dilation = dilation[i]});
  }
  if (groups > 1) {  // [g * o, i, kh, kw] -> [o, g * i, kh, kw]
    const int64_t o = w.dim(0) / groups, in = w.dim(1);
    weight = b.Reshape(weight, {groups, o, in, w.dim(2), w.dim(3)});
    weight = b.Transpose(weight, {1, 0, 2, 3, 4});
    weight = b.Reshape(weight, {o, groups * in, w.dim(2), w.dim(3)});
  }
  return b.Convolution(dy, b.Reverse(weight, {2, 3}), std::move(attrs));
}

Tensors Conv2dInputGradOp::Vjp(const Saved& s, const Tensor& g) const {
  const Shape& w = s.shape(1);
  Tensors grads(2);
  if (s.needs(0)) grads[0] = Record(Conv2dOp{stride, padding, dilation, groups}, g, s.x(1));
  if (s.needs(1))
    grads[1] = Record(Conv2dWeightGradOp{stride, padding, dilation, groups, {w.dim(2), w.dim(3)}},
                      g, s.x(0));
  return grads;
}

// dw = x convolved with dy as its kernel: batch is what is summed over, so batch and feature swap
// roles.
lowering::Op Conv2dWeightGradOp::Lower(lowering::Builder& b, lowering::Op x,
                                       lowering::Op dy) const {
  ConvolutionAttrs attrs;
  ConvDims& d = attrs.dim_labels;
  d.input_batch = 1, d.input_feature = 0, d.input_spatial = {2, 3};
  d.kernel_input_feature = 0, d.kernel_output_feature = 1, d.kernel_spatial = {2, 3};
  d.output_batch = 1, d.output_feature = 0, d.output_spatial = {2, 3};
  attrs.batch_group_count = groups;
  for (std::size_t i = 0; i < 2; ++i) {
    const int64_t dim = static_cast<int64_t>(i) + 2;
    const int64_t spread = (dy.shape().dim(dim) - 1) * stride[i] + 1;
    attrs.window.push_back(WindowDim{
        .size = dy.shape().dim(dim),
        .stride = dilation[i],
        .pad_low = padding[i],
        .pad_high = (size[i] - 1) * dilation[i] + spread - x.shape().dim(dim) - padding[i],
        .window_dilation = stride[i]});
  }
  return b.Convolution(x, dy, std::move(attrs));
}

Tensors Conv2dWeightGradOp::Vjp(const Saved& s, const Tensor& g) const {
  const Shape& x = s.shape(0);
  Tensors grads(2);
  if (s.needs(0))
    grads[0] = Record(Conv2dInputGradOp{stride, padding, dilation, groups, {x.dim(2), x.dim(3)}},
                      s.x(1), g);
  if (s.needs(1)) grads[1] = Record(Conv2dOp{stride, padding, dilation, groups}, s.x(0), g);
  return grads;
}

Tensor Conv2d(const Tensor& x, const Tensor& weight, const Conv2dAttrs& a) {
  return Record(Conv2dOp{a.stride, a.padding, a.dilation, a.groups}, x, weight);
}

// --- pooling

namespace {

hlo::Window PoolWindow(const Pair& kernel, const Pair& stride, const Pair& padding) {
  hlo::Window window(2);
  for (std::size_t i = 0; i < 2; ++i) {
    window.push_back(WindowDim{
        .size = kernel[i], .stride = stride[i], .pad_low = padding[i], .pad_high = padding[i]});
  }
  return window;
}

absl::Status CheckPool(const Shape& x, const Pair& kernel, const Pair& stride,
                       const Pair& padding) {
  if (x.rank() != 4) return InvalidArgument("takes x [N, C, H, W], not ", x);
  for (std::size_t i = 0; i < 2; ++i) {
    if (kernel[i] < 1 || stride[i] < 1 || padding[i] < 0 || padding[i] * 2 > kernel[i]) {
      return InvalidArgument("kernel ", PairText(kernel), ", stride ", PairText(stride),
                             ", padding ", PairText(padding),
                             ": sizes and strides start at 1, padding is at most half the kernel");
    }
    if (x.dim(static_cast<int64_t>(i) + 2) + 2 * padding[i] < kernel[i]) {
      return InvalidArgument("kernel ", PairText(kernel), " is larger than the padded input ", x);
    }
  }
  return absl::OkStatus();
}

}  // namespace

lowering::Op MaxPool2dOp::Lower(lowering::Builder& b, lowering::Op x) const {
  if (absl::Status status = CheckPool(x.shape(), kernel, stride, padding); !status.ok())
    return b.Error(std::move(status));
  return b.ReduceWindow(lowering::Opcode::kMaximum, x, PoolWindow(kernel, stride, padding));
}

Tensors MaxPool2dOp::Vjp(const Saved& s, const Tensor& dy) const {
  return {Record(MaxPool2dGradOp{kernel, stride, padding}, s.x(), dy)};
}

lowering::Op MaxPool2dGradOp::Lower(lowering::Builder& b, lowering::Op x, lowering::Op dy) const {
  return b.SelectAndScatter(x, dy, PoolWindow(kernel, stride, padding));
}

Tensors MaxPool2dGradOp::Vjp(const Saved& s, const Tensor& g) const {
  return {Tensor(), Record(MaxPool2dPickOp{kernel, stride, padding}, s.x(), g)};
}

lowering::Op MaxPool2dPickOp::Lower(lowering::Builder& b, lowering::Op x, lowering::Op g) const {
  const hlo::Window window = PoolWindow(kernel, stride, padding);
  if (b.shapes_only()) return b.ReduceWindow(lowering::Opcode::kMaximum, g, window);
  const Shape value(x.dtype()), picked(g.dtype());
  hlo::Computation* larger =
      b.Region("pick", {value, picked, value, picked},
               [](lowering::Builder& r, absl::Span<const lowering::Op> p) {
                 const lowering::Op keep = r.Compare(hlo::ComparisonDirection::kGe, p[0], p[2]);
                 return r.Tuple({r.Select(keep, p[0], p[2]), r.Select(keep, p[1], p[3])});
               });
  const lowering::Op low = b.Constant(hlo::IdentityOf(lowering::Opcode::kMaximum, x.dtype()));
  const lowering::Op both =
      b.Add(lowering::Opcode::kReduceWindow, {x, g, low, b.Scalar(g.dtype(), 0)},
            hlo::WindowAttrs{window}, absl::MakeConstSpan(&larger, 1));
  return b.GetTupleElement(both, 1);
}

Tensors MaxPool2dPickOp::Vjp(const Saved& s, const Tensor& h) const {
  return {Tensor(), Record(MaxPool2dGradOp{kernel, stride, padding}, s.x(), h)};
}

Tensor MaxPool2d(const Tensor& x, Pair kernel, Pair stride, Pair padding) {
  return Record(MaxPool2dOp{kernel, stride, padding}, x);
}

lowering::Op AvgPool2dOp::Lower(lowering::Builder& b, lowering::Op x) const {
  absl::Status status = CheckPool(x.shape(), kernel, stride, padding);
  if (status.ok() && !IsFloat(x.dtype())) status = InvalidArgument("takes floats, not ", x.shape());
  if (!status.ok()) return b.Error(std::move(status));
  const lowering::Op sum =
      b.ReduceWindow(lowering::Opcode::kAdd, x, PoolWindow(kernel, stride, padding));
  return b.DividedBy(sum, b.Full(sum.shape(), static_cast<double>(kernel[0] * kernel[1])));
}

Tensors AvgPool2dOp::Vjp(const Saved& s, const Tensor& dy) const {
  const Pair size{s.shape().dim(2), s.shape().dim(3)};
  return {Record(AvgPool2dGradOp{kernel, stride, padding, size}, dy)};
}

// Each element of x gets the sum of dy over the windows that cover it: windows of the same kernel
// over dy, which zeros spread by the stride and surround.
lowering::Op AvgPool2dGradOp::Lower(lowering::Builder& b, lowering::Op dy) const {
  Dims low(4, 0), high(4, 0), interior(4, 0);
  for (std::size_t i = 0; i < 2; ++i) {
    const std::size_t d = i + 2;
    const int64_t spread = (dy.shape().dim(static_cast<int64_t>(d)) - 1) * stride[i] + 1;
    low[d] = kernel[i] - 1 - padding[i];
    high[d] = size[i] + kernel[i] - 1 - low[d] - spread;
    interior[d] = stride[i] - 1;
  }
  const lowering::Op spread = b.Pad(dy, b.Scalar(dy.dtype(), 0), low, high, interior);
  const lowering::Op sum =
      b.ReduceWindow(lowering::Opcode::kAdd, spread, PoolWindow(kernel, {1, 1}, {0, 0}));
  return b.DividedBy(sum, b.Full(sum.shape(), static_cast<double>(kernel[0] * kernel[1])));
}

Tensors AvgPool2dGradOp::Vjp(const Saved&, const Tensor& g) const {
  return {Record(AvgPool2dOp{kernel, stride, padding}, g)};
}

Tensor AvgPool2d(const Tensor& x, Pair kernel, Pair stride, Pair padding, bool count_padding) {
  Tensor mean = Record(AvgPool2dOp{kernel, stride, padding}, x);
  if (count_padding || padding == Pair{0, 0}) return mean;
  const Tensor ones = FullConstant(Shape(x.dtype(), {1, 1, x.dim(2), x.dim(3)}), 1, x.device());
  return mean / Record(AvgPool2dOp{kernel, stride, padding}, ones);
}

namespace {

// [to, from]: row i holds 1 / n at the n positions from floor(i from / to) to ceil((i + 1) from /
// to).
Tensor AveragingMatrix(int64_t from, int64_t to, DType dtype, backend::Device device) {
  const Dims dims{to, from};
  const Tensor row = To(Positions(dims, 0, device), DType::kF64) * static_cast<double>(from);
  const Tensor column = To(Positions(dims, 1, device), DType::kF64);
  const auto divisor = static_cast<double>(to);
  const Tensor start = Floor(row / divisor);
  const Tensor end = Ceil((row + static_cast<double>(from)) / divisor);
  const Tensor inside = LogicalAnd(Ge(column, start), Lt(column, end));
  return To(To(inside, DType::kF64) / (end - start), dtype);
}

}  // namespace

Tensor AdaptiveAvgPool2d(const Tensor& x, Pair size) {
  if (x.rank() != 4 || size[0] < 1 || size[1] < 1) {
    ThrowRecordError("adaptive_avg_pool2d",
                     InvalidArgument("takes x [N, C, H, W] and a size from 1 on, not ", x.shape(),
                                     " and ", PairText(size)));
  }
  const int64_t h = x.dim(2), w = x.dim(3);
  if (h % size[0] == 0 && w % size[1] == 0) {
    const Pair kernel{h / size[0], w / size[1]};
    return AvgPool2d(x, kernel, kernel, {0, 0}, true);
  }
  const Tensor rows = AveragingMatrix(h, size[0], x.dtype(), x.device());
  const Tensor columns = AveragingMatrix(w, size[1], x.dtype(), x.device());
  return MatMul(MatMul(rows, x), Transpose(columns, 0, 1));
}

}  // namespace lazuli::lazy
