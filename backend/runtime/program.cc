#include "backend/runtime/program.h"

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

std::string ThunksText(const ThunkProgram& program) {
  std::string text =
      Str("thunks: ", program.thunks.size(), ", arena: ", program.arena_bytes, " bytes\n");
  for (const KeptPacking& packing : program.packings)
    text += Str("  kept ", ThunkText(*packing.thunk));
  for (std::size_t t = 0; t < program.thunks.size(); ++t)
    text += Str("  ", t, " ", ThunkText(*program.thunks[t]));
  return text;
}

std::string PlanText(const ThunkProgram& program) {
  std::string text = ThunksText(program);
  text += Str("buffers: ", program.slots.size(), "\n");
  for (std::size_t b = 0; b < program.slots.size(); ++b) {
    const BufferSlot& slot = program.slots[b];
    text += Str("  b", b, " ", KindText(slot.kind), " ", slot.bytes, " bytes");
    if (slot.kind == BufferSlot::Kind::kTemporary) {
      text += Str(" at ", slot.offset);
    } else if (slot.kind != BufferSlot::Kind::kConstant) {
      text += Str(" ", slot.index);
    }
    text += "\n";
  }
  for (std::size_t o = 0; o < program.outputs.size(); ++o) {
    const ProgramOutput& output = program.outputs[o];
    text += Str("output ", o, " ", output.shape, " in b", output.buffer);
    if (output.donor >= 0) text += Str(", may take parameter ", output.donor);
    text += "\n";
  }
  return text;
}

}  // namespace lazuli::backend
