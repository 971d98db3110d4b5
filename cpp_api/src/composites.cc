// Public functions that are compositions of ops and have no gradient of their own.
#include <algorithm>
#include <cmath>
#include <limits>

#include "cpp_api/src/operands.h"
#include "lazuli/execution.h"
#include "lazuli/ops.h"
#include "lazy/ops/elementwise.h"
#include "lazy/ops/wide.h"

namespace lazuli {
namespace {

using Locs = SourceLocation;

ir::Value NumberOf(double value, const lazy::Tensor& like) {
  return lazy::Constant(value, like.dtype());
}
ir::Value Infinity(const lazy::Tensor& like) {
  return NumberOf(std::numeric_limits<double>::infinity(), like);
}
lazy::Tensor Everywhere(bool value, const lazy::Tensor& like) {
  return lazy::FullConstant(ir::Shape(ir::DType::kPred, like.shape().dims()), value, like.device());
}

// Elements in the opposite order: what is smallest becomes largest, exactly.
lazy::Tensor Reversed(const lazy::Tensor& x) {
  return ir::IsFloat(x.dtype()) ? lazy::Neg(x) : lazy::BitwiseNot(x);
}

// The part of a matrix, or of matrices, where `keep` of column, row + diagonal holds.
template <class Keep>
Tensor Triangle(const char* op, const Tensor& x, std::int64_t diagonal, Locs loc, Keep keep) {
  return CallTensor(loc, [&] {
    const lazy::Tensor in = In(x, op);
    if (in.rank() < 2)
      lazy::ThrowRecordError(op, ir::InvalidArgument("takes a matrix, not ", in.shape()));
    const std::int64_t rank = in.rank();
    const Dims dims{in.dim(rank - 2), in.dim(rank - 1)};
    const lazy::Tensor row = lazy::Positions(dims, 0, in.device()),
                       column = lazy::Positions(dims, 1, in.device());
    return lazy::Where(keep(column, row + static_cast<double>(diagonal)), in, NumberOf(0, in));
  });
}

std::vector<Tensor> Pieces(const Tensor& x, std::int64_t size, std::int64_t dim) {
  std::vector<Tensor> pieces;
  const std::int64_t n = x.size(dim);
  for (std::int64_t start = 0; start < n; start += size)
    pieces.push_back(narrow(x, dim, start, std::min(size, n - start)));
  if (pieces.empty()) pieces.push_back(x);
  return pieces;
}

void CheckPositive(const char* op, const char* what, std::int64_t value) {
  if (value < 1)
    lazy::ThrowRecordError(op, ir::InvalidArgument(what, " must be at least 1, is ", value));
}

}  // namespace

// --- elementwise
Tensor isnan(const Tensor& x, Locs loc) {
  return CallTensor(loc, [&] { return lazy::Ne(In(x, "isnan"), In(x, "isnan")); });
}
Tensor isinf(const Tensor& x, Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensor t = In(x, "isinf");
    if (!ir::IsFloat(t.dtype())) return Everywhere(false, t);
    return lazy::Eq(lazy::Abs(t), Infinity(t));
  });
}
Tensor isfinite(const Tensor& x, Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensor t = In(x, "isfinite");
    if (!ir::IsFloat(t.dtype())) return Everywhere(true, t);
    return lazy::Lt(lazy::Abs(t), Infinity(t));
  });
}
Tensor masked_fill(const Tensor& x, const Tensor& mask, const Scalar& value, Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensor t = In(x, "masked_fill"), m = In(mask, "masked_fill");
    return lazy::Where(m, TensorAccess::Slot(value, t.dtype()), t);
  });
}

