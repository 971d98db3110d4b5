// LAZULI_PROFILE_SOCKET: whoever may open the socket takes a profile of the running program.
//
// The file belongs to the user alone. A request is one line, "profile MILLISECONDS\n"; the answer is
// the trace of that long, as LAZULI_PROFILE=FILE.json writes it, or "error: ...\n". lazuli-profile
// and lz.profiler.capture ask. The child of a fork does not listen.
#pragma once

namespace lazuli::lazy {

// Listens if the flag is set; idempotent.
void InitializeProfileSocket();

}  // namespace lazuli::lazy
