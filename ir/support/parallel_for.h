// The one way to run a loop on several threads.
//
// Chunks are contiguous and decided by n, grain and the thread count alone. One region is open at a
// time; calls from inside it, from a second thread, or with one chunk run inline. A pool of our
// own, not OpenMP: the end of an OpenMP region waits for every thread of the team, which on a busy
// machine costs a scheduling quantum per region.
#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"

#include "ir/support/namespaces.h"

namespace lazuli::ir {

// Calls body(begin, end) over disjoint ranges that cover [0, n), each of at least `grain`
// iterations (but the last).
void ParallelFor(int64_t n, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body);

// Calls work(data) on each of its threads, the caller's among them, and returns when all have
// returned.
using Team = void (*)(void (*work)(void* data), void* data);

// While it lives, loops of this thread run on threads of the team, not of the pool. A program that
// calls ours may have threads that go on waiting for its next loop without giving up the processor,
// as OpenMP's do for milliseconds; threads of the pool would share processors with them.
class ScopedTeam {
 public:
  explicit ScopedTeam(Team team);  // null: the pool
  ~ScopedTeam();
  ScopedTeam(const ScopedTeam&) = delete;
  ScopedTeam& operator=(const ScopedTeam&) = delete;

 private:
  Team before_;
};

// Threads that ParallelFor uses: LAZULI_NUM_THREADS, else the cores this process may run on.
int NumThreads();

}  // namespace lazuli::ir
