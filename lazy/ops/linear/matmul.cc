#include "lazy/ops/linear/matmul.h"

#include <algorithm>

#include "ir/support/wrong_type.h"
#include "lazy/ops/elementwise/elementwise.h"

namespace lazuli::lazy {
namespace {

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
  return Shape::Make(*dtype, dims);
}

lowering::Op WithBatch(lowering::Builder& b, lowering::Op x, absl::Span<const int64_t> batch) {
  Dims dims(batch.begin(), batch.end());
  dims.push_back(x.shape().dim(x.rank() - 2));
  dims.push_back(x.shape().dim(x.rank() - 1));
  return b.BroadcastTo(x, dims);
}

}  // namespace

absl::StatusOr<Shape> MatMulOp::Infer(const Shape& x, const Shape& y) const {
  return MatMulShape(x, y);
}

lowering::Op MatMulOp::Lower(lowering::Builder& b, lowering::Op x, lowering::Op y) const {
  absl::StatusOr<Shape> shape = MatMulShape(x.shape(), y.shape());
  if (!shape.ok()) return b.Error(shape.status());
  x = b.Convert(x, shape->dtype());
  y = b.Convert(y, shape->dtype());
  hlo::DotAttrs attrs;
  const int64_t n = shape->rank() - 2;
  if (y.rank() == 2) {  // one product, whose rows are those of the whole batch
    attrs.lhs_contracting_dims = {n + 1};
    attrs.rhs_contracting_dims = {0};
    return b.Dot(x, y, std::move(attrs));
  }
  const auto batch = shape->dims().first(static_cast<std::size_t>(n));
  x = WithBatch(b, x, batch);
  y = WithBatch(b, y, batch);
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
    const Tensor y = Conj(s.x(1));
    grads[0] = SumToShape(Matmul(dy, Transpose(y, -1, -2)), s.shape(0));
  }
  if (s.needs(1)) {
    const auto rows = [&](const Tensor& t) {  // of the whole batch
      if (s.shape(1).rank() > 2 || t.rank() == 2) return t;
      return Flatten(t, 0, -2);
    };
    const Tensor x = rows(Conj(s.x(0)));
    grads[1] = SumToShape(Matmul(Transpose(x, -1, -2), rows(dy)), s.shape(1));
  }
  return grads;
}

absl::Status CheckFactors(const Shape& x, const Shape& y) {
  if (x.dtype() != y.dtype()) {
    return WrongType("takes operands of one dtype, not ", x, " and ", y, "; convert one with to()");
  }
  if (x.dtype() != DType::kPred) return absl::OkStatus();
  return WrongType("takes numbers, not ", x, " and ", y, "; convert them with to()");
}
void CheckFactors(std::string_view op, const Tensor& x, const Tensor& y) {
  if (const absl::Status s = CheckFactors(x.shape(), y.shape()); !s.ok()) ThrowRecordError(op, s);
}

Tensor Matmul(const Tensor& x, const Tensor& y) {
  if (!x.defined() || !y.defined())
    ThrowRecordError("matmul",
                     InvalidArgument("operand ", x.defined() ? 1 : 0, " is an undefined tensor"));
  if (x.rank() == 0 || y.rank() == 0) {
    ThrowRecordError("matmul", InvalidArgument("operands must have rank 1 or more: ", x.shape(),
                                               " x ", y.shape()));
  }
  CheckFactors("matmul", x, y);
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

Tensor Outer(const Tensor& x, const Tensor& y) {
  if (x.rank() != 1 || y.rank() != 1) {
    ThrowRecordError("outer",
                     InvalidArgument("takes vectors, not ", x.shape(), " and ", y.shape()));
  }
  return Unsqueeze(x, 1) * Unsqueeze(y, 0);
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
  // A count, not -1, which nothing can be found for where a row has no elements.
  const auto rows = [](const Tensor& t) {
    int64_t count = 1;
    for (int64_t d = 0; d + 1 < t.rank(); ++d) count *= t.dim(d);
    return Reshape(t, {count, t.dim(t.rank() - 1)});
  };
  Tensors grads(2);
  if (s.needs(0)) grads[0] = Record(LinearOp{}, dy, Transpose(Conj(s.x(1)), 0, 1));
  if (s.needs(1)) grads[1] = Matmul(Transpose(rows(dy), 0, 1), rows(Conj(s.x(0))));
  return grads;
}
void CheckBias(std::string_view op, std::string_view what, const Tensor& bias,
               const Tensor& weight) {
  if (bias.rank() == 1 && bias.dim(0) == weight.dim(0)) return;
  ThrowRecordError(op, InvalidArgument("bias ", bias.shape(), " does not fit the ", weight.dim(0),
                                       " ", what, " of weight ", weight.shape()));
}

Tensor Linear(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  CheckFactors("linear", x, weight);
  if (weight.rank() == 1 && x.rank() > 0 && !bias.defined()) return Matmul(x, weight);
  if (!bias.defined()) return Record(LinearOp{}, x, weight);
  CheckFactors("linear", x, bias);
  if (weight.rank() == 2) CheckBias("linear", "rows", bias, weight);
  return Record(LinearOp{}, x, weight) + bias;
}

}  // namespace lazuli::lazy
