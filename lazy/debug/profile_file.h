// LAZULI_PROFILE: a profile of the whole process, written when it ends.
#pragma once

namespace lazuli::lazy {

// Begins to collect if the flag is set. A file that cannot be written is said now, and the program
// goes on without. What registers exit handlers later, as the execution thread does, has stopped
// when the profile is written.
void InitializeProfileFile();

}  // namespace lazuli::lazy
