#include "backend/cpu/runtime/topk_thunk.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/runtime/select_first.h"
#include "ir/support/parallel_for.h"

namespace lazuli::cpu {
namespace {

using hlo::Instruction;

class TopKThunk final : public Thunk {
 public:
  TopKThunk(const Instruction& i, const KeyForm& form, const std::vector<BufferId>& operands,
            const std::vector<BufferId>& results, int64_t groups, BufferId scratch)
      : Thunk(ThunkInfo::Of("topk", i), {{.buffer = operands[0]},
                                         {.buffer = results[0], .write = true},
                                         {.buffer = results[1], .write = true},
                                         {.buffer = scratch, .write = true}}),
        form_(form),
        operand_(operands[0]),
        values_(results[0]),
        places_(results[1]),
        scratch_(scratch),
        groups_(groups) {
    const Shape &x = i.operand(0)->shape(), &values = i.shape().tuple()[0];
    size_ = x.dim(x.rank() - 1);
    k_ = values.dim(values.rank() - 1);
    rows_ = x.num_elements() / size_;
  }

  absl::Status Execute(const RunBuffers& run) const override {
    ParallelFor(groups_, 1, [&](int64_t begin, int64_t end) {
      for (int64_t group = begin; group < end; ++group) {
        Item* const items = run.at<Item>(scratch_) + group * size_;
        const int64_t last = rows_ * (group + 1) / groups_;
        for (int64_t row = rows_ * group / groups_; row < last; ++row) Select(run, row, items);
      }
    });
    return absl::OkStatus();
  }
  std::string Details() const override { return Str(k_, " of ", rows_, " x ", size_); }

 private:
  void Select(const RunBuffers& run, int64_t row, Item* items) const {
    const std::byte* from = run.at(operand_) + row * size_ * form_.width;
    SelectFirst(form_, from, form_.width, size_, k_, items);
    std::byte* values = run.at(values_) + row * k_ * form_.width;
    auto* places = run.at<int32_t>(places_) + row * k_;
    for (int64_t i = 0; i < k_; ++i) {
      std::memcpy(values + i * form_.width, from + items[i].place * int64_t{form_.width},
                  static_cast<std::size_t>(form_.width));
      places[i] = static_cast<int32_t>(items[i].place);
    }
  }

  KeyForm form_;
  BufferId operand_, values_, places_, scratch_;
  int64_t groups_, size_ = 0, k_ = 0, rows_ = 0;
};

}  // namespace

std::unique_ptr<Thunk> MakeTopKThunk(const Instruction& topk, const std::vector<BufferId>& operands,
                                     const std::vector<BufferId>& results,
                                     const std::function<BufferId(int64_t)>& new_buffer) {
  if (topk.operand_count() != 1 || !topk.shape().IsTuple() || results.size() != 2) return nullptr;
  const Shape &x = topk.operand(0)->shape(), &values = topk.shape().tuple()[0];
  if (x.rank() == 0 || x.num_elements() == 0 || values.num_elements() == 0 ||
      values.rank() != x.rank() || values.dim(x.rank() - 1) > x.dim(x.rank() - 1) ||
      x.dim(x.rank() - 1) > INT32_MAX || topk.shape().tuple()[1].dtype() != DType::kS32)
    return nullptr;
  const auto* attrs = std::get_if<hlo::TopKAttrs>(&topk.attrs());
  const auto form = FormOf(x.dtype(), attrs == nullptr || attrs->largest, true);
  if (!form) return nullptr;
  const int64_t size = x.dim(x.rank() - 1), rows = x.num_elements() / size;
  constexpr int64_t kWorth = 4096;  // elements for a thread
  const int64_t groups =
      std::clamp<int64_t>(std::min(rows, x.num_elements() / kWorth), 1, std::max(NumThreads(), 1));
  const BufferId scratch = new_buffer(groups * size * static_cast<int64_t>(sizeof(Item)));
  return std::make_unique<TopKThunk>(topk, *form, operands, results, groups, scratch);
}

}  // namespace lazuli::cpu
