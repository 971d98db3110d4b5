#include "backend/cpu/runtime/cumulative_thunk.h"

#include <algorithm>

#include "ir/evaluator/cumulative.h"
#include "ir/hlo/monoid.h"
#include "ir/support/parallel_for.h"

namespace lazuli::cpu {
namespace {

struct CumulativeSpec {
  hlo::CumulativeLines lines;
  hlo::Opcode monoid{};
  DType dtype{};
  BufferId x = 0, init = 0, result = 0;
  LAZULI_ATTRS(lines, monoid, dtype, x, init, result);
};

class CumulativeThunk final : public SpecThunk<CumulativeSpec> {
 public:
  CumulativeThunk(ThunkInfo info, std::vector<BufferUse> uses, CumulativeSpec spec)
      : SpecThunk(std::move(info), std::move(uses), spec),
        loop_(hlo::FindCumulativeLoop(spec.monoid, spec.dtype)) {}

  absl::Status Execute(const RunBuffers& run) const override {
    // Below this many elements a second thread costs more than it saves; and a piece of
    // neighbouring lines should fill vectors.
    constexpr int64_t kElements = 16384, kNeighbours = 64;
    const int64_t count = spec_.lines.outer * spec_.lines.inner;
    const int64_t grain = std::max(kElements / std::max<int64_t>(spec_.lines.size, 1),
                                   std::min(kNeighbours, spec_.lines.inner));
    ParallelFor(count, std::max<int64_t>(grain, 1), [&](int64_t begin, int64_t end) {
      loop_(spec_.lines, run.at(spec_.x), run.at(spec_.init), run.at(spec_.result), begin, end);
    });
    return absl::OkStatus();
  }

 private:
  hlo::CumulativeLoop loop_;
};

}  // namespace

ThunkOrReason MakeCumulativeThunk(const hlo::Instruction& reduce_window,
                                  const std::vector<BufferId>& operands, BufferId result) {
  const auto along = hlo::MatchCumulative(reduce_window);
  if (!along || operands.size() != 2)
    return "its windows are not those of a cumulative reduction of one array";
  const std::optional<hlo::Opcode> monoid = hlo::MonoidOf(*reduce_window.to_apply());
  const DType dtype = reduce_window.shape().dtype();
  if (!monoid || hlo::FindCumulativeLoop(*monoid, dtype) == nullptr)
    return "its reducer is not one operation on elements of at least a byte";
  const int64_t width = ByteWidth(dtype);
  return std::make_unique<CumulativeThunk>(
      ThunkInfo::Of("cumulative", reduce_window),
      std::vector<BufferUse>{{.buffer = operands[0], .in_place = width},
                             {.buffer = operands[1]},
                             {.buffer = result, .write = true, .in_place = width}},
      CumulativeSpec{.lines = hlo::CumulativeLines(reduce_window.shape(), *along),
                     .monoid = *monoid,
                     .dtype = dtype,
                     .x = operands[0],
                     .init = operands[1],
                     .result = result});
}

ThunkKind CumulativeThunkKind() { return ThunkKind::Of<CumulativeThunk>("cumulative"); }

}  // namespace lazuli::cpu
