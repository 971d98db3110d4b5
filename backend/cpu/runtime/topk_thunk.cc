#include "backend/cpu/runtime/topk_thunk.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/runtime/select_first.h"
#include "ir/support/parallel_for.h"

namespace lazuli::cpu {
namespace {

using hlo::Instruction;

struct TopKSpec {
  KeyForm form;
  int64_t groups = 1;  // of rows, which have threads of their own
  int64_t size = 0, k = 0, rows = 0;
  BufferId operand = 0, values = 0, places = 0, scratch = 0;
  LAZULI_ATTRS(form, groups, size, k, rows, operand, values, places, scratch);
};

class TopKThunk final : public SpecThunk<TopKSpec> {
 public:
  using SpecThunk::SpecThunk;

  absl::Status Execute(const RunBuffers& run) const override {
    ParallelFor(spec_.groups, 1, [&](int64_t begin, int64_t end) {
      for (int64_t group = begin; group < end; ++group) {
        Item* const items = run.at<Item>(spec_.scratch) + group * spec_.size;
        const int64_t last = spec_.rows * (group + 1) / spec_.groups;
        for (int64_t row = spec_.rows * group / spec_.groups; row < last; ++row)
          Select(run, row, items);
      }
    });
    return absl::OkStatus();
  }
  std::string Details() const override {
    return Str(spec_.k, " of ", spec_.rows, " x ", spec_.size);
  }

 private:
  void Select(const RunBuffers& run, int64_t row, Item* items) const {
    const std::byte* from = run.at(spec_.operand) + row * spec_.size * spec_.form.width;
    SelectFirst(spec_.form, from, spec_.form.width, spec_.size, spec_.k, items);
    std::byte* values = run.at(spec_.values) + row * spec_.k * spec_.form.width;
    auto* places = run.at<int32_t>(spec_.places) + row * spec_.k;
    for (int64_t i = 0; i < spec_.k; ++i) {
      std::memcpy(values + i * spec_.form.width, from + items[i].place * int64_t{spec_.form.width},
                  static_cast<std::size_t>(spec_.form.width));
      places[i] = static_cast<int32_t>(items[i].place);
    }
  }
};

}  // namespace

ThunkOrReason MakeTopKThunk(const Instruction& topk, const std::vector<BufferId>& operands,
                            const std::vector<BufferId>& results,
                            const std::function<BufferId(int64_t)>& new_buffer) {
  if (topk.operand_count() != 1 || !topk.shape().IsTuple() || results.size() != 2)
    return "it does not have one operand and two results";
  const Shape &x = topk.operand(0)->shape(), &values = topk.shape().tuple()[0];
  if (x.rank() == 0 || x.num_elements() == 0 || values.num_elements() == 0 ||
      values.rank() != x.rank() || values.dim(x.rank() - 1) > x.dim(x.rank() - 1) ||
      x.dim(x.rank() - 1) > INT32_MAX || topk.shape().tuple()[1].dtype() != DType::kS32)
    return "it has no elements, or places of another type than s32";
  const auto* attrs = std::get_if<hlo::TopKAttrs>(&topk.attrs());
  const auto form = FormOf(x.dtype(), attrs == nullptr || attrs->largest, true);
  if (!form) return "the bits of this type do not tell the order of its elements";
  const int64_t size = x.dim(x.rank() - 1), rows = x.num_elements() / size;
  constexpr int64_t kWorth = 4096;  // elements for a thread
  const int64_t groups =
      std::clamp<int64_t>(std::min(rows, x.num_elements() / kWorth), 1, std::max(NumThreads(), 1));
  const BufferId scratch = new_buffer(groups * size * static_cast<int64_t>(sizeof(Item)));
  return std::make_unique<TopKThunk>(ThunkInfo::Of("topk", topk),
                                     std::vector<BufferUse>{{.buffer = operands[0]},
                                                            {.buffer = results[0], .write = true},
                                                            {.buffer = results[1], .write = true},
                                                            {.buffer = scratch, .write = true}},
                                     TopKSpec{.form = *form,
                                              .groups = groups,
                                              .size = size,
                                              .k = values.dim(values.rank() - 1),
                                              .rows = rows,
                                              .operand = operands[0],
                                              .values = results[0],
                                              .places = results[1],
                                              .scratch = scratch});
}

ThunkKind TopKThunkKind() { return ThunkKind::Of<TopKThunk>("topk"); }

}  // namespace lazuli::cpu
