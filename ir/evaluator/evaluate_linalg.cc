// Fourier transforms and triangular matrices, all in complex f64 and rounded once at the end.

#include <algorithm>
#include <complex>
#include <utility>

#include "ir/evaluator/internal.h"
#include "ir/evaluator/strided.h"
#include "ir/hlo/shapes/shape_inference.h"
#include "ir/recipes/recipes.h"

namespace lazuli::hlo {
namespace {

using Complex = std::complex<double>;

std::vector<Complex> Roots(int64_t n, bool inverse) {
  std::vector<Complex> roots(static_cast<std::size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const double angle = 6.283185307179586477 * static_cast<double>(i) / static_cast<double>(n);
    roots[static_cast<std::size_t>(i)] = {recipes::Cos(angle),
                                          (inverse ? 1 : -1) * recipes::Sin(angle)};
  }
  return roots;
}

// One transform of n elements: by halves while n is even, from the definition where it is odd.
void Transform(const Complex* x, int64_t stride, int64_t n, const std::vector<Complex>& roots,
               Complex* to) {
  const auto step = static_cast<int64_t>(roots.size()) / n;
  auto root = [&](int64_t i) { return roots[static_cast<std::size_t>(i % n * step)]; };
  if (n % 2 == 0) {
    const int64_t half = n / 2;
    Transform(x, 2 * stride, half, roots, to);
    Transform(x + stride, 2 * stride, half, roots, to + half);
    for (int64_t i = 0; i < half; ++i) {
      const Complex even = to[i], odd = to[half + i] * root(i);
      to[i] = even + odd;
      to[half + i] = even - odd;
    }
    return;
  }
  for (int64_t k = 0; k < n; ++k) {
    Complex sum = 0;
    for (int64_t i = 0; i < n; ++i) sum += x[i * stride] * root(i * k);
    to[k] = sum;
  }
}

// Along one dimension, whose size becomes or stays n; elements beyond are dropped, missing ones are
// zero.
Literal TransformDimension(const Literal& x, int64_t dimension, int64_t n, bool inverse) {
  Dims order, dims;
  for (int64_t d = 0; d < x.shape().rank(); ++d) {
    if (d != dimension) order.push_back(d);
  }
  order.push_back(dimension);
  const Literal rows = Transposed(x, order);
  for (int64_t d : order) dims.push_back(x.shape().dim(d));
  const int64_t size = dims.back();
  dims.back() = n;
  Literal result = Literal::Uninitialized(Shape(DType::kC128, dims));
  const std::vector<Complex> roots = Roots(n, inverse);
  const int64_t count = size == 0 ? 0 : x.shape().num_elements() / size;
  std::vector<Complex> row(static_cast<std::size_t>(n));
  for (int64_t r = 0; r < count; ++r) {
    const Complex* from = rows.data<Complex>().data() + r * size;
    std::fill(row.begin(), row.end(), Complex(0));
    std::copy_n(from, std::min(size, n), row.begin());
    Complex* to = result.mutable_data<Complex>().data() + r * n;
    Transform(row.data(), 1, n, roots, to);
    if (inverse) {
      for (int64_t i = 0; i < n; ++i) to[i] /= static_cast<double>(n);
    }
  }
  Dims back(order.size(), 0);
  for (std::size_t i = 0; i < order.size(); ++i)
    back[static_cast<std::size_t>(order[i])] = static_cast<int64_t>(i);
  return Transposed(result, back);
}

// The first `size` elements of the last dimension.
Literal Cropped(const Literal& x, int64_t size) {
  Shape shape = x.shape();
  shape.set_dim(shape.rank() - 1, size);
  Literal result = Literal::Uninitialized(shape);
  CopyStrided(ByteWidth(shape.dtype()), shape.dims(), x.raw(), ByteStrides(x.shape()),
              result.mutable_raw(), ByteStrides(shape));
  return result;
}

// The full spectrum of a real signal of n elements from its first half.
Literal Mirrored(const Literal& x, int64_t n) {
  Shape shape = x.shape();
  const int64_t size = shape.dim(shape.rank() - 1);
  shape.set_dim(shape.rank() - 1, n);
  Literal result = Literal::Uninitialized(shape);
  const int64_t rows = size == 0 ? 0 : x.shape().num_elements() / size;
  for (int64_t r = 0; r < rows; ++r) {
    const Complex* from = x.data<Complex>().data() + r * size;
    Complex* to = result.mutable_data<Complex>().data() + r * n;
    for (int64_t i = 0; i < n; ++i) to[i] = i < size ? from[i] : std::conj(from[n - i]);
  }
  return result;
}

// The lower factor of one matrix; NaN from where it stops being positive definite.
void FactorLower(const Complex* a, Complex* l, int64_t n, bool lower) {
  auto entry = [&](int64_t i, int64_t j) { return lower ? a[i * n + j] : std::conj(a[j * n + i]); };
  for (int64_t j = 0; j < n; ++j) {
    double diagonal = entry(j, j).real();
    for (int64_t k = 0; k < j; ++k) diagonal -= std::norm(l[j * n + k]);
    const double root = std::sqrt(diagonal);
    l[j * n + j] = diagonal > 0 ? root : std::numeric_limits<double>::quiet_NaN();
    for (int64_t i = j + 1; i < n; ++i) {
      Complex sum = entry(i, j);
      for (int64_t k = 0; k < j; ++k) sum -= l[i * n + k] * std::conj(l[j * n + k]);
      l[i * n + j] = sum / l[j * n + j].real();
    }
  }
}

}  // namespace

absl::StatusOr<Literal> EvaluateFft(const Instruction& instruction, Operands operands) {
  const auto& attrs = instruction.attrs_as<FftAttrs>();
  Literal x = operands[0]->Converted(DType::kC128);
  const int64_t rank = x.shape().rank(), last = rank - 1;
  const auto transformed = static_cast<int64_t>(attrs.fft_length.size());
  const bool inverse = attrs.fft_type == FftType::kIfft || attrs.fft_type == FftType::kIrfft;
  auto length = [&](int64_t d) {
    return attrs.fft_length[static_cast<std::size_t>(d - (rank - transformed))];
  };
  if (attrs.fft_type == FftType::kRfft) {
    x = Cropped(TransformDimension(x, last, length(last), inverse), SpectrumSize(length(last)));
  } else if (attrs.fft_type != FftType::kIrfft) {
    x = TransformDimension(x, last, length(last), inverse);
  }
  for (int64_t d = last - 1; d >= rank - transformed; --d)
    x = TransformDimension(x, d, length(d), inverse);
  if (attrs.fft_type == FftType::kIrfft)
    x = TransformDimension(Mirrored(x, length(last)), last, length(last), inverse);
  return x.Converted(instruction.shape().dtype());
}

absl::StatusOr<Literal> EvaluateCholesky(const Instruction& instruction, Operands operands) {
  const bool lower = instruction.attrs_as<CholeskyAttrs>().lower;
  const Literal a = operands[0]->Converted(DType::kC128);
  Literal l(a.shape());
  const Matrices m(a.shape());
  for (int64_t i = 0; i < m.count; ++i) {
    Complex* to = l.mutable_data<Complex>().data() + i * m.rows * m.rows;
    FactorLower(a.data<Complex>().data() + i * m.rows * m.rows, to, m.rows, lower);
    if (lower) continue;
    for (int64_t r = 0; r < m.rows; ++r) {
      for (int64_t c = 0; c < r; ++c)
        to[c * m.rows + r] = std::conj(std::exchange(to[r * m.rows + c], Complex(0)));
    }
  }
  return l.Converted(instruction.shape().dtype());
}

// op(a) x = b, or x op(a) = b, by substitution.
absl::StatusOr<Literal> EvaluateTriangularSolve(const Instruction& instruction, Operands operands) {
  const auto& attrs = instruction.attrs_as<TriangularSolveAttrs>();
  const Literal a = operands[0]->Converted(DType::kC128);
  Literal x = operands[1]->Converted(DType::kC128).Clone();
  const Matrices m(x.shape());
  const int64_t n = attrs.left_side ? m.rows : m.columns;
  const int64_t others = attrs.left_side ? m.columns : m.rows;
  const bool transposed = attrs.transpose_a != TransposeKind::kNoTranspose;
  // x op(a) = b is op(a)^T x^T = b^T; one more transposition swaps which triangle op(a) has.
  const bool swapped = transposed != !attrs.left_side;
  const bool forward = attrs.lower != swapped;
  for (int64_t i = 0; i < m.count; ++i) {
    const Complex* matrix = a.data<Complex>().data() + i * n * n;
    Complex* to = x.mutable_data<Complex>().data() + i * m.rows * m.columns;
    auto entry = [&](int64_t r, int64_t c) {
      const Complex value = swapped ? matrix[c * n + r] : matrix[r * n + c];
      return attrs.transpose_a == TransposeKind::kAdjoint ? std::conj(value) : value;
    };
    auto element = [&](int64_t r, int64_t other) -> Complex& {
      return attrs.left_side ? to[r * m.columns + other] : to[other * m.columns + r];
    };
    for (int64_t other = 0; other < others; ++other) {
      for (int64_t s = 0; s < n; ++s) {
        const int64_t r = forward ? s : n - 1 - s;
        Complex sum = element(r, other);
        for (int64_t t = 0; t < s; ++t) {
          const int64_t c = forward ? t : n - 1 - t;
          sum -= entry(r, c) * element(c, other);
        }
        element(r, other) = attrs.unit_diagonal ? sum : sum / entry(r, r);
      }
    }
  }
  return x.Converted(instruction.shape().dtype());
}

}  // namespace lazuli::hlo
