#include "backend/runtime/program.h"

#include <algorithm>
#include <map>
#include <utility>

#include "backend/runtime/guard.h"
#include "ir/support/run_step.h"
#include "ir/support/status.h"
#include "ir/support/str.h"

namespace lazuli::backend {
namespace {

std::string_view KindText(BufferSlot::Kind kind) {
  switch (kind) {
    case BufferSlot::Kind::kParameter:
      return "parameter";
    case BufferSlot::Kind::kConstant:
      return "constant";
    case BufferSlot::Kind::kTemporary:
      return "temporary";
    case BufferSlot::Kind::kOutput:
      return "output";
    case BufferSlot::Kind::kKept:
      return "kept";
  }
  return "";
}

std::string ThunkText(const Thunk& thunk) {
  std::string text = Str(thunk.info().kind, " ", thunk.info().name, " (");
  const char* separator = "";
  for (const BufferUse& use : thunk.uses()) {
    text += Str(separator, use.write ? ">" : "", "b", use.buffer);
    separator = ", ";
  }
  return text + Str(") ", thunk.Details(), thunk.info().source.empty() ? "" : " at ",
                    thunk.info().source, "\n");
}

}  // namespace

void ThunkSequence::PlaceFrame(std::byte* frame, std::byte** table) const {
  Forbid(frame, static_cast<std::size_t>(frame_bytes));
  for (const FrameBuffer& temporary : temporaries) {
    table[temporary.buffer] = frame + temporary.offset;
    Allow(table[temporary.buffer], static_cast<std::size_t>(temporary.bytes));
  }
}

absl::Status RunThunks(const ThunkSequence& sequence, const RunBuffers& run) {
  std::atomic<int32_t>* const step = sequence.index == 0 ? ir::StepOfRun().Get() : nullptr;
  for (std::size_t t = 0; t < sequence.thunks.size(); ++t) {
    if (step != nullptr) step->store(static_cast<int32_t>(t), std::memory_order_relaxed);
    LAZULI_RETURN_IF_ERROR(RunThunk(*sequence.thunks[t], run));
  }
  return absl::OkStatus();
}

namespace {

// Of two arrays at one place of which a step makes one of the other, the step has the one that it
// makes.
void EndWhereWrittenOver(absl::Span<const int64_t> offsets, std::vector<ScratchArray>& arrays) {
  std::map<int64_t, std::size_t> newest;  // by offset
  for (std::size_t i = 0; i < arrays.size(); ++i) {
    const auto [there, is_first] = newest.try_emplace(offsets[i], i);
    if (is_first) continue;
    ScratchArray& before = arrays[std::exchange(there->second, i)];
    before.last = std::min(before.last, arrays[i].first - 1);
  }
  std::erase_if(arrays, [](const ScratchArray& array) { return array.last < array.first; });
}

}  // namespace

ScratchPlan ScratchPlanOf(const ThunkProgram& program) {
  ScratchPlan plan;
  std::map<BufferId, int64_t> places;
  for (const FrameBuffer& buffer : program.entry().temporaries)
    places[buffer.buffer] = buffer.offset;
  std::vector<int64_t> offsets;             // of arrays
  std::map<BufferId, std::size_t> numbers;  // of arrays
  const auto& thunks = program.entry().thunks;
  for (std::size_t t = 0; t < thunks.size(); ++t) {
    const ThunkInfo& info = thunks[t]->info();
    plan.steps.push_back(info.name);
    for (const BufferUse& use : thunks[t]->uses()) {
      const BufferSlot& slot = program.slot(use.buffer);
      if (slot.kind != BufferSlot::Kind::kTemporary || !places.contains(use.buffer)) continue;
      const auto [number, is_new] = numbers.try_emplace(use.buffer, plan.arrays.size());
      const auto step = static_cast<int64_t>(t);
      if (is_new) {
        plan.arrays.push_back({.bytes = slot.bytes,
                               .first = step,
                               .name = info.name,
                               .op = info.op,
                               .source = info.line()});
        offsets.push_back(places[use.buffer]);
      }
      plan.arrays[number->second].last = step;
    }
  }
  EndWhereWrittenOver(offsets, plan.arrays);
  return plan;
}

std::string ThunksText(const ThunkProgram& program) {
  std::string text = Str("thunks: ", program.entry().thunks.size(),
                         ", arena: ", program.entry().frame_bytes, " bytes\n");
  for (const KeptPacking& packing : program.packings)
    text += Str("  kept ", ThunkText(*packing.thunk));
  for (const auto& sequence : program.sequences) {
    if (sequence->index != 0)
      text += Str("of ", sequence->name, ": ", sequence->thunks.size(),
                  ", frame: ", sequence->frame_bytes, " bytes\n");
    for (std::size_t t = 0; t < sequence->thunks.size(); ++t)
      text += Str("  ", t, " ", ThunkText(*sequence->thunks[t]));
  }
  return text;
}

std::string PlanText(const ThunkProgram& program) {
  std::string text = ThunksText(program);
  text += Str("buffers: ", program.slots.size(), "\n");
  std::vector<int64_t> offsets(program.slots.size(), 0);
  for (const auto& sequence : program.sequences) {
    for (const FrameBuffer& temporary : sequence->temporaries)
      offsets[static_cast<std::size_t>(temporary.buffer)] = temporary.offset;
  }
  std::vector<BufferId> outputs_of(program.slots.size(), -1);
  for (const OutputBuffer& temporary : program.entry().in_outputs)
    outputs_of[static_cast<std::size_t>(temporary.buffer)] = temporary.output;
  for (std::size_t b = 0; b < program.slots.size(); ++b) {
    const BufferSlot& slot = program.slots[b];
    text += Str("  b", b, " ", KindText(slot.kind), " ", slot.bytes, " bytes");
    if (outputs_of[b] >= 0) {
      text += Str(" in b", outputs_of[b]);
    } else if (slot.kind == BufferSlot::Kind::kTemporary) {
      text += Str(" at ", offsets[b]);
    } else if (slot.kind != BufferSlot::Kind::kConstant) {
      text += Str(" ", slot.index);
    }
    if (slot.sequence != 0)
      text += Str(" of ", program.sequences[static_cast<std::size_t>(slot.sequence)]->name);
    text += "\n";
  }
  const std::vector<ProgramOutput>& outputs = program.entry().outputs;
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    text += Str("output ", o, " ", outputs[o].shape, " in b", outputs[o].buffer);
    if (outputs[o].donor >= 0) text += Str(", may take parameter ", outputs[o].donor);
    text += "\n";
  }
  return text;
}

}  // namespace lazuli::backend
