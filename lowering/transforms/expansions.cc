#include "lowering/transforms/expansions.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "ir/evaluator/evaluator.h"
#include "ir/hlo/monoid.h"
#include "ir/support/status.h"
#include "lowering/transforms/formula.h"
#include "lowering/transforms/parts.h"

namespace lazuli::lowering {
namespace {

std::vector<Op> ParametersLike(Builder& b, const hlo::Instruction& i) {
  std::vector<Op> parameters;
  for (const hlo::Instruction* operand : i.operands())
    parameters.push_back(b.Parameter(static_cast<int64_t>(parameters.size()), operand->shape()));
  return parameters;
}

Op OneOrTuple(Builder& b, absl::Span<const Op> parts) {
  return parts.size() == 1 ? parts[0] : b.Tuple(parts);
}

std::vector<Op> Joined(absl::Span<const Op> x, absl::Span<const Op> y) {
  std::vector<Op> all(x.begin(), x.end());
  all.insert(all.end(), y.begin(), y.end());
  return all;
}

// --- reduce

// Every `stride`-th element of dimension d of the arrays, from `start` to before `limit`.
std::vector<Op> Range(Builder& b, absl::Span<const Op> xs, int64_t d, int64_t start, int64_t limit,
                      int64_t stride) {
  std::vector<Op> parts;
  for (const Op x : xs) {
    const auto rank = static_cast<std::size_t>(x.rank());
    ir::Dims starts(rank, 0), strides(rank, 1);
    ir::Dims limits(x.shape().dims().begin(), x.shape().dims().end());
    starts[static_cast<std::size_t>(d)] = start;
    limits[static_cast<std::size_t>(d)] = limit;
    strides[static_cast<std::size_t>(d)] = stride;
    parts.push_back(b.Slice(x, starts, limits, strides));
  }
  return parts;
}

// One element along dimension d of each array: neighbours are combined, in their order.
std::vector<Op> Halved(Builder& b, const hlo::Computation& reducer, std::vector<Op> xs, int64_t d) {
  while (b.status().ok() && xs[0].shape().dim(d) > 1) {
    const int64_t size = xs[0].shape().dim(d), half = size / 2;
    const std::vector<Op> even = Range(b, xs, d, 0, 2 * half, 2);
    const std::vector<Op> odd = Range(b, xs, d, 1, 2 * half, 2);
    const ir::Dims dims(even[0].shape().dims().begin(), even[0].shape().dims().end());
    std::vector<Op> next = CopyElementwise(b, reducer, Joined(even, odd), dims);
    if (size % 2 == 1) {
      const std::vector<Op> last = Range(b, xs, d, size - 1, size, 1);
      for (std::size_t k = 0; k < next.size(); ++k) next[k] = b.Concatenate({next[k], last[k]}, d);
    }
    xs = std::move(next);
  }
  return xs;
}

// --- reduce-window

// x with its window's padding and the holes between its elements filled.
Op Padded(Builder& b, Op x, Op init, const hlo::Window& window) {
  ir::Dims low, high, interior;
  for (const hlo::WindowDim& dim : window) {
    low.push_back(dim.pad_low);
    high.push_back(dim.pad_high);
    interior.push_back(dim.base_dilation - 1);
  }
  return b.Pad(x, init, low, high, interior);
}

// The elements at this position of all windows.
Op AtPosition(Builder& b, Op padded, const hlo::Window& window, absl::Span<const int64_t> position,
              const Shape& result) {
  ir::Dims starts, limits, strides;
  for (std::size_t d = 0; d < window.size(); ++d) {
    starts.push_back(position[d] * window[d].window_dilation);
    limits.push_back(starts[d] + (result.dims()[d] - 1) * window[d].stride + 1);
    strides.push_back(window[d].stride);
  }
  return b.Slice(padded, starts, limits, strides);
}

absl::Status CheckWindow(const hlo::Instruction& i, absl::Span<const int64_t> sizes) {
  constexpr int64_t kLargest = 256;
  int64_t elements = 1;
  for (const int64_t size : sizes) elements *= size;
  if (elements <= kLargest) return absl::OkStatus();
  return hlo::AtInstruction(
      Unimplemented("no derivative of reduce-window by ", i.to_apply()->name(),
                    " over windows of more than ", kLargest, " elements"),
      i);
}

// --- batch norm

// What the three normalisations share: the dimensions, and vectors of features beside arrays.
struct Features {
  Builder& b;
  const hlo::BatchNormAttrs& attrs;
  Shape shape;  // in which sums accumulate
  ir::Dims others{};
  double count = 1;

