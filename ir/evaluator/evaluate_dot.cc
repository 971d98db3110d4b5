// Dot products. An element of the result is ((0 + a[0] b[0]) + a[1] b[1]) + ..., contracted
// dimensions in the order in which the attributes list them (the last innermost), product and sum
// rounded separately, in the accumulation type: f32 for narrower floats, else the result's type.
// One rounding to the result's type at the end.

#include "ir/evaluator/complex_ops.h"
#include "ir/evaluator/internal.h"
#include "ir/evaluator/kernels.h"
#include "ir/evaluator/scalar_ops.h"
#include "ir/evaluator/strided.h"
#include "ir/hlo/dot_dims.h"
#include "ir/hlo/monoid.h"

namespace lazuli::hlo {
namespace {

// c[m, n] += a[m, k] b[k, n], k ascending for every element; the inner loop runs along rows of b.
template <class T>
void MultiplyMatrices(const T* a, const T* b, T* c, int64_t m, int64_t k, int64_t n) {
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t p = 0; p < k; ++p) {
      const T factor = a[i * k + p];
      const T* row = b + p * n;
      T* to = c + i * n;
      for (int64_t j = 0; j < n; ++j)
        to[j] = recipes::Add(to[j], recipes::Multiply(factor, row[j]));
    }
  }
}

}  // namespace

absl::StatusOr<Literal> EvaluateDot(const Instruction& instruction, Operands operands) {
  const auto& attrs = instruction.attrs_as<DotAttrs>();
  const Shape &a_shape = operands[0]->shape(), &b_shape = operands[1]->shape();
  const Dims a_free = FreeDims(a_shape, attrs.lhs_batch_dims, attrs.lhs_contracting_dims);
  const Dims b_free = FreeDims(b_shape, attrs.rhs_batch_dims, attrs.rhs_contracting_dims);
  const DType dtype = AccumulationType(instruction.shape().dtype());
  const Literal a = Transposed(*operands[0], Concatenated(attrs.lhs_batch_dims, a_free,
                                                          attrs.lhs_contracting_dims))
                        .Converted(dtype);
  const Literal b = Transposed(*operands[1], Concatenated(attrs.rhs_batch_dims,
                                                          attrs.rhs_contracting_dims, b_free))
                        .Converted(dtype);
  const int64_t batch = SizeOf(a_shape, attrs.lhs_batch_dims);
  const int64_t m = SizeOf(a_shape, a_free), n = SizeOf(b_shape, b_free);
  const int64_t k = SizeOf(a_shape, attrs.lhs_contracting_dims);
  Shape shape = instruction.shape();
  shape.set_dtype(dtype);
  Literal result(shape);
  VisitDType(dtype, [&]<DType kType>() {
    using T = HostType<kType>;
    if constexpr (!recipes::SmallFloat<T>) {
      for (int64_t i = 0; i < batch; ++i) {
        MultiplyMatrices(a.data<T>().data() + i * m * k, b.data<T>().data() + i * k * n,
                         result.mutable_data<T>().data() + i * m * n, m, k, n);
      }
    }
  });
  WrapSubByte(dtype, result.mutable_raw(), result.shape().num_elements());
  return result.Converted(instruction.shape().dtype());
}

}  // namespace lazuli::hlo
