// Windows that slide over all dimensions: reduce-window and select-and-scatter.
//
// Both go over the window's positions in row-major order, and at each one over all output positions
// that find an element there (not padding, not between dilated elements), as arrays. So every
// output folds its elements in window order.

#include <algorithm>
#include <numeric>

#include "ir/evaluator/cumulative.h"
#include "ir/evaluator/internal.h"
#include "ir/evaluator/region.h"
#include "ir/evaluator/strided.h"

namespace lazuli::hlo {
namespace {

// Output positions first, first + step, ... (count of them) along one dimension read input
// positions from, from + from_step, ...
struct Range {
  int64_t first = 0, step = 1, count = 0;
  int64_t from = 0, from_step = 1;
};

Range RangeAt(const WindowDim& window, int64_t position, int64_t input_size, int64_t output_size) {
  Range range;
  const int64_t shift = position * window.window_dilation - window.pad_low;
  range.step = window.base_dilation / std::gcd(window.stride, window.base_dilation);
  range.from_step = range.step * window.stride / window.base_dilation;
  auto dilated = [&](int64_t output) { return output * window.stride + shift; };
  while (range.first < output_size &&
         (dilated(range.first) < 0 || dilated(range.first) % window.base_dilation != 0))
    ++range.first;
  range.from = dilated(range.first) / window.base_dilation;
  if (range.first >= output_size || range.from >= input_size) return range;
  const int64_t in_output = (output_size - 1 - range.first) / range.step + 1;
  const int64_t in_input =
      range.from_step == 0 ? in_output : (input_size - 1 - range.from) / range.from_step + 1;
  range.count = std::min(in_output, in_input);
  return range;
}

// The positions of the window between which all lie that read an element for some output: a window may
// be far larger than the input.
struct TapsInside {
  int64_t first = 0, count = 0;
};

TapsInside InsideOf(const WindowDim& window, int64_t input_size, int64_t output_size) {
  if (input_size == 0 || output_size == 0) return {};
  const int64_t low = window.pad_low - (output_size - 1) * window.stride,
                high = window.pad_low + (input_size - 1) * window.base_dilation;
  if (high < 0) return {};
  const int64_t first = (std::max<int64_t>(low, 0) + window.window_dilation - 1) /
                        window.window_dilation,
                last = std::min(window.size - 1, high / window.window_dilation);
  if (last < first) return {};
  return {.first = window.reversal ? window.size - 1 - last : first, .count = last - first + 1};
}

// A box of output positions and the box of the input they read, as arguments of CopyStrided.
struct Box {
  Dims counts;
  Dims input_steps, output_steps;  // in elements of the arrays
  int64_t input_offset = 0, output_offset = 0;
  int64_t lanes = 1;
};

// Calls f(box) for every position of the window at which some output reads an element.
template <class F>
absl::Status ForEachWindowPosition(const Window& window, const Shape& input, const Shape& output,
                                   F&& f) {
  Dims firsts, counts;
  for (std::size_t d = 0; d < window.size(); ++d) {
    const TapsInside inside = InsideOf(window[d], input.dims()[d], output.dims()[d]);
    firsts.push_back(inside.first);
    counts.push_back(inside.count);
  }
  const Dims input_strides = ElementStrides(input.dims());
  const Dims output_strides = ElementStrides(output.dims());
  absl::Status status;
  ForEachIndex(counts, [&](absl::Span<const int64_t> index) {
    if (!status.ok()) return;
    Box box;
    for (std::size_t d = 0; d < counts.size(); ++d) {
      const int64_t position = firsts[d] + index[d];
      const int64_t p = window[d].reversal ? window[d].size - 1 - position : position;
      const Range range = RangeAt(window[d], p, input.dims()[d], output.dims()[d]);
      box.counts.push_back(range.count);
      box.input_steps.push_back(range.from_step * input_strides[d]);
      box.output_steps.push_back(range.step * output_strides[d]);
      box.input_offset += range.from * input_strides[d];
      box.output_offset += range.first * output_strides[d];
      box.lanes *= range.count;
    }
    if (box.lanes > 0) status = f(box);
  });
  return status;
}

Dims Scaled(const Dims& steps, int width) {
  Dims bytes = steps;
  for (int64_t& step : bytes) step *= width;
  return bytes;
}

// Between a box of an array and a dense buffer.
void Load(const Literal& array, const Box& box, bool input, std::byte* dense) {
  const int width = ByteWidth(array.shape().dtype());
  const Shape dense_shape(array.shape().dtype(), box.counts);
  CopyStrided(
      width, box.counts, array.raw() + (input ? box.input_offset : box.output_offset) * width,
      Scaled(input ? box.input_steps : box.output_steps, width), dense, ByteStrides(dense_shape));
}
void StoreOutput(Literal& array, const Box& box, const std::byte* dense) {
  const int width = ByteWidth(array.shape().dtype());
  const Shape dense_shape(array.shape().dtype(), box.counts);
  CopyStrided(width, box.counts, dense, ByteStrides(dense_shape),
              array.mutable_raw() + box.output_offset * width, Scaled(box.output_steps, width));
}

}  // namespace

absl::StatusOr<Literal> EvaluateReduceWindow(const Instruction& instruction, Operands operands,
                                             Evaluation& evaluation) {
  if (const auto along = MatchCumulative(instruction))
    return EvaluateCumulative(instruction, *along, operands, evaluation);
  const Window& window = instruction.attrs_as<WindowAttrs>().window;
  const std::size_t n = operands.size() / 2;
  const Shape& output =
      instruction.shape().IsTuple() ? instruction.shape().tuple()[0] : instruction.shape();
  const int64_t outputs = output.num_elements();
  std::vector<Literal> results, buffers;
  std::vector<const std::byte*> arguments;
  std::vector<std::byte*> accumulators;
  buffers.reserve(2 * n);
  for (std::size_t k = 0; k < 2 * n; ++k) {
    const DType dtype = operands[k % n]->shape().dtype();
    buffers.push_back(Literal::Uninitialized(Shape(dtype, {outputs})));
    arguments.push_back(buffers[k].raw());
    if (k >= n) continue;
    accumulators.push_back(buffers[k].mutable_raw());
    results.push_back(Literal::Uninitialized(Shape(dtype, output.dims())));
    Fill(ByteWidth(dtype), operands[n + k]->raw(), outputs, results[k].mutable_raw());
  }
  RegionEvaluator region(*instruction.to_apply(), outputs, evaluation);
  LAZULI_RETURN_IF_ERROR(ForEachWindowPosition(
      window, operands[0]->shape(), output, [&](const Box& box) -> absl::Status {
        for (std::size_t k = 0; k < n; ++k) {
          Load(results[k], box, /*input=*/false, accumulators[k]);
          Load(*operands[k], box, /*input=*/true, buffers[n + k].mutable_raw());
        }
        LAZULI_RETURN_IF_ERROR(region.Run(arguments, accumulators, box.lanes));
        for (std::size_t k = 0; k < n; ++k) StoreOutput(results[k], box, accumulators[k]);
        return absl::OkStatus();
      }));
  return instruction.shape().IsTuple() ? Literal::Tuple(std::move(results)) : std::move(results[0]);
}

// Each source element goes to the element of its window that `select` prefers to all before it;
// those are combined in row-major order of the source.
absl::StatusOr<Literal> EvaluateSelectAndScatter(const Instruction& instruction, Operands operands,
                                                 Evaluation& evaluation) {
  const Literal &x = *operands[0], &source = *operands[1], &init = *operands[2];
  const DType dtype = x.shape().dtype();
  const int width = ByteWidth(dtype);
  const int64_t sources = source.shape().num_elements();
  RegionEvaluator select(*instruction.called()[0], sources, evaluation);
  // The chosen element of every window, and its position; -1 while there is none.
  Literal chosen = Literal::Uninitialized(Shape(dtype, source.shape().dims()));
  Literal chosen_at = Literal::Full(Shape(DType::kS64, source.shape().dims()), -1);
  Literal positions = Literal::Uninitialized(Shape(DType::kS64, x.shape().dims()));
  auto all = positions.mutable_data<int64_t>();
  std::iota(all.begin(), all.end(), int64_t{0});
  Literal best = Literal::Uninitialized(Shape(dtype, {sources})), candidate = best.Clone();
  Literal best_at = Literal::Uninitialized(Shape(DType::kS64, {sources})),
          candidate_at = best_at.Clone();
  Literal keep = Literal::Uninitialized(Shape(DType::kPred, {sources}));
  LAZULI_RETURN_IF_ERROR(ForEachWindowPosition(
      instruction.attrs_as<WindowAttrs>().window, x.shape(), source.shape(),
      [&](const Box& box) -> absl::Status {
        Load(chosen, box, /*input=*/false, best.mutable_raw());
        Load(chosen_at, box, /*input=*/false, best_at.mutable_raw());
        Load(x, box, /*input=*/true, candidate.mutable_raw());
        Load(positions, box, /*input=*/true, candidate_at.mutable_raw());
        LAZULI_RETURN_IF_ERROR(
            select.Run({best.raw(), candidate.raw()}, {keep.mutable_raw()}, box.lanes));
        for (int64_t i = 0; i < box.lanes; ++i) {
          const auto lane = static_cast<std::size_t>(i);
          if (keep.data<bool>()[lane] && best_at.data<int64_t>()[lane] >= 0) continue;
          std::copy_n(candidate.raw() + i * width, width, best.mutable_raw() + i * width);
          best_at.mutable_data<int64_t>()[lane] = candidate_at.data<int64_t>()[lane];
        }
        StoreOutput(chosen, box, best.raw());
        StoreOutput(chosen_at, box, best_at.raw());
        return absl::OkStatus();
      }));
  Literal result = Literal::Uninitialized(instruction.shape());
  Fill(width, init.raw(), result.shape().num_elements(), result.mutable_raw());
  RegionEvaluator scatter(*instruction.called()[1], 1, evaluation);
  for (int64_t i = 0; i < sources; ++i) {
    const int64_t at = chosen_at.data<int64_t>()[static_cast<std::size_t>(i)];
    if (at < 0) continue;
    std::byte* to = result.mutable_raw() + at * width;
    LAZULI_RETURN_IF_ERROR(scatter.Run({to, source.raw() + i * width}, {to}, 1));
  }
  return result;
}

}  // namespace lazuli::hlo
