// AssignBuffers: decides which temporaries of a sequence share memory, which lie in an output's,
// and which outputs may take a parameter's.
#pragma once

#include "absl/types/span.h"

#include "backend/runtime/program.h"

namespace lazuli::backend {

// That an output may be written over a parameter: numbers of leaves.
struct MayUpdate {
  int64_t output = 0;
  int64_t parameter = 0;
};

// Fills in donors, temporaries, in_outputs and frame_bytes; of the entry the program's statistics,
// too.
// Everything else in the sequence is complete, and so are the frames of those that its thunks run.
void AssignBuffers(ThunkProgram& program, ThunkSequence& sequence,
                   absl::Span<const MayUpdate> updates);

}  // namespace lazuli::backend
