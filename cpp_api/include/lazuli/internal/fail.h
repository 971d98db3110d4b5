// How the library's own layers report a mistake: one sentence, and the line of the user's call.
#pragma once

#include <string>

#include "lazuli/error.h"
#include "lazuli/execution.h"

namespace lazuli::internal {

// Throws "message (train.cc:41)": `loc`, or what an outer SiteScope says.
[[noreturn]] inline void Fail(ErrorCode code, const std::string& message, SourceLocation loc) {
  throw Error(code, message + " (" + SiteScope::place(loc) + ")");
}

}  // namespace lazuli::internal
