// Views of a rank that is at least 1, 2 or 3: atleast_1d and its like.
#include "lazy/ops/core/functions.h"

namespace lazuli::lazy {
namespace {

template <class F>
Tensors Each(absl::Span<const Tensor> xs, F&& f) {
  Tensors all;
  for (const Tensor& x : xs) all.push_back(f(x));
  return all;
}

}  // namespace

Tensor Atleast1dView(const Tensor& x) { return x.rank() == 0 ? ReshapeView(x, {1}) : x; }
Tensor Atleast2dView(const Tensor& x) {
  return x.rank() == 0 ? ReshapeView(x, {1, 1}) : x.rank() == 1 ? UnsqueezeView(x, 0) : x;
}
Tensor Atleast3dView(const Tensor& x) {
  return x.rank() < 3 ? UnsqueezeView(Atleast2dView(x), -1) : x;
}
Tensors Atleast1dView(absl::Span<const Tensor> xs) {
  return Each(xs, [](const Tensor& x) { return Atleast1dView(x); });
}
Tensors Atleast2dView(absl::Span<const Tensor> xs) {
  return Each(xs, [](const Tensor& x) { return Atleast2dView(x); });
}
Tensors Atleast3dView(absl::Span<const Tensor> xs) {
  return Each(xs, [](const Tensor& x) { return Atleast3dView(x); });
}

}  // namespace lazuli::lazy
