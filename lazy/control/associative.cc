#include "lazy/control/associative.h"

#include <utility>

#include "lazy/ops/core/functions.h"

namespace lazuli::lazy {
namespace {

template <class F>
Tensors Each(absl::Span<const Tensor> xs, F&& f) {
  Tensors results;
  for (const Tensor& x : xs) results.push_back(f(x));
  return results;
}

// Elements 0, 2, ... or 1, 3, ... of the first 2 * count along the dim.
Tensor OfPairs(const Tensor& x, int64_t dim, int64_t count, int64_t which) {
  Dims dims(x.shape().dims().begin(), x.shape().dims().end());
  const auto at = static_cast<std::size_t>(dim);
  dims[at] = 2;
  dims.insert(dims.begin() + dim, count);
  return Squeeze(Narrow(Reshape(Narrow(x, dim, 0, 2 * count), dims), dim + 1, which, 1), dim + 1);
}

// even[0], odd[0], even[1], ..., of which there may be one more even one.
Tensor Interleaved(const Tensor& even, const Tensor& odd, int64_t dim) {
  const int64_t count = odd.dim(dim);
  Dims dims(odd.shape().dims().begin(), odd.shape().dims().end());
  dims[static_cast<std::size_t>(dim)] = 2 * count;
  const Tensor pairs = Reshape(Stack({Narrow(even, dim, 0, count), odd}, dim + 1), dims);
  if (even.dim(dim) == count) return pairs;
  return Cat({pairs, Narrow(even, dim, count, 1)}, dim);
}

}  // namespace

Tensors AssociativeScan(const std::string& name, absl::Span<const Tensor> xs, int64_t dim,
                        CombineFunction combine) {
  const auto combined = [&](const Tensors& left, const Tensors& right) {
    Tensors results = combine(left, right);
    if (results.size() != left.size()) {
      ThrowRecordError(name, InvalidArgument("the function returns ", results.size(),
                                             " tensors for ", left.size()));
    }
    for (std::size_t i = 0; i < results.size(); ++i) {
      if (results[i].defined() && Compatible(results[i].shape(), left[i].shape())) continue;
      ThrowRecordError(
          name, InvalidArgument(
                    "the function makes ",
                    results[i].defined() ? results[i].shape().ToString() : "an undefined tensor",
                    " of ", left[i].shape(), "; shape and dtype must stay the same"));
    }
    return results;
  };
  const int64_t n = xs.empty() ? 0 : xs[0].dim(dim), pairs = n / 2, even_count = n - pairs;
  if (n < 2) return Tensors(xs.begin(), xs.end());
  const Tensors first = Each(xs, [&](const Tensor& x) { return OfPairs(x, dim, pairs, 0); });
  const Tensors second = Each(xs, [&](const Tensor& x) { return OfPairs(x, dim, pairs, 1); });
  const Tensors odd = AssociativeScan(name, combined(first, second), dim, combine);
  Tensors even = Each(xs, [&](const Tensor& x) { return Narrow(x, dim, 0, 1); });
  if (even_count > 1) {
    Tensors left = Each(odd, [&](const Tensor& x) { return Narrow(x, dim, 0, even_count - 1); });
    Tensors right;
    for (std::size_t i = 0; i < xs.size(); ++i) {
      Tensor rest = Narrow(first[i], dim, 1, pairs - 1);
      right.push_back(n % 2 == 0 ? rest : Cat({rest, Narrow(xs[i], dim, n - 1, 1)}, dim));
    }
    const Tensors made = combined(left, right);
    for (std::size_t i = 0; i < even.size(); ++i) even[i] = Cat({even[i], made[i]}, dim);
  }
  Tensors results;
  for (std::size_t i = 0; i < xs.size(); ++i) results.push_back(Interleaved(even[i], odd[i], dim));
  return results;
}

}  // namespace lazuli::lazy
