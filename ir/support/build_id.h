// What identifies the build of this library: for keys of what one build leaves on disk for the next
// process.
#pragma once

#include <string>

#include "ir/support/namespaces.h"

namespace lazuli::ir {

// The linker's build id of the shared library or program that holds this code, in hexadecimal;
// empty if it was linked without one. Any change of the code changes it.
const std::string& BuildId();

}  // namespace lazuli::ir