// --- reductions
Tensor all(const Tensor& x, const Dims& dims, bool keepdim, Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensor t = In(x, "all");
    const lazy::Tensor zeros = lazy::Sum(lazy::Eq(t, NumberOf(0, t)), dims, keepdim);
    return lazy::Eq(zeros, NumberOf(0, zeros));
  });
}
Tensor any(const Tensor& x, const Dims& dims, bool keepdim, Locs loc) {
  return CallTensor(loc, [&] {
    const lazy::Tensor t = In(x, "any");
    const lazy::Tensor others = lazy::Sum(lazy::Ne(t, NumberOf(0, t)), dims, keepdim);
    return lazy::Ne(others, NumberOf(0, others));
  });
}
Tensor var(const Tensor& x, const Dims& dims, std::int64_t correction, bool keepdim, Locs loc) {
  return CallTensor(loc, [&] {
    return lazy::InWide(InFloat(x, "var"), [&](const lazy::Tensor& wide) {
      return lazy::Var(wide, dims, correction, keepdim);
    });
  });
}
Tensor std(const Tensor& x, const Dims& dims, std::int64_t correction, bool keepdim, Locs loc) {
  return CallTensor(loc, [&] {
    return lazy::InWide(InFloat(x, "std"), [&](const lazy::Tensor& wide) {
      return lazy::Std(wide, dims, correction, keepdim);
    });
  });
}
Tensor norm(const Tensor& x, const Dims& dims, bool keepdim, Locs loc) {
  return CallTensor(loc, [&] {
    return lazy::InWide(InFloat(x, "norm"),
                        [&](const lazy::Tensor& wide) { return lazy::Norm(wide, dims, keepdim); });
  });
}
Tensor logsumexp(const Tensor& x, const Dims& dims, bool keepdim, Locs loc) {
  return CallTensor(loc, [&] {
    return lazy::InWide(InFloat(x, "logsumexp"), [&](const lazy::Tensor& wide) {
      // Of nothing there is no largest element, and nothing that could overflow.
      if (wide.shape().num_elements() == 0) return lazy::Log(lazy::Sum(wide, dims, keepdim));
      const lazy::Tensor largest = lazy::Detach(lazy::Amax(wide, dims, /*keepdim=*/true));
      const lazy::Tensor shift = lazy::Where(lazy::Eq(lazy::Abs(largest), Infinity(largest)),
                                             NumberOf(0, largest), largest);
      const lazy::Tensor sum = lazy::Sum(lazy::Exp(wide - shift), dims, keepdim);
      return lazy::Log(sum) + lazy::Reshape(shift, sum.shape().dims());
    });
  });
}
std::pair<Tensor, Tensor> min(const Tensor& x, std::int64_t dim, bool keepdim, Locs loc) {
  return Call(loc, [&] {
    auto [values, indices] = lazy::MaxAlong(Reversed(In(x, "min")), dim, keepdim);
    return std::make_pair(TensorAccess::Wrap(Reversed(values)), TensorAccess::Wrap(indices));
  });
}
Tensor argmin(const Tensor& x, std::optional<std::int64_t> dim, bool keepdim, Locs loc) {
  return CallTensor(loc, [&] { return lazy::ArgMax(Reversed(In(x, "argmin")), dim, keepdim); });
}

// --- shape
Tensor tril(const Tensor& x, std::int64_t diagonal, Locs loc) {
  return Triangle("tril", x, diagonal, loc,
                  [](const auto& column, const auto& limit) { return lazy::Le(column, limit); });
}
Tensor triu(const Tensor& x, std::int64_t diagonal, Locs loc) {
  return Triangle("triu", x, diagonal, loc,
                  [](const auto& column, const auto& limit) { return lazy::Ge(column, limit); });
}
std::vector<Tensor> split(const Tensor& x, std::int64_t size, std::int64_t dim, Locs loc) {
  return Call(loc, [&] {
    CheckPositive("split", "size", size);
    return Pieces(x, size, dim);
  });
}
std::vector<Tensor> chunk(const Tensor& x, std::int64_t chunks, std::int64_t dim, Locs loc) {
  return Call(loc, [&] {
    CheckPositive("chunk", "chunks", chunks);
    return Pieces(x, std::max<std::int64_t>((x.size(dim) + chunks - 1) / chunks, 1), dim);
  });
}

// --- creation
Tensor linspace(const Scalar& start, const Scalar& end, std::int64_t steps, DType dtype,
                const Device& device, Locs loc) {
  return CallTensor(loc, [&] {
    if (steps < 0)
      lazy::ThrowRecordError("linspace",
                             ir::InvalidArgument("steps must not be negative, is ", steps));
    const lazy::Tensor i = lazy::Arange(steps, ir::DType::kF64, DeviceAccess::Unwrap(device));
    const double between = static_cast<double>(std::max<std::int64_t>(steps - 1, 1));
    const Scalar step((end.value() - start.value()) / between);
    return lazy::To(lazy::Add(lazy::Mul(i, TensorAccess::Slot(step, i.dtype())),
                              TensorAccess::Slot(start, i.dtype())),
                    Unwrap(dtype));
  });
}
Tensor rand_like(const Tensor& x, Locs loc) { return rand(x.sizes(), x.dtype(), x.device(), loc); }
Tensor randn_like(const Tensor& x, Locs loc) {
  return randn(x.sizes(), x.dtype(), x.device(), loc);
}

}  // namespace lazuli
