// Reductions that the vector unit has no instruction for: of several arrays at once, of 64 bits, by
// any reducer. Elements are joined by expressions, group by group, until they are few; those are
// folded in order, beginning with the initial values.

#include <algorithm>
#include <utility>
#include <vector>

#include "backend/npu/compiler/lowering.h"
#include "backend/npu/compiler/region.h"

namespace lazuli::npu {
namespace {

constexpr int64_t kGroup = 8;

// Columns first, first + step, ... (count of them) of a matrix.
View Columns(const View& matrix, int64_t first, int64_t step, int64_t count) {
  View part = matrix;
  part.offset += first * matrix.strides[1];
  part.dims[1] = count;
  part.strides[1] *= step;
  return part;
}

}  // namespace

// Makes the parts of the reducer's value one kernel each; `elements` are the rounds of arguments.
void Lowering::FoldKernels(const hlo::Computation& region, const std::vector<Views>& rounds,
                           const Views& init, const Views& results) {
  for (std::size_t r = 0; r < results.size(); ++r) {
    KernelMaker maker(b_.program(), results[r].dims);
    auto streams = [&maker](const Views& views) {
      std::vector<ValueNodes> values;
      for (const View& view : views) values.push_back(maker.Stream(view));
      return values;
    };
    std::size_t next = 0;
    std::vector<ValueNodes> folded = streams(init.empty() ? rounds[next++] : init);
    for (; next < rounds.size(); ++next) {
      std::vector<ValueNodes> arguments = folded;
      for (const ValueNodes& value : streams(rounds[next])) arguments.push_back(value);
      folded = AddRegion(region, arguments, maker.kernel.expression);
    }
    maker.kernel.root = folded[r];
    maker.kernel.result = results[r];
    EmitVectorKernel(std::move(maker.kernel), b_);
  }
}

void Lowering::LowerFold(const hlo::Instruction& i) {
  const auto count = static_cast<std::size_t>(i.operand_count() / 2);
  const Shape& operand = i.operand(0)->shape();
  const auto& reduced = i.attrs_as<hlo::DimensionsAttrs>().dimensions;
  Dims order, kept;
  for (int64_t d = 0; d < operand.rank(); ++d) {
    if (std::find(reduced.begin(), reduced.end(), d) == reduced.end()) {
      order.push_back(d);
      kept.push_back(operand.dim(d));
    }
  }
  Dims sorted(reduced.begin(), reduced.end());
  std::sort(sorted.begin(), sorted.end());
  order.insert(order.end(), sorted.begin(), sorted.end());
  int64_t rows = 1, n = 1;
  for (int64_t d : kept) rows *= d;
  for (int64_t d : sorted) n *= operand.dim(d);

  Views results = i.shape().IsArray() ? Views{NewArray(i)} : NewArrays(i.shape());
  values_[&i] = results;
  for (View& result : results) result = *ReshapeView(result, {rows, 1});
  Views init, matrices;
  for (std::size_t k = 0; k < count; ++k) {
    const hlo::Instruction& start = *i.operand(static_cast<int64_t>(count + k));
    init.push_back(BroadcastView(ValueOf(start), {rows, 1}, {}));
    if (n > 0)
      matrices.push_back(
          AsMatrices(ValueOf(*i.operand(static_cast<int64_t>(k))), order, {rows, n}));
  }
  const FoldOrder fold = FoldOrderOf(i);
  while (n > 4 * kGroup) {
    // Groups of neighbours, or, where the order does not matter, parts that lie one behind the other.
    const int64_t groups = n / kGroup, rest = n % kGroup, next = groups + (rest > 0 ? 1 : 0);
    Views joined, whole, tail;
    for (const View& matrix : matrices) {
      joined.push_back(Temporary(matrix.type, {rows, next}));
      whole.push_back(Columns(joined.back(), 0, 1, groups));
      tail.push_back(Columns(joined.back(), groups, 1, 1));
    }
    std::vector<Views> rounds, last;
    for (int64_t g = 0; g < kGroup; ++g) {
      Views round, remaining;
      for (const View& matrix : matrices) {
        round.push_back(fold == FoldOrder::kAny ? Columns(matrix, g * groups, 1, groups)
                                                : Columns(matrix, g, kGroup, groups));
        if (g < rest) remaining.push_back(Columns(matrix, groups * kGroup + g, 1, 1));
      }
      rounds.push_back(std::move(round));
      if (g < rest) last.push_back(std::move(remaining));
    }
    FoldKernels(*i.to_apply(), rounds, {}, whole);
    if (rest > 0) FoldKernels(*i.to_apply(), last, {}, tail);
    matrices = std::move(joined);
    n = next;
  }
  std::vector<Views> rounds;
  for (int64_t c = 0; c < n; ++c) {
    Views round;
    for (const View& matrix : matrices) round.push_back(Columns(matrix, c, 1, 1));
    rounds.push_back(std::move(round));
  }
  FoldKernels(*i.to_apply(), rounds, init, results);
}

}  // namespace lazuli::npu
