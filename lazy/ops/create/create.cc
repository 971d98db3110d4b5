#include "lazy/ops/create/create.h"

#include <algorithm>

#include "lazy/ops/core/default_type.h"

namespace lazuli::lazy {

Tensor Full(absl::Span<const int64_t> dims, const Value& value, backend::Device device) {
  CheckShape("full", dims, value.shape().dtype());
  const Operand in(value);
  return RecordOne(FullOp{Dims(dims.begin(), dims.end())}, absl::MakeConstSpan(&in, 1), device);
}

Tensor FullConstant(const Shape& shape, double value, backend::Device device) {
  const Value number = Constant(value, shape.dtype());
  const Operand in(number);
  return RecordOne(FullOp{Dims(shape.dims().begin(), shape.dims().end())},
                   absl::MakeConstSpan(&in, 1), device);
}

Tensor Positions(absl::Span<const int64_t> dims, int64_t dim, backend::Device device) {
  return RecordOne(PositionsOp{Dims(dims.begin(), dims.end()), dim, DType::kS64}, {}, device);
}

Tensor Full(absl::Span<const int64_t> dims, const Number& value, std::optional<DType> dtype,
            backend::Device device) {
  return Full(dims, value.AsElement(dtype.value_or(value.DefaultType())), device);
}

namespace {

Tensor Filled(std::string_view op, absl::Span<const int64_t> dims, double value, DType dtype,
              backend::Device device) {
  const absl::StatusOr<Shape> shape = Shape::Make(dtype, dims);
  if (!shape.ok()) ThrowRecordError(op, shape.status());
  return FullConstant(*shape, value, device);
}

}  // namespace

Tensor Zeros(absl::Span<const int64_t> dims, std::optional<DType> dtype, backend::Device device) {
  return Filled("zeros", dims, 0, dtype.value_or(DefaultFloat()), device);
}
Tensor Ones(absl::Span<const int64_t> dims, std::optional<DType> dtype, backend::Device device) {
  return Filled("ones", dims, 1, dtype.value_or(DefaultFloat()), device);
}
Tensor Empty(absl::Span<const int64_t> dims, std::optional<DType> dtype, backend::Device device) {
  return Filled("empty", dims, 0, dtype.value_or(DefaultFloat()), device);
}
Tensor ZerosLike(const Tensor& x, std::optional<DType> dtype,
                 const std::optional<backend::Device>& device) {
  return FullConstant(Shape(dtype.value_or(x.dtype()), x.shape().dims()), 0,
                      device.value_or(x.device()));
}
Tensor OnesLike(const Tensor& x, std::optional<DType> dtype,
                const std::optional<backend::Device>& device) {
  return FullConstant(Shape(dtype.value_or(x.dtype()), x.shape().dims()), 1,
                      device.value_or(x.device()));
}
Tensor EmptyLike(const Tensor& x, std::optional<DType> dtype,
                 const std::optional<backend::Device>& device) {
  return ZerosLike(x, dtype, device);
}
Tensor FullLike(const Tensor& x, const Number& value, std::optional<DType> dtype,
                const std::optional<backend::Device>& device) {
  return Full(x.shape().dims(), value.AsElement(dtype.value_or(x.dtype())),
              device.value_or(x.device()));
}
Tensor Constant(double value, std::optional<DType> dtype, backend::Device device) {
  return Filled("constant", {}, value, dtype.value_or(DefaultFloat()), device);
}

Tensor Eye(int64_t n, std::optional<DType> dtype, backend::Device device) {
  return Eye(n, n, dtype, device);
}
Tensor Eye(int64_t n, int64_t m, std::optional<DType> dtype, backend::Device device) {
  if (n < 0 || m < 0)
    ThrowRecordError(
        "eye", InvalidArgument(n < 0 ? "n" : "m", " must not be negative, is ", n < 0 ? n : m));
  const Dims dims{n, m};
  return To(Eq(Positions(dims, 0, device), Positions(dims, 1, device)),
            dtype.value_or(DefaultFloat()));
}

Tensor ScalarTensor(const Number& s, std::optional<DType> dtype, backend::Device device) {
  return Full({}, s, dtype.value_or(DefaultFloat()), device);
}

Tensor EmptyStrided(absl::Span<const int64_t> size, absl::Span<const int64_t> stride,
                    std::optional<DType> dtype, backend::Device device) {
  constexpr char kOp[] = "empty_strided";
  if (size.size() != stride.size()) {
    ThrowRecordError(kOp, InvalidArgument("mismatch in the numbers of sizes (", Join(size, ", "),
                                          ") and strides (", Join(stride, ", "), ")"));
  }
  int64_t count = 1;
  bool empty = false;
  for (std::size_t i = 0; i < size.size(); ++i) {
    int64_t length = 0;
    if (size[i] < 0 || stride[i] < 0 || __builtin_mul_overflow(size[i] - 1, stride[i], &length) ||
        (size[i] > 0 && __builtin_add_overflow(count, length, &count))) {
      ThrowRecordError(kOp, InvalidArgument("sizes (", Join(size, ", "), ") and strides (",
                                            Join(stride, ", "), ") do not lie in memory"));
    }
    empty = empty || size[i] == 0;
  }
  const Dims row{empty ? 0 : count};
  return AsStridedView(Zeros(row, dtype, device), size, stride, std::nullopt);
}

Tensor EmptyPermuted(absl::Span<const int64_t> size, absl::Span<const int64_t> physical_layout,
                     std::optional<DType> dtype, backend::Device device) {
  constexpr char kOp[] = "empty_permuted";
  const auto rank = static_cast<int64_t>(size.size());
  Dims order, dims, back(size.size());
  for (const int64_t d : physical_layout) {
    const bool known =
        d >= 0 && d < rank && std::find(order.begin(), order.end(), d) == order.end();
    if (!known || physical_layout.size() != size.size()) break;
    back[static_cast<std::size_t>(d)] = static_cast<int64_t>(order.size());
    order.push_back(d);
    dims.push_back(size[static_cast<std::size_t>(d)]);
  }
  if (order.size() != size.size() || physical_layout.size() != size.size()) {
    ThrowRecordError(kOp,
                     InvalidArgument("physical_layout (", Join(physical_layout, ", "),
                                     ") is not an order of the dims of (", Join(size, ", "), ")"));
  }
  return PermuteView(Zeros(dims, dtype, device), back);
}

}  // namespace lazuli::lazy
