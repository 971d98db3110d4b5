// Adds the tokens that order units, and nothing else does: the only place in which semaphores are thought of.
//
// Two operations of different ports must be ordered if they touch the same bytes and one writes. For every operation the last
// such operations of each other port are found, by address; those that it knows already, through what its port or the others
// waited for before, are left out (a vector clock for each port, as the simulator's strict mode keeps them). What is left are
// edges: one token each, on the semaphore of that pair of ports. Ports work in order, so the n-th wait of a pair takes the token
// of the n-th signal, and every semaphore is back at 0 behind the last edge: tokens balance by construction, and an operation
// waits only for operations before it, so nothing can wait for itself.
//
// An instruction has one wait and one signal. Further ones become sem.wait and sem.sig in its queue; the matrix unit's three ports
// share a queue, so theirs go through the host's queue, which has nothing else to do.
#pragma once

#include "absl/status/status.h"

#include "backend/npu/compiler/tile_ir.h"

namespace lazuli::npu {

// Places must have addresses.
absl::Status Synchronise(TileProgram& program);

}  // namespace lazuli::npu
