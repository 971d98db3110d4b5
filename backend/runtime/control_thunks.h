// Loops, branches and calls: thunks that run sequences of thunks over the table of their own run.
//
// A loop's state stays where it is: what an iteration leaves alone is not touched, what it can
// update in place it does, and the rest alternates between two buffers.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "backend/runtime/thunk_data.h"

namespace lazuli::backend {

// Makes a buffer of this size in the caller's sequence.
using NewBuffer = std::function<BufferId(int64_t bytes)>;

// A sequence that is complete, and the buffer of the caller's that is its frame.
struct CalledSequence {
  const ThunkSequence* sequence = nullptr;
  BufferId frame = -1;  // -1: it needs none
  LAZULI_ATTRS(sequence, frame);
};
CalledSequence Call(const ThunkSequence& sequence, const NewBuffer& new_buffer);

// `operands` and `results` are the leaves of all operands and of the instruction, row major. The
// body was given to AssignBuffers with each result as an update of the parameter of its number; one
// that is a parameter of its own number needed no copy. An element that the body does not change needs
// no result: the operand takes its place in `results`.
std::unique_ptr<Thunk> MakeWhileThunk(const hlo::Instruction& loop, const ThunkProgram& program,
                                      CalledSequence condition, CalledSequence body,
                                      std::vector<BufferId> operands,
                                      std::vector<BufferId>& results, const NewBuffer& new_buffer);
std::unique_ptr<Thunk> MakeConditionalThunk(const hlo::Instruction& conditional,
                                            std::vector<CalledSequence> branches,
                                            std::vector<BufferId> operands,
                                            std::vector<BufferId> results);
std::unique_ptr<Thunk> MakeCallThunk(const hlo::Instruction& call, CalledSequence called,
                                     std::vector<BufferId> operands, std::vector<BufferId> results);
ThunkKind WhileThunkKind();
ThunkKind ConditionalThunkKind();
ThunkKind CallThunkKind();

}  // namespace lazuli::backend
