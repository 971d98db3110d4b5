// BackgroundCompiler: one thread of low priority that compiles kernels while the program runs on.
//
// The thread starts with the first job. It takes the newest job first, because a program that just ran
// is more likely to run again than one of long ago. The end of the process waits for the job that is
// under way and for no other (ir/support/process_end.h); so does a fork, and the child starts a thread
// of its own when it has a job (ir/support/fork.h).
#pragma once

#include <functional>

namespace lazuli::cpu {

using BackgroundJob = std::function<void()>;

// False if the system refuses a thread, or if the process ends: then nobody does the job.
bool DoInBackground(BackgroundJob job);
// Returns when no job is left: for tests and for those who measure what comes after.
void WaitForBackground();

}  // namespace lazuli::cpu
