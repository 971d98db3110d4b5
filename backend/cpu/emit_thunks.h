// EmitThunks: one thunk for each instruction of a scheduled computation that does something, and a
// buffer for each array.
//
// Choices in order: nothing (parameters, constants, tuples, reshapes: a second name for the same
// memory), a compiled kernel (fusions), a library call (dot, convolution), strided copies, a native
// thunk, and for the rest the evaluator, with row-major copies of what has another layout.
#pragma once

#include "absl/status/status.h"

#include "backend/runtime/op_filter.h"
#include "backend/runtime/program.h"

namespace lazuli::cpu {

// Fills in all of a program that has a module and options. What the filter denies is the evaluator's.
absl::Status EmitThunks(ThunkProgram& program, const OpFilter& filter);

}  // namespace lazuli::cpu
