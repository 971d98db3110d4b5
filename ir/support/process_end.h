// The end of the process, while other threads go on.
//
// exit() destroys the objects of all libraries, LLVM's too, while detached threads still run. The end
// therefore waits for what compiles, and nothing begins to compile after it.
#pragma once

#include "ir/support/namespaces.h"

namespace lazuli::ir {

// Called at exit, before anything is destroyed. Waits for the work of other threads (EndWaits).
void BeginProcessEnd();
// Whether BeginProcessEnd() was called.
bool ProcessEnds();

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
