// Programs as bytes: all of a compiled program, so that another process of the same build runs it
// without a compile.
//
// The bytes hold machine code. They are read only where they begin with this build's id and the
// `engine` (processor, library) that they were made for, and their checksum is right; whoever takes
// bytes from others runs their code.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"

#include "backend/runtime/program.h"
#include "backend/runtime/thunk_data.h"

namespace lazuli::backend {

// An error where the module's bytes would not say all that the module does.
absl::StatusOr<std::string> WriteProgram(const ThunkProgram& program, std::string_view engine);

// The errors say what is wrong: "the program was written by another build of lazuli".
absl::StatusOr<ThunkProgram> ReadProgram(std::string_view bytes, const ProgramKinds& kinds);

}  // namespace lazuli::backend
