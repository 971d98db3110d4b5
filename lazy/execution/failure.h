// Failures of compiles and runs that are no fault of the program: shown to observers, who leave
// something behind that repeats them.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "lazy/execution/cached_program.h"

namespace lazuli::lazy {

struct FailureEvent {
  const CachedProgram& program;  // without an executable if its compile failed
  backend::Device device;        // that compiled or ran it
  std::string_view doing;        // "compile" or "run"
  const absl::Status& status;
};
// Returns what the message should go on with, or "".
using FailureObserver = std::function<std::string(const FailureEvent&)>;
// One more, from now on.
void AddFailureObserver(FailureObserver observer);

// The status as an error of the site, with what observers say behind it. An argument that is wrong,
// memory that is not there and a wait that was ended are shown to nobody.
absl::Status ReportFailure(const absl::Status& status, const CachedProgram& program,
                           backend::Device device, std::string_view doing, SiteId site);

}  // namespace lazuli::lazy
