#include "backend/cpu/runtime/cumulative_thunk.h"

#include <algorithm>

#include "ir/evaluator/cumulative.h"
#include "ir/support/parallel_for.h"

namespace lazuli::cpu {
namespace {

class CumulativeThunk final : public Thunk {
 public:
  CumulativeThunk(const hlo::Instruction& i, const hlo::Cumulative& along, hlo::CumulativeLoop loop,
                  const std::vector<BufferId>& operands, BufferId result)
      : Thunk(ThunkInfo::Of("cumulative", i),
              {{.buffer = operands[0], .in_place = ByteWidth(i.shape().dtype())},
               {.buffer = operands[1]},
               {.buffer = result, .write = true, .in_place = ByteWidth(i.shape().dtype())}}),
        lines_(i.shape(), along),
        loop_(loop),
        x_(operands[0]),
        init_(operands[1]),
        result_(result) {}

  absl::Status Execute(const RunBuffers& run) const override {
    // Below this many elements a second thread costs more than it saves; and a piece of
    // neighbouring lines should fill vectors.
    constexpr int64_t kElements = 16384, kNeighbours = 64;
    const int64_t count = lines_.outer * lines_.inner;
    const int64_t grain = std::max(kElements / std::max<int64_t>(lines_.size, 1),
                                   std::min(kNeighbours, lines_.inner));
    ParallelFor(count, std::max<int64_t>(grain, 1), [&](int64_t begin, int64_t end) {
      loop_(lines_, run.at(x_), run.at(init_), run.at(result_), begin, end);
    });
    return absl::OkStatus();
  }

 private:
  hlo::CumulativeLines lines_;
  hlo::CumulativeLoop loop_;
  BufferId x_, init_, result_;
};

}  // namespace

std::unique_ptr<Thunk> MakeCumulativeThunk(const hlo::Instruction& reduce_window,
                                           const std::vector<BufferId>& operands, BufferId result) {
  const auto along = hlo::MatchCumulative(reduce_window);
  if (!along || operands.size() != 2) return nullptr;
  const hlo::CumulativeLoop loop = hlo::FindCumulativeLoop(reduce_window);
  if (loop == nullptr) return nullptr;
  return std::make_unique<CumulativeThunk>(reduce_window, *along, loop, operands, result);
}

}  // namespace lazuli::cpu
