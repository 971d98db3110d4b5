#include "ir/evaluator/cumulative.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include "ir/evaluator/monoid_loops.h"
#include "ir/evaluator/region.h"
#include "ir/evaluator/strided.h"

namespace lazuli::hlo {
namespace {

template <class T>
using SumType = std::conditional_t<recipes::SmallFloat<T>, float, T>;

// As many lines at a time: their sums and carries stay in the first cache beside what they read,
// and a row of them is two pages of memory.
template <class S>
constexpr int64_t kLines = 8192 / sizeof(S);

// sums[j] = f(sums[j], x[j]), or x[j] where sums start.
template <Opcode kMonoid, class S, class T>
void Into(S* sums, bool start, const T* x, int64_t width) {
  if (start) {
    for (int64_t j = 0; j < width; ++j) sums[j] = static_cast<S>(x[j]);
  } else {
    for (int64_t j = 0; j < width; ++j)
      sums[j] = Combine<kMonoid, S>(sums[j], static_cast<S>(x[j]));
  }
}

// Prefixes of the totals of blocks, of up to kWidth neighbouring lines. Level 0 folds the totals of
// the blocks, each level above it those of the full blocks of the level below.
template <Opcode kMonoid, class S, int64_t kWidth>
class Carries {
 public:
  explicit Carries(int64_t lines) : lines_(lines) {}
  // The prefix of the blocks so far; null before the first.
  const S* get() const { return blocks_ == 0 ? nullptr : prefix_; }

  void Add(const S* totals) {
    ++blocks_;
    int64_t count = blocks_;  // of totals that have come to the level
    for (int level = 0; level < kLevels; ++level, count /= kScanBlock) {
      Into<kMonoid>(levels_[level], /*start=*/count % kScanBlock == 1, totals, width());
      if (count % kScanBlock != 0) break;
      totals = levels_[level];
    }
    bool start = true;
    for (int level = kLevels - 1; level >= 0; --level) {
      if ((blocks_ >> level * kScanBits) % kScanBlock == 0) continue;  // nothing, or handed on
      Into<kMonoid>(prefix_, start, levels_[level], width());
      start = false;
    }
  }

 private:
  int64_t width() const { return kWidth == 1 ? 1 : lines_; }

  static constexpr int kScanBits = std::countr_zero(static_cast<uint64_t>(kScanBlock));
  static constexpr int kLevels = 64 / kScanBits - 1;  // of blocks of 64-bit numbers of elements
  int64_t lines_, blocks_ = 0;
  S prefix_[kWidth], levels_[kLevels][kWidth];
};

// `lines` neighbouring lines from x on, at most kWidth. The result may take x's place.
template <Opcode kMonoid, class T, int64_t kWidth>
void Lines(const T* x, T init, T* result, int64_t size, int64_t step, int64_t lines) {
  using S = SumType<T>;
  const int64_t width = kWidth == 1 ? 1 : lines;  // one line's sums stay in registers
  Carries<kMonoid, S, kWidth> carries(width);
  S local[kWidth];
  std::fill_n(local, width, static_cast<S>(init));
  for (int64_t begin = 0; begin < size; begin += kScanBlock) {
    const S* carry = carries.get();
    const int64_t end = std::min(begin + kScanBlock, size);
    for (int64_t i = begin; i < end; ++i) {
      Into<kMonoid>(local, /*start=*/i == begin && begin > 0, x + i * step, width);
      T* to = result + i * step;
      if (carry == nullptr) {
        for (int64_t j = 0; j < width; ++j) to[j] = static_cast<T>(local[j]);
      } else {
        for (int64_t j = 0; j < width; ++j)
          to[j] = static_cast<T>(Combine<kMonoid, S>(carry[j], local[j]));
      }
    }
    if (end < size) carries.Add(local);
  }
}

// Lines [begin, end) may cross from one outer position to the next; each piece is a run of
// neighbours, along which the loop over a step is contiguous.
template <Opcode kMonoid, class T>
void Loop(const CumulativeLines& lines, const std::byte* x_bytes, const std::byte* init_bytes,
          std::byte* result_bytes, int64_t begin, int64_t end) {
  constexpr int64_t kAtOnce = kLines<SumType<T>>;
  const T init = *reinterpret_cast<const T*>(init_bytes);
  while (begin < end) {
    const int64_t outer = begin / lines.inner, first = begin % lines.inner;
    const int64_t width = std::min({lines.inner - first, end - begin, kAtOnce});
    const int64_t start = outer * lines.size * lines.inner + first +
                          (lines.reverse ? (lines.size - 1) * lines.inner : 0);
    const int64_t step = lines.reverse ? -lines.inner : lines.inner;
    const T* x = reinterpret_cast<const T*>(x_bytes) + start;
    T* to = reinterpret_cast<T*>(result_bytes) + start;
    if (width == 1)
      Lines<kMonoid, T, 1>(x, init, to, lines.size, step, 1);
    else
      Lines<kMonoid, T, kAtOnce>(x, init, to, lines.size, step, width);
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

namespace {

Literal RunLoop(CumulativeLoop loop, const CumulativeLines& lines, const Literal& x,
                const Literal& init) {
  Literal result = Literal::Uninitialized(x.shape());
  loop(lines, x.raw(), init.raw(), result.mutable_raw(), 0, lines.outer * lines.inner);
  return result;
}

}  // namespace

CumulativeLoop FindCumulativeLoop(Opcode monoid, DType dtype) {
  return FindMonoidLoop<CumulativeLoop>(
      monoid, dtype, []<Opcode kMonoid, class T>() -> CumulativeLoop { return Loop<kMonoid, T>; });
}

absl::StatusOr<Literal> EvaluateCumulative(const Instruction& instruction, const Cumulative& along,
                                           Operands operands, Evaluation& evaluation) {
  const Literal &x = *operands[0], &start = *operands[1];
  if (x.shape().num_elements() == 0) return Literal(instruction.shape());
  const CumulativeLines lines(x.shape(), along);
  const DType dtype = x.shape().dtype(), wide = AccumulationType(dtype);
  if (const std::optional<Opcode> monoid = MonoidOf(*instruction.to_apply())) {
    if (const CumulativeLoop loop = FindCumulativeLoop(*monoid, dtype))
      return RunLoop(loop, lines, x, start);
    const CumulativeLoop loop = wide == dtype ? nullptr : FindCumulativeLoop(*monoid, wide);
    if (loop != nullptr)
      return RunLoop(loop, lines, x.Converted(wide), start.Converted(wide)).Converted(dtype);
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
  RegionEvaluator region(*instruction.to_apply(), lanes, evaluation);
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
