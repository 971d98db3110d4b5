// Cumulative sums and their like, which arrive as a reduce-window as wide as the array: one pass
// over the elements instead of one over the window for each of them.
//
//   reduce-window(x, 0), window={size=n pad=(n-1)_0}, to_apply=add   // result[i] = x[0] + ... +
//   x[i]
//
// Elements are combined from the padded end on: forward as the window would, backward (pad=0_(n-1))
// as the reducer's associativity allows. By a monoid (ir/hlo/monoid.h) in blocks of kScanBlock, so
// that errors grow with the logarithm of the position: result[i] is f(carry, local), where local
// folds the elements of i's block up to i in order, and carry the totals of the blocks before. Of
// each kScanBlock totals one is made by folding them in order, of as many of those again one, and
// so on; the carry folds what is left on each level, from the topmost down. The first block starts
// from init and has no carry. Floats of 16 bits and less accumulate in f32, and each result is
// rounded once. Any other reducer folds strictly in order.
#pragma once

#include <optional>

#include "ir/evaluator/internal.h"
#include "ir/support/attrs.h"

namespace lazuli::hlo {

// As many sums one after the other as a lane of a reduction has (reduction_order.h); below it,
// lines are what a plain loop makes of them.
inline constexpr int64_t kScanBlock = 128;

struct Cumulative {
  int64_t dimension = 0;
  bool reverse = false;
};

// nullopt for other windows, for several operands, and where there is nothing to gain.
std::optional<Cumulative> MatchCumulative(const Instruction& reduce_window);

absl::StatusOr<Literal> EvaluateCumulative(const Instruction& instruction, const Cumulative& along,
                                           Operands operands, Evaluation& evaluation);

// The loop for a reducer that is a monoid: lines [begin, end) of `outer` x `inner` ones, each of
// `size` elements `inner` apart.
struct CumulativeLines {
  int64_t outer = 1, size = 0, inner = 1;
  bool reverse = false;
  LAZULI_ATTRS(outer, size, inner, reverse);
  CumulativeLines() = default;
  explicit CumulativeLines(const Shape& shape, const Cumulative& along);
};
using CumulativeLoop = void (*)(const CumulativeLines& lines, const std::byte* x,
                                const std::byte* init, std::byte* result, int64_t begin,
                                int64_t end);
// Null if the type has no such loop.
CumulativeLoop FindCumulativeLoop(Opcode monoid, DType dtype);

}  // namespace lazuli::hlo
