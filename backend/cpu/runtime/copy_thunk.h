// CopyThunk: fills its result from strided pieces of other buffers: reorders, transposes, slices,
// pads, concatenations.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "backend/cpu/runtime/strided_copy.h"
#include "backend/runtime/thunk_data.h"

namespace lazuli::cpu {

struct CopyPiece {
  BufferId source = 0;
  int64_t source_offset = 0;  // bytes
  int64_t target_offset = 0;  // bytes
  StridedCopy copy;
  LAZULI_ATTRS(source, source_offset, target_offset, copy);
};

// Writes `target` piece after piece. If `fill` names a buffer, its first element is written
// everywhere before.
std::unique_ptr<Thunk> MakeCopyThunk(const hlo::Instruction& instruction, BufferId target,
                                     std::vector<CopyPiece> pieces,
                                     std::optional<BufferId> fill = std::nullopt);

ThunkKind CopyThunkKind();

// The whole of an array from layout to layout.
CopyPiece WholeArray(BufferId source, const Shape& from, const Shape& to);

// The pieces of copy, transpose, slice, reverse, pad (without its fill) and concatenate, for
// operands and a result of any layout; nullopt for other opcodes, or a pad that drops elements.
std::optional<std::vector<CopyPiece>> PiecesOf(const hlo::Instruction& instruction,
                                               absl::Span<const BufferId> operands);

}  // namespace lazuli::cpu
