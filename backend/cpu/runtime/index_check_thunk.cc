#include "backend/cpu/runtime/index_check_thunk.h"

#include "ir/support/status.h"

namespace lazuli::cpu {
namespace {

struct IndexCheckSpec {
  DType dtype{};
  int64_t count = 0;
  BufferId indices = 0, limit = 0;
  LAZULI_ATTRS(dtype, count, indices, limit);
};

class IndexCheckThunk final : public SpecThunk<IndexCheckSpec> {
 public:
  using SpecThunk::SpecThunk;

  absl::Status Execute(const RunBuffers& run) const override {
    return spec_.dtype == DType::kS32 ? Check<int32_t>(run) : Check<int64_t>(run);
  }

 private:
  template <class Index>
  absl::Status Check(const RunBuffers& run) const {
    const Index* indices = run.at<const Index>(spec_.indices);
    const int64_t limit = *run.at<const int64_t>(spec_.limit);
    for (int64_t i = 0; i < spec_.count; ++i) {
      if (indices[i] < 0 || indices[i] >= limit) {
        return OutOfRange("index ", indices[i], " is out of range [0, ", limit, ")");
      }
    }
    return absl::OkStatus();
  }
};

}  // namespace

ThunkOrReason MakeIndexCheckThunk(const hlo::Instruction& instruction, BufferId indices,
                                  BufferId limit) {
  if (instruction.operand_count() != 2 || instruction.operand(1)->shape() != Shape(DType::kS64))
    return "its limit is not a number of s64";
  const DType dtype = instruction.shape().dtype();
  if (dtype != DType::kS32 && dtype != DType::kS64) return "its indices are not s32 or s64";
  return std::make_unique<IndexCheckThunk>(
      ThunkInfo::Of("check", instruction),
      std::vector<BufferUse>{{.buffer = indices}, {.buffer = limit}},
      IndexCheckSpec{.dtype = dtype,
                     .count = instruction.shape().num_elements(),
                     .indices = indices,
                     .limit = limit});
}

ThunkKind IndexCheckThunkKind() { return ThunkKind::Of<IndexCheckThunk>("check"); }

}  // namespace lazuli::cpu
