// LAZULI_RECOMPILE_WARNING: says on standard error that a loop compiles in every iteration, and why.
#pragma once

#include "lazy/execution/cached_program.h"

namespace lazuli::lazy {

// Counts a program that is about to be compiled. Says why a loop compiles in every iteration, once for its
// line: after so many programs in a row, each compiled because of a difference that a loop makes.
void WarnOfRecompiles(const CachedProgram& program);

}  // namespace lazuli::lazy
