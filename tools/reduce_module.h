// Cuts a module on which two devices disagree down to a small one on which they still do.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"

#include "ir/hlo/module.h"

namespace lazuli::tools {

struct ReduceOptions {
  std::string device = "cpu", compare = "interpreter";  // which is wrong, which is right
  int64_t seed = 0;                                     // draws the arguments
  double atol = 1e-5, rtol = 1e-4;
};

// Text of a small part of the module that `device` gives other values for than `compare`, or fails
// on, with what it does wrong as a comment. FailedPrecondition, which begins with `name`, if they
// agree. Platforms are registered.
absl::StatusOr<std::string> ReducedText(const hlo::Module& module, const ReduceOptions& options,
                                        const std::string& name);

}  // namespace lazuli::tools