  Features(Builder& builder, const hlo::Instruction& i)
      : b(builder),
        attrs(i.attrs_as<hlo::BatchNormAttrs>()),
        shape(hlo::AccumulationType(i.operand(0)->shape().dtype()), i.operand(0)->shape().dims()) {
    for (int64_t d = 0; d < shape.rank(); ++d) {
      if (d == attrs.feature_index) continue;
      others.push_back(d);
      count *= static_cast<double>(shape.dim(d));
    }
  }
  Value Wide(Op x) const { return b.Convert(x, shape.dtype()); }
  Value Beside(Value v) const { return b.Broadcast(v.op, shape.dims(), {attrs.feature_index}); }
  Value Sum(Value x) const { return b.Reduce(Opcode::kAdd, x.op, others); }
  Value Mean(Value x) const { return 1 / count * Sum(x); }
  Value Scale(Value variance) const { return Rsqrt(variance + double{attrs.epsilon}); }
};

std::vector<Op> TrainedNorm(const Features& f, absl::Span<const Op> p) {
  const Value x = f.Wide(p[0]), mean = f.Mean(x), centred = x - f.Beside(mean);
  const Value variance = f.Mean(centred * centred);
  const Value y = centred * f.Beside(f.Scale(variance) * f.Wide(p[1])) + f.Beside(f.Wide(p[2]));
  return {y.op, mean.op, variance.op};
}

std::vector<Op> InferredNorm(const Features& f, absl::Span<const Op> p) {
  const Value centred = f.Wide(p[0]) - f.Beside(f.Wide(p[3]));
  const Value scale = f.Scale(f.Wide(p[4])) * f.Wide(p[1]);
  return {(centred * f.Beside(scale) + f.Beside(f.Wide(p[2]))).op};
}

std::vector<Op> NormGradient(const Features& f, absl::Span<const Op> p) {
  const Value scale = f.Scale(f.Wide(p[3])), g = f.Wide(p[4]);
  const Value normal = (f.Wide(p[0]) - f.Beside(f.Wide(p[2]))) * f.Beside(scale);
  const Value offset = f.Sum(g), along = f.Sum(g * normal);
  const Value mean = f.Beside(1 / f.count * offset) + normal * f.Beside(1 / f.count * along);
  return {(f.Beside(scale * f.Wide(p[1])) * (g - mean)).op, along.op, offset.op};
}

}  // namespace

absl::StatusOr<hlo::Computation*> ExpandReduce(hlo::Module& module,
                                               const hlo::Instruction& reduce) {
  Builder b(&module, "expanded_reduce");
  const std::vector<Op> all = ParametersLike(b, reduce);
  const auto half = static_cast<std::ptrdiff_t>(all.size() / 2);
  std::vector<Op> xs(all.begin(), all.begin() + half);
  const std::vector<Op> inits(all.begin() + half, all.end());
  const hlo::Computation& reducer = *reduce.to_apply();
  ir::Dims dims = reduce.attrs_as<hlo::DimensionsAttrs>().dimensions;
  bool empty = false;
  for (const int64_t d : dims) empty = empty || xs[0].shape().dim(d) == 0;
  for (const int64_t d : dims) xs = Halved(b, reducer, std::move(xs), d);
  const Shape& first = reduce.shape().IsTuple() ? reduce.shape().tuple()[0] : reduce.shape();
  std::vector<Op> begin;
  for (const Op init : inits) begin.push_back(b.Broadcast(init, first.dims(), {}));
  if (empty) return b.Finish(OneOrTuple(b, begin));
  for (Op& x : xs) x = b.Reshape(x, first.dims());
  return b.Finish(OneOrTuple(b, CopyElementwise(b, reducer, Joined(begin, xs), first.dims())));
}

absl::StatusOr<hlo::Computation*> ExpandReduceWindow(hlo::Module& module,
                                                     const hlo::Instruction& reduce_window) {
  const hlo::Window& window = reduce_window.attrs_as<hlo::WindowAttrs>().window;
  ir::Dims sizes;
  for (const hlo::WindowDim& dim : window) sizes.push_back(dim.size);
  LAZULI_RETURN_IF_ERROR(CheckWindow(reduce_window, sizes));
  Builder b(&module, "expanded_reduce_window");
  const std::vector<Op> all = ParametersLike(b, reduce_window);
  const std::size_t half = all.size() / 2;
  const Shape& result =
      reduce_window.shape().IsTuple() ? reduce_window.shape().tuple()[0] : reduce_window.shape();
  std::vector<Op> padded, sum;
  for (std::size_t k = 0; k < half; ++k) {
    padded.push_back(Padded(b, all[k], all[half + k], window));
    sum.push_back(b.Broadcast(all[half + k], result.dims(), {}));
  }
  if (result.num_elements() > 0) {
    ir::ForEachIndex(sizes, [&](absl::Span<const int64_t> position) {
      std::vector<Op> here;
      for (const Op x : padded) here.push_back(AtPosition(b, x, window, position, result));
      sum = CopyElementwise(b, *reduce_window.to_apply(), Joined(sum, here), result.dims());
    });
  }
  return b.Finish(OneOrTuple(b, sum));
}

absl::StatusOr<hlo::Computation*> ExpandMap(hlo::Module& module, const hlo::Instruction& map) {
  Builder b(&module, "expanded_map");
  const std::vector<Op> parameters = ParametersLike(b, map);
  return b.Finish(CopyElementwise(b, *map.to_apply(), parameters, map.shape().dims())[0]);
}

absl::StatusOr<hlo::Computation*> ExpandBatchNorm(hlo::Module& module,
                                                  const hlo::Instruction& batch_norm) {
  Builder b(&module, "expanded_batch_norm");
  const std::vector<Op> p = ParametersLike(b, batch_norm);
  const Features f(b, batch_norm);
  const bool is_training = batch_norm.opcode() == Opcode::kBatchNormTraining;
  const bool is_gradient = batch_norm.opcode() == Opcode::kBatchNormGrad;
  std::vector<Op> results = is_training   ? TrainedNorm(f, p)
                            : is_gradient ? NormGradient(f, p)
                                          : InferredNorm(f, p);
  const std::vector<Shape> shapes = PartsOf(batch_norm.shape());
  for (std::size_t k = 0; k < results.size(); ++k)
    results[k] = b.Convert(results[k], shapes[k].dtype());
  return b.Finish(OneOrTuple(b, results));
}

}  // namespace lazuli::lowering
