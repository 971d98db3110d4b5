// Largest elements of windows put back where they stood.
#include <string_view>

#include "lazy/ops/core/functions.h"
#include "lazy/ops/pool/pool.h"

namespace lazuli::lazy {
namespace {

Tensor Unpooled(std::string_view op, const Tensor& x, const Tensor& indices, const Dims& kernel,
                const Dims& stride, const Dims& padding, absl::Span<const int64_t> output_size) {
  const auto n = static_cast<int64_t>(kernel.size());
  if (x.shape().dims() != indices.shape().dims()) {
    ThrowRecordError(op, InvalidArgument("x ", x.shape(), " and indices ", indices.shape(),
                                         " must have the same dims"));
  }
  if (x.rank() != n + 1 && x.rank() != n + 2) {
    ThrowRecordError(op, InvalidArgument("takes ", n + 1, " or ", n + 2, " dims, not ", x.rank()));
  }
  if (!output_size.empty() && output_size.size() < kernel.size()) {
    ThrowRecordError(op, InvalidArgument("output_size (", Join(output_size, ", "),
                                         ") has fewer than ", n, " numbers"));
  }
  Dims sizes;
  int64_t count = 1;
  for (std::size_t d = 0; d < kernel.size(); ++d) {
    const int64_t of = x.dim(x.rank() - n + static_cast<int64_t>(d));
    int64_t size = (of - 1) * stride[d] - 2 * padding[d] + kernel[d];
    if (!output_size.empty()) {
      const int64_t wanted = output_size[output_size.size() - kernel.size() + d];
      if (wanted <= size - stride[d] || wanted >= size + stride[d]) {
        ThrowRecordError(op, InvalidArgument("invalid output_size (", Join(output_size, ", "),
                                             "): about ", size, " is meant for dim ", d));
      }
      size = wanted;
    }
    if (size < 0)
      ThrowRecordError(op, InvalidArgument("dim ", d, " would have ", size, " elements"));
    sizes.push_back(size);
    count *= size;
  }
  Dims flat(x.shape().dims().begin(), x.shape().dims().end() - n), whole = flat;
  flat.push_back(count);
  whole.insert(whole.end(), sizes.begin(), sizes.end());
  if (count == 0) return Reshape(Narrow(Flatten(x, -n), -1, 0, 0), whole);
  const Tensor zeros = FullConstant(Shape(x.dtype(), flat), 0, x.device());
  return Reshape(Scatter(zeros, -1, Flatten(indices, -n), Flatten(x, -n)), whole);
}

}  // namespace

Tensor MaxUnpool1d(const Tensor& x, const Tensor& indices, int64_t kernel,
                   std::optional<int64_t> stride, int64_t padding,
                   absl::Span<const int64_t> output_size) {
  return Unpooled("max_unpool1d", x, indices, {kernel}, {stride.value_or(kernel)}, {padding},
                  output_size);
}
Tensor MaxUnpool2d(const Tensor& x, const Tensor& indices, Pair kernel, std::optional<Pair> stride,
                   Pair padding, absl::Span<const int64_t> output_size) {
  const auto dims = [](Pair pair) { return Dims{pair[0], pair[1]}; };
  return Unpooled("max_unpool2d", x, indices, dims(kernel), dims(stride.value_or(kernel)),
                  dims(padding), output_size);
}
Tensor MaxUnpool3d(const Tensor& x, const Tensor& indices, absl::Span<const int64_t> kernel,
                   absl::Span<const int64_t> stride, absl::Span<const int64_t> padding,
                   absl::Span<const int64_t> output_size) {
  constexpr char kOp[] = "max_unpool3d";
  const Dims size = OneForEachDim(kOp, "kernel", kernel, 3, {});
  return Unpooled(kOp, x, indices, size, OneForEachDim(kOp, "stride", stride, 3, size),
                  OneForEachDim(kOp, "padding", padding, 3, {0, 0, 0}), output_size);
}

}  // namespace lazuli::lazy
