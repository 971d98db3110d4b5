#include "backend/cpu/runtime/index_check_thunk.h"

#include "ir/support/status.h"

namespace lazuli::cpu {
namespace {

template <class Index>
class IndexCheckThunk final : public Thunk {
 public:
  IndexCheckThunk(const hlo::Instruction& instruction, BufferId indices, BufferId limit)
      : Thunk(ThunkInfo::Of("check", instruction), {{.buffer = indices}, {.buffer = limit}}),
        count_(instruction.shape().num_elements()),
        indices_(indices),
        limit_(limit) {}

  absl::Status Execute(const RunBuffers& run) const override {
    const Index* indices = run.at<const Index>(indices_);
    const int64_t limit = *run.at<const int64_t>(limit_);
    for (int64_t i = 0; i < count_; ++i) {
      if (indices[i] < 0 || indices[i] >= limit) {
        return OutOfRange("index ", indices[i], " is out of range [0, ", limit, ")");
      }
    }
    return absl::OkStatus();
  }

 private:
  int64_t count_;
  BufferId indices_, limit_;
};

}  // namespace

std::unique_ptr<Thunk> MakeIndexCheckThunk(const hlo::Instruction& instruction, BufferId indices,
                                           BufferId limit) {
  if (instruction.operand_count() != 2 || instruction.operand(1)->shape() != Shape(DType::kS64))
    return nullptr;
  switch (instruction.shape().dtype()) {
    case DType::kS32:
      return std::make_unique<IndexCheckThunk<int32_t>>(instruction, indices, limit);
    case DType::kS64:
      return std::make_unique<IndexCheckThunk<int64_t>>(instruction, indices, limit);
    default:
      return nullptr;
  }
}

}  // namespace lazuli::cpu
