// The end of the process, while other threads go on.
//
// exit() destroys the objects of all libraries, LLVM's too, while detached threads still run. The end
// therefore waits for what compiles, and nothing begins to compile after it.
//
// It waits twice. What exit() destroys first are the thread-local objects of the thread that calls it, in
// general the main thread; one of these waits, and nothing begins in the background any more. Then come
// static objects and registered functions, those that were made last at first: among them are objects
// that LLVM makes while it first compiles, and behind them BeginProcessEnd(), which ends everything.
#pragma once

#include "ir/support/namespaces.h"

namespace lazuli::ir {

// Called at exit. Waits for the work of other threads (EndWaits).
void BeginProcessEnd();
// Whether BeginProcessEnd() was called.
bool ProcessEnds();
// Whether work may begin that nobody waits for; not once the thread-local objects of the main thread are
// destroyed. Asked under an EndWaits, the answer holds while that lives.
bool MayBeginInBackground();

// Work that the end of the process waits for, while this lives.
class EndWaits {
 public:
  EndWaits();
  ~EndWaits();
  EndWaits(const EndWaits&) = delete;
  EndWaits& operator=(const EndWaits&) = delete;
  // False: the process ends, and the work must not begin.
  bool may_begin() const { return may_begin_; }

 private:
  bool may_begin_;
};

}  // namespace lazuli::ir
