#include "ir/evaluator/cumulative.h"

#include <algorithm>
#include <cstring>

#include "ir/evaluator/monoid_loops.h"
#include "ir/evaluator/region.h"
#include "ir/evaluator/strided.h"

namespace lazuli::hlo {
namespace {

// Lines [begin, end) may cross from one outer position to the next; each piece is a run of
// neighbours, along which the loop over a step is contiguous.
template <Opcode kMonoid, class T>
void Loop(const CumulativeLines& lines, const std::byte* x_bytes, const std::byte* init_bytes,
          std::byte* result_bytes, int64_t begin, int64_t end) {
  const T init = *reinterpret_cast<const T*>(init_bytes);
  while (begin < end) {
    const int64_t outer = begin / lines.inner, first = begin % lines.inner;
    const int64_t width = std::min(lines.inner - first, end - begin);
    const int64_t start = outer * lines.size * lines.inner + first +
                          (lines.reverse ? (lines.size - 1) * lines.inner : 0);
    const int64_t step = lines.reverse ? -lines.inner : lines.inner;
    const T* x = reinterpret_cast<const T*>(x_bytes) + start;
    T* to = reinterpret_cast<T*>(result_bytes) + start;
    if (width == 1) {
      T sum = init;
      for (int64_t i = 0; i < lines.size; ++i) {
        sum = Combine<kMonoid, T>(sum, x[i * step]);
        to[i * step] = sum;
      }
    } else {
      for (int64_t j = 0; j < width; ++j) to[j] = Combine<kMonoid, T>(init, x[j]);
      for (int64_t i = 1; i < lines.size; ++i) {
        for (int64_t j = 0; j < width; ++j)
          to[i * step + j] = Combine<kMonoid, T>(to[(i - 1) * step + j], x[i * step + j]);
      }
    }
    begin += width;
  }
}

}  // namespace

std::optional<Cumulative> MatchCumulative(const Instruction& reduce_window) {
  if (reduce_window.operand_count() != 2) return std::nullopt;
  const Shape& shape = reduce_window.operand(0)->shape();
  const Window& window = reduce_window.attrs_as<WindowAttrs>().window;
  std::optional<Cumulative> found;
  for (int64_t d = 0; d < shape.rank(); ++d) {
    const WindowDim& dim = window[static_cast<std::size_t>(d)];
    const int64_t n = shape.dim(d);
    if (dim.stride != 1 || dim.base_dilation != 1 || dim.window_dilation != 1) return std::nullopt;
    if (dim.size == 1 && dim.pad_low == 0 && dim.pad_high == 0) continue;
    const bool forward = dim.pad_low == n - 1 && dim.pad_high == 0;
    const bool reverse = dim.pad_low == 0 && dim.pad_high == n - 1;
    if (found || n < 2 || dim.size != n || dim.reversal || (!forward && !reverse))
      return std::nullopt;
    found = Cumulative{d, reverse};
  }
  return found;
}

CumulativeLines::CumulativeLines(const Shape& shape, const Cumulative& along)
    : size(shape.dim(along.dimension)), reverse(along.reverse) {
  for (int64_t d = 0; d < along.dimension; ++d) outer *= shape.dim(d);
  for (int64_t d = along.dimension + 1; d < shape.rank(); ++d) inner *= shape.dim(d);
}

CumulativeLoop FindCumulativeLoop(const Instruction& reduce_window) {
  return FindMonoidLoop<CumulativeLoop>(
      *reduce_window.to_apply(), reduce_window.shape().dtype(),
      []<Opcode kMonoid, class T>() -> CumulativeLoop { return Loop<kMonoid, T>; });
}

absl::StatusOr<Literal> EvaluateCumulative(const Instruction& instruction, const Cumulative& along,
                                           Operands operands, Context& context) {
  const Literal& x = *operands[0];
  if (x.shape().num_elements() == 0) return Literal(instruction.shape());
  const CumulativeLines lines(x.shape(), along);
  if (const CumulativeLoop loop = FindCumulativeLoop(instruction)) {
    Literal result = Literal::Uninitialized(instruction.shape());
    loop(lines, x.raw(), operands[1]->raw(), result.mutable_raw(), 0, lines.outer * lines.inner);
    return result;
  }
  // Steps become rows, so that a step runs over all lines at once.
  Dims to_front = {along.dimension}, back;
  for (int64_t d = 0; d < x.shape().rank(); ++d) {
    if (d != along.dimension) to_front.push_back(d);
    back.push_back(d < along.dimension ? d + 1 : d == along.dimension ? 0 : d);
  }
  const Literal steps = Transposed(x, to_front);
  Literal result = Literal::Uninitialized(steps.shape());
  const int64_t lanes = lines.outer * lines.inner;
  const int64_t bytes = lanes * ByteWidth(x.shape().dtype());
  Literal init = Literal::Uninitialized(Shape(x.shape().dtype(), {lanes}));
  Fill(ByteWidth(x.shape().dtype()), operands[1]->raw(), lanes, init.mutable_raw());
  Region region(*instruction.to_apply(), lanes, context);
  const std::byte* sum = init.raw();
  for (int64_t i = 0; i < lines.size; ++i) {
    const int64_t row = lines.reverse ? lines.size - 1 - i : i;
    const std::byte* element = steps.raw() + row * bytes;
    std::byte* to = result.mutable_raw() + row * bytes;
    LAZULI_RETURN_IF_ERROR(lines.reverse ? region.Run({element, sum}, {to}, lanes)
                                         : region.Run({sum, element}, {to}, lanes));
    sum = to;
  }
  return Transposed(result, back);
}

}  // namespace lazuli::hlo
