// Products of vectors and matrices that are made of matmul: mm, addmm, inner, kron, tensordot, cross, bilinear.
#include <algorithm>
#include <string_view>

#include "ir/support/wrong_type.h"
#include "lazy/ops/core/dims.h"
#include "lazy/ops/core/functions.h"
#include "lazy/ops/elementwise/elementwise.h"
#include "lazy/ops/linear/matmul.h"

namespace lazuli::lazy {
namespace {

void CheckRanks(std::string_view op, const Tensor& x, int64_t x_rank, const Tensor& y,
                int64_t y_rank) {
  if (x.rank() == x_rank && y.rank() == y_rank) return;
  ThrowRecordError(op, InvalidArgument("takes ranks ", x_rank, " and ", y_rank, ", not ", x.shape(),
                                       " and ", y.shape()));
}

Tensor Product(std::string_view op, const Tensor& x, int64_t x_rank, const Tensor& y,
               int64_t y_rank) {
  CheckRanks(op, x, x_rank, y, y_rank);
  CheckFactors(op, x, y);
  return Matmul(x, y);
}

Tensor BatchProduct(std::string_view op, const Tensor& x, const Tensor& y) {
  CheckRanks(op, x, 3, y, 3);
  if (x.dim(0) != y.dim(0)) {
    ThrowRecordError(op, InvalidArgument("batches differ: ", x.shape(), " x ", y.shape()));
  }
  return Product(op, x, 3, y, 3);
}

// beta * x + alpha * product; without x, also if it is NaN, where beta is 0.
Tensor Added(std::string_view op, const Tensor& x, const Tensor& product, const Number& beta,
             const Number& alpha) {
  if (x.dtype() != product.dtype()) {
    ThrowRecordError(
        op, WrongType("takes operands of one dtype, not ", x.shape(), " and ", product.shape()));
  }
  const absl::StatusOr<Dims> dims = BroadcastDims(x.shape(), product.shape());
  if (!dims.ok() || *dims != DimsOf(product.shape())) {
    ThrowRecordError(
        op, InvalidArgument(x.shape(), " does not stretch to the product, ", product.shape()));
  }
  if (x.dtype() == DType::kPred) {
    const auto none = FullConstant(product.shape(), 0, x.device());
    return LogicalOr(beta.as_double() != 0 ? x : none, alpha.as_double() != 0 ? product : none);
  }
  const auto factor = [&](const Number& n) { return Full({}, n.As(x.dtype()), x.device()); };
  const Tensor scale = factor(beta);
  const Value zero = Constant(0, x.dtype());
  return Where(Eq(scale, zero), zero, x * scale) + product * factor(alpha);
}

}  // namespace

Tensor Mm(const Tensor& x, const Tensor& y) { return Product("mm", x, 2, y, 2); }
Tensor Mv(const Tensor& x, const Tensor& y) { return Product("mv", x, 2, y, 1); }
Tensor Bmm(const Tensor& x, const Tensor& y) { return BatchProduct("bmm", x, y); }
Tensor Dot(const Tensor& x, const Tensor& y) { return Product("dot", x, 1, y, 1); }
Tensor Vdot(const Tensor& x, const Tensor& y) { return Product("vdot", Conj(x), 1, y, 1); }

Tensor Inner(const Tensor& x, const Tensor& y) {
  if (x.rank() == 0 || y.rank() == 0) return x * y;
  CheckFactors("inner", x, y);
  const int64_t last = y.rank() - 1, n = y.dim(last);
  if (x.dim(x.rank() - 1) != n) {
    ThrowRecordError("inner", InvalidArgument("last dims differ: ", x.shape(), " and ", y.shape()));
  }
  Dims dims = DimsOf(x.shape());
  dims.pop_back();
  dims.insert(dims.end(), y.shape().dims().begin(), y.shape().dims().end() - 1);
  // Counted, since nothing can be found where a row has no elements.
  const auto rows = [n](const Tensor& t) {
    int64_t count = 1;
    for (int64_t d = 0; d + 1 < t.rank(); ++d) count *= t.dim(d);
    return Reshape(t, {count, n});
  };
  return Reshape(Matmul(rows(x), Transpose(rows(y), 0, 1)), dims);
}

Tensor Addmm(const Tensor& x, const Tensor& mat1, const Tensor& mat2, const Number& beta,
             const Number& alpha) {
  return Added("addmm", x, Product("addmm", mat1, 2, mat2, 2), beta, alpha);
}
Tensor Addmv(const Tensor& x, const Tensor& mat, const Tensor& vec, const Number& beta,
             const Number& alpha) {
  return Added("addmv", x, Product("addmv", mat, 2, vec, 1), beta, alpha);
}
Tensor Baddbmm(const Tensor& x, const Tensor& batch1, const Tensor& batch2, const Number& beta,
               const Number& alpha) {
  return Added("baddbmm", x, BatchProduct("baddbmm", batch1, batch2), beta, alpha);
}
Tensor Addbmm(const Tensor& x, const Tensor& batch1, const Tensor& batch2, const Number& beta,
              const Number& alpha) {
  const int64_t dims[] = {0};
  return Added("addbmm", x, To(Sum(BatchProduct("addbmm", batch1, batch2), dims), batch1.dtype()),
               beta, alpha);
}
Tensor Addr(const Tensor& x, const Tensor& vec1, const Tensor& vec2, const Number& beta,
            const Number& alpha) {
  const Tensor product = vec1.dtype() == DType::kPred && vec2.dtype() == DType::kPred
                             ? LogicalAnd(Unsqueeze(vec1, 1), Unsqueeze(vec2, 0))
                             : Outer(vec1, vec2);
  const DType type = Promote(x.dtype(), product.dtype()).value_or(product.dtype());
  return Added("addr", To(x, type), To(product, type), beta, alpha);
}

Tensor Kron(const Tensor& x, const Tensor& y) {
  const int64_t rank = std::max(x.rank(), y.rank());
  Dims apart_x, apart_y, joined;
  for (int64_t d = 0; d < rank; ++d) {
    const int64_t i = d - rank + x.rank(), j = d - rank + y.rank();
    const int64_t m = i < 0 ? 1 : x.dim(i), n = j < 0 ? 1 : y.dim(j);
    apart_x.insert(apart_x.end(), {m, 1});
    apart_y.insert(apart_y.end(), {1, n});
    joined.push_back(m * n);
  }
  return Reshape(Reshape(x, apart_x) * Reshape(y, apart_y), joined);
}

Tensor Tensordot(const Tensor& in_x, const Tensor& in_y, absl::Span<const int64_t> x_dims,
                 absl::Span<const int64_t> y_dims) {
  Tensor x = in_x, y = in_y;
  CheckFactors("tensordot", x, y);
  if (x_dims.size() != y_dims.size()) {
    ThrowRecordError("tensordot",
                     InvalidArgument("both dimension lists should have same length, are (",
                                     Join(x_dims, ", "), ") and (", Join(y_dims, ", "), ")"));
  }
  // The dims that are summed over come last of x and first of y.
  Dims x_order, y_order, sums, dims;
  int64_t size = 1;
  for (std::size_t i = 0; i < x_dims.size(); ++i) {
    sums.push_back(NormalizeDim("tensordot", x_dims[i], x.rank()));
    y_order.push_back(NormalizeDim("tensordot", y_dims[i], y.rank()));
    // One element beside several stands for as many: the sum of these meets it.
    const int64_t of_x[] = {sums.back()}, of_y[] = {y_order.back()};
    if (x.dim(*of_x) == 1 && y.dim(*of_y) != 1) y = To(Sum(y, of_y, /*keepdim=*/true), y.dtype());
    if (y.dim(*of_y) == 1 && x.dim(*of_x) != 1) x = To(Sum(x, of_x, /*keepdim=*/true), x.dtype());
    if (x.dim(sums.back()) != y.dim(y_order.back())) {
      ThrowRecordError(
          "tensordot",
          InvalidArgument("contracted dimensions need to match: ", x.shape(), " and ", y.shape()));
    }
    size *= x.dim(sums.back());
  }
  const Dims y_sums = y_order;
  for (int64_t d = 0; d < x.rank(); ++d) {
    if (std::find(sums.begin(), sums.end(), d) != sums.end()) continue;
    x_order.push_back(d);
    dims.push_back(x.dim(d));
  }
  int64_t rows = 1, columns = 1;
  for (int64_t n : dims) rows *= n;
  for (int64_t d = 0; d < y.rank(); ++d) {
    if (std::find(y_sums.begin(), y_sums.end(), d) != y_sums.end()) continue;
    y_order.push_back(d);
    dims.push_back(y.dim(d));
    columns *= y.dim(d);
  }
  x_order.insert(x_order.end(), sums.begin(), sums.end());
  const Tensor left = Reshape(Permute(x, x_order), {rows, size});
  return Reshape(Matmul(left, Reshape(Permute(y, y_order), {size, columns})), dims);
}
Tensor Tensordot(const Tensor& x, const Tensor& y, int64_t dims) {
  if (dims < 0 || dims > std::min(x.rank(), y.rank())) {
    ThrowRecordError("tensordot", InvalidArgument("expects dims >= 0 and at most the ranks of ",
                                                  x.shape(), " and ", y.shape(), ", got ", dims));
  }
  Dims x_dims, y_dims;
  for (int64_t d = 0; d < dims; ++d) {
    x_dims.push_back(x.rank() - dims + d);
    y_dims.push_back(d);
  }
  return Tensordot(x, y, x_dims, y_dims);
}

Tensor Cross(const Tensor& x, const Tensor& y, std::optional<int64_t> dim) {
  const absl::StatusOr<Dims> dims = BroadcastDims(x.shape(), y.shape());
  if (!dims.ok()) ThrowRecordError("cross", dims.status());
  const auto three = std::find(dims->begin(), dims->end(), 3);
  const auto rank = static_cast<int64_t>(dims->size());
  const int64_t d = dim ? NormalizeDim("cross", *dim, rank) : three - dims->begin();
  if (d == rank || (*dims)[static_cast<std::size_t>(d)] != 3) {
    ThrowRecordError("cross", InvalidArgument("takes three elements along dim, not ", x.shape(),
                                              " and ", y.shape()));
  }
  const Tensor a = BroadcastTo(x, *dims), b = BroadcastTo(y, *dims);
  const auto at = [&](const Tensor& t, int64_t i) { return Narrow(t, d, i, 1); };
  const auto part = [&](int64_t i, int64_t j) { return at(a, i) * at(b, j) - at(a, j) * at(b, i); };
  const Tensor parts[] = {part(1, 2), part(2, 0), part(0, 1)};
  return Cat(parts, d);
}

Tensor Bilinear(const Tensor& x1, const Tensor& x2, const Tensor& weight, const Tensor& bias) {
  constexpr char kOp[] = "bilinear";
  const auto lead = [](const Tensor& t) { return t.shape().dims().first(At(t.rank() - 1)); };
  const bool fits = x1.rank() > 0 && x1.rank() == x2.rank() && lead(x1) == lead(x2) &&
                    weight.rank() == 3 && x1.dim(x1.rank() - 1) == weight.dim(1) &&
                    x2.dim(x2.rank() - 1) == weight.dim(2) &&
                    (!bias.defined() || (bias.rank() == 1 && bias.dim(0) == weight.dim(0)));
  if (!fits) {
    ThrowRecordError(kOp, InvalidArgument("takes [..., n], [..., m] and weight [o, n, m], not ",
                                          x1.shape(), ", ", x2.shape(), " and ", weight.shape()));
  }
  CheckFactors(kOp, x1, weight);
  CheckFactors(kOp, x2, weight);
  const Tensor operands[] = {x1, x2, weight};
  const Tensor y = Einsum("...n,...m,onm->...o", operands);
  return bias.defined() ? y + bias : y;
}

}  // namespace lazuli::lazy
