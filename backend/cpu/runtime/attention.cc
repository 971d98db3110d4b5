#include "backend/cpu/runtime/attention.h"

#include <algorithm>
#include <string>
#include <utility>

#include "backend/cpu/runtime/attention_forward.h"
#include "backend/cpu/runtime/attention_gradient.h"
#include "backend/cpu/runtime/attention_part.h"
#include "backend/cpu/runtime/bf16_tiles.h"
#include "backend/cpu/runtime/parts.h"
#include "ir/support/str.h"

namespace lazuli::cpu {
namespace {

template <class T>
absl::Status RunAttention(const AttentionSpec& spec, const RunBuffers& run) {
  const AttentionCut<T> cut(spec);
  if (!spec.is_gradient) {
    return ForEachPart(cut.parts, cut.workers, [&](Part part) {
      AttentionForward<T>(spec, cut, run, part).Run();
      return absl::OkStatus();
    });
  }
  LAZULI_RETURN_IF_ERROR(ForEachPart(cut.parts, cut.workers, [&](Part part) {
    AttentionGradient<T>(spec, cut, run, part).Run();
    return absl::OkStatus();
  }));
  if (cut.row_parts == 1) return absl::OkStatus();
  return ForEachPart(spec.batch, std::min(cut.workers, spec.batch), [&](Part part) {
    AttentionGradient<T>(spec, cut, run, {part.index * cut.row_parts, cut.parts, part.worker})
        .AddParts();
    return absl::OkStatus();
  });
}

class AttentionThunk final : public SpecThunk<AttentionSpec> {
 public:
  using SpecThunk::SpecThunk;

  absl::Status Execute(const RunBuffers& run) const override {
    return spec_.dtype == DType::kF32 ? RunAttention<float>(spec_, run)
                                      : RunAttention<double>(spec_, run);
  }
  std::string Details() const override {
    const bool is_f32 = spec_.dtype == DType::kF32;
    const bool direct =
        is_f32 ? AttentionCut<float>(spec_).direct : AttentionCut<double>(spec_).direct;
    const bool tiles = is_f32 && AttentionCut<float>(spec_).fits_tiles && HasBf16Tiles();
    return Str(spec_.is_gradient ? "gradient, " : "", spec_.batch, " x ", spec_.rows, " x ",
               spec_.keys, ", depth ", spec_.depth, direct ? ", few rows" : "",
               tiles ? ", tiles of bf16" : "");
  }
};

std::vector<BufferUse> UsesOf(const AttentionSpec& spec) {
  std::vector<BufferUse> uses;
  const auto add = [&](BufferId buffer, bool write) {
    if (buffer < 0) return;
    for (const BufferUse& use : uses)
      if (use.buffer == buffer && use.write == write) return;
    uses.push_back({.buffer = buffer, .write = write});
  };
  for (const AttentionArray* array : {&spec.query, &spec.key, &spec.value, &spec.dresult})
    add(array->buffer, false);
  for (const AttentionStep& step : spec.steps) add(step.array.buffer, false);
  for (const AttentionArray* array : {&spec.largest, &spec.divisor})
    add(array->buffer, !spec.is_gradient);
  for (const AttentionArray* array : {&spec.result, &spec.dquery, &spec.dkey, &spec.dvalue})
    add(array->buffer, true);
  add(spec.scratch, true);
  return uses;
}

}  // namespace

int64_t AttentionScratch(const AttentionSpec& spec) {
  return spec.dtype == DType::kF32 ? AttentionCut<float>(spec).elements() * 4
                                   : AttentionCut<double>(spec).elements() * 8;
}

std::unique_ptr<Thunk> MakeAttentionThunk(const hlo::Instruction& instruction, AttentionSpec spec) {
  std::vector<BufferUse> uses = UsesOf(spec);
  return std::make_unique<AttentionThunk>(ThunkInfo::Of("attention", instruction), std::move(uses),
                                          std::move(spec));
}

ThunkKind AttentionThunkKind() { return ThunkKind::Of<AttentionThunk>("attention"); }

}  // namespace lazuli::cpu
