#include "lazuli/ops.h"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "cpp_api/src/inplace.h"
#include "cpp_api/src/operands.h"
#include "lazy/ops/elementwise.h"
#include "lazy/ops/functions.h"
#include "lazy/tensor/random.h"

namespace lazuli {
namespace {

using Locs = SourceLocation;

std::pair<Tensor, Tensor> Wrapped(std::pair<lazy::Tensor, lazy::Tensor> pair) {
  return {TensorAccess::Wrap(std::move(pair.first)), TensorAccess::Wrap(std::move(pair.second))};
}

template <class F>
Tensor OfOperands(std::string_view op, const Operand& x, const Operand& y, F f) {
  // The line of a mixed expression is where its tensor stands.
  return CallTensor(x.tensor() != nullptr ? x.loc() : y.loc(), [&] {
    if (x.tensor() == nullptr && y.tensor() == nullptr) {
      lazy::ThrowRecordError(op, ir::InvalidArgument("takes at least one tensor, not two numbers"));
    }
    return f();
  });
}

Tensor Binary(std::string_view op, BinaryFunction f, NumberUse use, const Operand& x,
              const Operand& y) {
  return OfOperands(op, x, y, [&] {
    // The exponent of a tensor is part of the program where it is a number.
    if (f == &lazy::Pow && x.tensor() != nullptr && y.scalar() != nullptr)
      return lazy::PowNumber(In(*x.tensor(), op), TensorAccess::ToNumber(*y.scalar()));
    const OperandHolder l = Hold(op, 0, x, y, use), r = Hold(op, 1, y, x, use);
    return f(l.get(), r.get());
  });
}

// Whether x is of integers that a number may be too large for.
bool IsNarrowInteger(const Operand& x) {
  if (x.tensor() == nullptr || !x.tensor()->defined()) return false;
  const ir::DType dtype = Unwrap(x.tensor()->dtype());
  return ir::IsIntegral(dtype) && ir::Row(dtype).bits < 64;
}
bool IsInteger(const Operand& x) {
  return x.scalar() != nullptr && TensorAccess::ToNumber(*x.scalar()).is_integer();
}

// Integers and a whole number are compared as such, also where the dtype does not hold the number.
Tensor Compare(std::string_view op, BinaryFunction f, const Operand& x, const Operand& y) {
  constexpr NumberUse kExact{lazy::Accepts::kReal, lazy::Overflow::kRefuseAny};
  if (!(IsNarrowInteger(x) && IsInteger(y)) && !(IsInteger(x) && IsNarrowInteger(y)))
    return Binary(op, f, kExact, x, y);
  return OfOperands(op, x, y, [&] {
    const auto number = [](const Operand& o) {
      return TensorAccess::OperandSlot(o, ir::DType::kS64, lazy::Overflow::kRefuseAny);
    };
    const auto tensor = [&](const Operand& o) {
      return lazy::To(In(*o.tensor(), op), ir::DType::kS64);
    };
    return x.tensor() != nullptr ? f(tensor(x), number(y)) : f(number(x), tensor(y));
  });
}

// How a row takes a number: arithmetic wraps it, but the larger or smaller of two is one of them.
constexpr NumberUse UseOf(lazy::Accepts accepts, hlo::Opcode opcode) {
  const bool picks = opcode == hlo::Opcode::kMaximum || opcode == hlo::Opcode::kMinimum;
  return {accepts, picks ? lazy::Overflow::kRefuseAny : lazy::Overflow::kWrap};
}

}  // namespace

// --- from the rows of lazy/ops
#define LAZULI_UNARY(struct_name, function, public_name, ...)                    \
  Tensor public_name(const Tensor& x, SourceLocation loc) {                      \
    return CallTensor(loc, [&] { return lazy::function(In(x, #public_name)); }); \
  }
#include "lazy/ops/unary.def"
#undef LAZULI_UNARY
#define LAZULI_BINARY(struct_name, function, public_name, opcode, accepts, ...) \
  Tensor public_name(const Operand& x, const Operand& y) {                      \
    return Binary(#public_name, lazy::function,                                 \
                  UseOf(lazy::Accepts::accepts, hlo::Opcode::opcode), x, y);    \
  }
#include "lazy/ops/binary.def"
#undef LAZULI_BINARY
#define LAZULI_COMPARE(struct_name, function, public_name, ...) \
  Tensor public_name(const Operand& x, const Operand& y) {      \
    return Compare(#public_name, lazy::function, x, y);         \
  }
#include "lazy/ops/compare.def"
#undef LAZULI_COMPARE

// --- elementwise with a signature of their own
Tensor relu(const Tensor& x, Locs loc) {
  return CallTensor(loc, [&] { return lazy::Relu(In(x, "relu")); });
}
Tensor remainder(const Operand& x, const Operand& y) {
  return Binary("remainder", lazy::Remainder, kArithmetic, x, y);
}
Tensor floor_divide(const Operand& x, const Operand& y) {
  return Binary("floor_divide", lazy::FloorDivide, kArithmetic, x, y);
}
Tensor square(const Tensor& x, Locs loc) { return pow(x, 2, loc); }
Tensor reciprocal(const Tensor& x, Locs loc) { return pow(x, -1.0, loc); }
Tensor pow(const Tensor& x, const Scalar& exponent, Locs loc) {
  return CallTensor(
      loc, [&] { return lazy::PowNumber(In(x, "pow"), TensorAccess::ToNumber(exponent)); });
}
Tensor where(const Tensor& condition, const Operand& on_true, const Operand& on_false) {
  return CallTensor(on_true.loc(), [&] {
    const lazy::Tensor c = In(condition, "where");
    const OperandHolder l = Hold("where", 1, on_true, on_false, {}),
                        r = Hold("where", 2, on_false, on_true, {});
    return lazy::Where(c, l.get(), r.get());
  });
}
Tensor clamp(const Tensor& x, const std::optional<Scalar>& low, const std::optional<Scalar>& high,
             Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensor t = In(x, "clamp");
    if (!low && !high) lazy::ThrowRecordError("clamp", ir::InvalidArgument("takes a bound"));
    // A bound of floats makes integers floats, as in arithmetic.
    ir::DType dtype = t.dtype();
    if (low) dtype = TensorAccess::ToNumber(*low).TypeBeside(dtype);
    if (high) dtype = TensorAccess::ToNumber(*high).TypeBeside(dtype);
    const lazy::Tensor in = lazy::To(t, dtype);
    if (!ir::IsFloat(dtype)) {  // which has no infinity to stand for what is absent
      const auto bound = [&](const Scalar& scalar) {
        return TensorAccess::Slot(scalar, dtype, lazy::Overflow::kRefuseAny);
      };
      const lazy::Tensor above = low ? lazy::Maximum(in, bound(*low)) : in;
      return high ? lazy::Minimum(above, bound(*high)) : above;
    }
    const auto bound = [&](const std::optional<Scalar>& scalar, double absent) {
      return scalar ? TensorAccess::Slot(*scalar, dtype) : lazy::Constant(absent, dtype);
    };
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    return lazy::Clamp(in, bound(low, -kInfinity), bound(high, kInfinity));
  });
}

// --- reductions
#define LAZULI_REDUCTION(public_name, function)                                                 \
  Tensor public_name(const Tensor& x, const Dims& dims, bool keepdim, Locs loc) {               \
    return CallTensor(loc, [&] { return lazy::function(In(x, #public_name), dims, keepdim); }); \
  }
LAZULI_REDUCTION(sum, Sum)
LAZULI_REDUCTION(mean, Mean)
LAZULI_REDUCTION(prod, Prod)
LAZULI_REDUCTION(amax, Amax)
LAZULI_REDUCTION(amin, Amin)
#undef LAZULI_REDUCTION

std::pair<Tensor, Tensor> max(const Tensor& x, std::int64_t dim, bool keepdim, Locs loc) {
  return Call(loc, [&] { return Wrapped(lazy::MaxAlong(In(x, "max"), dim, keepdim)); });
}
Tensor argmax(const Tensor& x, std::optional<std::int64_t> dim, bool keepdim, Locs loc) {
  return CallTensor(loc, [&] { return lazy::ArgMax(In(x, "argmax"), dim, keepdim); });
}

// --- shape
Tensor reshape(const Tensor& x, const Dims& dims, Locs loc) {
  return CallTensor(loc, [&] { return lazy::Reshape(In(x, "reshape"), dims); });
}
Tensor flatten(const Tensor& x, std::int64_t start_dim, std::int64_t end_dim, Locs loc) {
  return CallTensor(loc, [&] { return lazy::Flatten(In(x, "flatten"), start_dim, end_dim); });
}
Tensor squeeze(const Tensor& x, std::optional<std::int64_t> dim, Locs loc) {
  return CallTensor(loc, [&] { return lazy::Squeeze(In(x, "squeeze"), dim); });
}
Tensor unsqueeze(const Tensor& x, std::int64_t dim, Locs loc) {
  return CallTensor(loc, [&] { return lazy::Unsqueeze(In(x, "unsqueeze"), dim); });
}
Tensor broadcast_to(const Tensor& x, const Dims& dims, Locs loc) {
  return CallTensor(loc, [&] { return lazy::BroadcastTo(In(x, "broadcast_to"), dims); });
}
Tensor transpose(const Tensor& x, std::int64_t dim0, std::int64_t dim1, Locs loc) {
  return CallTensor(loc, [&] { return lazy::Transpose(In(x, "transpose"), dim0, dim1); });
}
Tensor permute(const Tensor& x, const Dims& dims, Locs loc) {
  return CallTensor(loc, [&] { return lazy::Permute(In(x, "permute"), dims); });
}
Tensor narrow(const Tensor& x, std::int64_t dim, std::int64_t start, std::int64_t length,
              Locs loc) {
  return CallTensor(loc, [&] { return lazy::Narrow(In(x, "narrow"), dim, start, length); });
}
Tensor flip(const Tensor& x, const Dims& dims, Locs loc) {
  return CallTensor(loc, [&] { return lazy::Flip(In(x, "flip"), dims); });
}
Tensor cat(const std::vector<Tensor>& xs, std::int64_t dim, Locs loc) {
  return CallTensor(loc, [&] { return lazy::Cat(In(xs, "cat"), dim); });
}
Tensor stack(const std::vector<Tensor>& xs, std::int64_t dim, Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensors in = In(xs, "stack");
    if (in.empty())
      lazy::ThrowRecordError("stack", ir::InvalidArgument("needs at least one tensor"));
    for (const lazy::Tensor& x : in) {
      if (ir::SameDims(x.shape(), in[0].shape())) continue;
      lazy::ThrowRecordError(
          "stack", ir::InvalidArgument("shapes differ: ", in[0].shape(), " and ", x.shape()));
    }
    const std::int64_t d = lazy::NormalizeDim("stack", dim, in[0].rank() + 1);
    lazy::Tensors rows;
    for (const lazy::Tensor& x : in) rows.push_back(lazy::Unsqueeze(x, d));
    return lazy::Cat(rows, d);
  });
}
Tensor index_select(const Tensor& x, std::int64_t dim, const Tensor& index, Locs loc) {
  return CallTensor(loc, [&] {
    return lazy::IndexSelect(In(x, "index_select"), dim, In(index, "index_select"));
  });
}
Tensor gather(const Tensor& x, std::int64_t dim, const Tensor& index, Locs loc) {
  return CallTensor(loc, [&] { return lazy::Gather(In(x, "gather"), dim, In(index, "gather")); });
}
Tensor scatter_add(const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source,
                   Locs loc) {
  return CallTensor(loc, [&] {
    return lazy::ScatterAdd(In(x, "scatter_add"), dim, In(index, "scatter_add"),
                            In(source, "scatter_add"));
  });
}
Tensor scatter(const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source,
               Locs loc) {
  return CallTensor(loc, [&] {
    return lazy::Scatter(In(x, "scatter"), dim, In(index, "scatter"), In(source, "scatter"));
  });
}
Tensor index_add(const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source,
                 Locs loc) {
  return CallTensor(loc, [&] {
    return lazy::IndexAdd(In(x, "index_add"), dim, In(index, "index_add"), In(source, "index_add"));
  });
}
Tensor index_copy(const Tensor& x, std::int64_t dim, const Tensor& index, const Tensor& source,
                  Locs loc) {
  return CallTensor(loc, [&] {
    return lazy::IndexCopy(In(x, "index_copy"), dim, In(index, "index_copy"),
                           In(source, "index_copy"));
  });
}
Tensor select(const Tensor& x, std::int64_t dim, std::int64_t index, Locs loc) {
  return CallTensor(loc, [&] { return lazy::Select(In(x, "select"), dim, index); });
}
Tensor cumsum(const Tensor& x, std::int64_t dim, Locs loc) {
  return CallTensor(loc, [&] { return lazy::CumSum(In(x, "cumsum"), dim); });
}
std::pair<Tensor, Tensor> sort(const Tensor& x, std::int64_t dim, bool descending, Locs loc) {
  return Call(loc, [&] { return Wrapped(lazy::Sort(In(x, "sort"), dim, descending)); });
}
Tensor argsort(const Tensor& x, std::int64_t dim, bool descending, Locs loc) {
  return CallTensor(loc, [&] { return lazy::Sort(In(x, "argsort"), dim, descending).second; });
}
std::pair<Tensor, Tensor> topk(const Tensor& x, std::int64_t k, std::int64_t dim, bool largest,
                               Locs loc) {
  return Call(loc, [&] { return Wrapped(lazy::TopK(In(x, "topk"), k, dim, largest)); });
}
Tensor one_hot(const Tensor& index, std::int64_t classes, Locs loc) {
  return CallTensor(loc,
                    [&] { return lazy::OneHot(In(index, "one_hot"), classes, ir::DType::kS64); });
}

// --- linear algebra and neural networks
Tensor matmul(const Tensor& x, const Tensor& y, Locs loc) {
  return CallTensor(loc,
                    [&] { return lazy::MatMul(TensorAccess::Unwrap(x), TensorAccess::Unwrap(y)); });
}
Tensor einsum(const std::string& equation, const std::vector<Tensor>& xs, Locs loc) {
  return CallTensor(loc, [&] { return lazy::Einsum(equation, In(xs, "einsum")); });
}
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensor w = In(weight, "linear");
    if (!bias.defined()) return lazy::Linear(In(x, "linear"), w);
    const lazy::Tensor b = TensorAccess::Unwrap(bias);
    if (w.rank() == 2 && (b.rank() != 1 || b.dim(0) != w.dim(0))) {
      lazy::ThrowRecordError("linear",
                             ir::InvalidArgument("bias ", b.shape(), " does not fit the ", w.dim(0),
                                                 " rows of weight ", w.shape()));
    }
    return lazy::Linear(In(x, "linear"), w) + b;
  });
}
Tensor conv2d(const Tensor& x, const Tensor& weight, const Tensor& bias,
              const Conv2dOptions& options, Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Conv2dAttrs attrs{ToPair(options.stride), ToPair(options.padding),
                                  ToPair(options.dilation), options.groups};
    const lazy::Tensor in = In(x, "conv2d"), w = In(weight, "conv2d");
    if (!bias.defined()) return lazy::Conv2d(in, w, attrs);
    const lazy::Tensor b = TensorAccess::Unwrap(bias);
    if (w.rank() == 4 && (b.rank() != 1 || b.dim(0) != w.dim(0))) {
      lazy::ThrowRecordError("conv2d",
                             ir::InvalidArgument("bias ", b.shape(), " does not fit the ", w.dim(0),
                                                 " channels of weight ", w.shape()));
    }
    const lazy::Tensor y = lazy::Conv2d(in, w, attrs);  // it may refuse, and must come first
    return y + lazy::Reshape(b, {1, b.dim(0), 1, 1});
  });
}
namespace {
lazy::Pair ToPair(Size2 size) { return {size.height, size.width}; }
lazy::Pool2dAttrs PoolAttrs(Size2 kernel, Size2 stride, Size2 padding, bool ceil_mode) {
  if (stride.height == 0) stride.height = kernel.height;
  if (stride.width == 0) stride.width = kernel.width;
  return {ToPair(kernel), ToPair(stride), ToPair(padding), ceil_mode};
}
}  // namespace
Tensor max_pool2d(const Tensor& x, Size2 kernel, Size2 stride, Size2 padding, bool ceil_mode,
                  Locs loc) {
  return CallTensor(loc, [&] {
    return lazy::MaxPool2d(In(x, "max_pool2d"), PoolAttrs(kernel, stride, padding, ceil_mode));
  });
}
Tensor avg_pool2d(const Tensor& x, Size2 kernel, Size2 stride, Size2 padding, bool ceil_mode,
                  bool count_include_pad, Locs loc) {
  return CallTensor(loc, [&] {
    return lazy::AvgPool2d(In(x, "avg_pool2d"), PoolAttrs(kernel, stride, padding, ceil_mode),
                           count_include_pad);
  });
}
Tensor adaptive_avg_pool2d(const Tensor& x, Size2 size, Locs loc) {
  return CallTensor(
      loc, [&] { return lazy::AdaptiveAvgPool2d(In(x, "adaptive_avg_pool2d"), ToPair(size)); });
}
Tensor softmax(const Tensor& x, std::int64_t dim, Locs loc) {
  return CallTensor(loc, [&] { return lazy::Softmax(In(x, "softmax"), dim); });
}
Tensor log_softmax(const Tensor& x, std::int64_t dim, Locs loc) {
  return CallTensor(loc, [&] { return lazy::LogSoftmax(In(x, "log_softmax"), dim); });
}
Tensor dropout(const Tensor& x, double p, Locs loc) {
  return CallTensor(loc, [&] { return lazy::Dropout(In(x, "dropout"), p); });
}

// --- creation
Tensor full(const Dims& dims, const Scalar& value, DType dtype, const Device& device, Locs loc) {
  return CallTensor(loc, [&] {
    return lazy::Full(dims, TensorAccess::Slot(value, Unwrap(dtype)), DeviceAccess::Unwrap(device));
  });
}
namespace {
Tensor Filled(std::string_view op, const Dims& dims, double value, DType dtype,
              const Device& device, const Locs& loc) {
  return CallTensor(loc, [&] {
    const absl::StatusOr<ir::Shape> shape = ir::Shape::Make(Unwrap(dtype), dims);
    if (!shape.ok()) lazy::ThrowRecordError(op, shape.status());
    return lazy::FullConstant(*shape, value, DeviceAccess::Unwrap(device));
  });
}
}  // namespace
Tensor zeros(const Dims& dims, DType dtype, const Device& device, Locs loc) {
  return Filled("zeros", dims, 0, dtype, device, loc);
}
Tensor ones(const Dims& dims, DType dtype, const Device& device, Locs loc) {
  return Filled("ones", dims, 1, dtype, device, loc);
}
Tensor zeros_like(const Tensor& x, Locs loc) {
  return Filled("zeros_like", x.sizes(), 0, x.dtype(), x.device(), loc);
}
Tensor ones_like(const Tensor& x, Locs loc) {
  return Filled("ones_like", x.sizes(), 1, x.dtype(), x.device(), loc);
}
Tensor arange(const Scalar& end, DType dtype, const Device& device, Locs loc) {
  return CallTensor(loc, [&] {
    const double count = std::ceil(end.value());
    if (!(count >= 0 && count < 0x1p53)) {
      lazy::ThrowRecordError(
          "arange", ir::InvalidArgument("end must be at least 0 and finite, is ", end.value()));
    }
    return lazy::Arange(static_cast<std::int64_t>(count), Unwrap(dtype),
                        DeviceAccess::Unwrap(device));
  });
}
Tensor eye(std::int64_t n, DType dtype, const Device& device, Locs loc) {
  return CallTensor(loc, [&] {
    if (n < 0) throw lazy::StatusError(ir::InvalidArgument("eye: n must not be negative, is ", n));
    const backend::Device where = DeviceAccess::Unwrap(device);
    const ir::Dims dims{n, n};
    return lazy::To(lazy::Eq(lazy::Positions(dims, 0, where), lazy::Positions(dims, 1, where)),
                    Unwrap(dtype));
  });
}
Tensor constant(double value, DType dtype, const Device& device, Locs loc) {
  return Filled("constant", {}, value, dtype, device, loc);
}

// --- random numbers
void manual_seed(std::uint64_t seed) { lazy::ManualSeed(seed); }
std::uint64_t random_seed() { return lazy::RandomSeed(); }
Tensor rand(const Dims& dims, DType dtype, const Device& device, Locs loc) {
  return CallTensor(loc,
                    [&] { return lazy::Rand(dims, Unwrap(dtype), DeviceAccess::Unwrap(device)); });
}
Tensor randn(const Dims& dims, DType dtype, const Device& device, Locs loc) {
  return CallTensor(loc,
                    [&] { return lazy::Randn(dims, Unwrap(dtype), DeviceAccess::Unwrap(device)); });
}
Tensor randint(std::int64_t low, std::int64_t high, const Dims& dims, DType dtype,
               const Device& device, Locs loc) {
  return CallTensor(loc, [&] {
    return lazy::RandomIntegers(low, high, dims, Unwrap(dtype), DeviceAccess::Unwrap(device));
  });
}
Tensor randperm(std::int64_t n, DType dtype, const Device& device, Locs loc) {
  return CallTensor(
      loc, [&] { return lazy::RandomPermutation(n, Unwrap(dtype), DeviceAccess::Unwrap(device)); });
}

}  // namespace lazuli
