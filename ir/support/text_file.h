// Writing text so that no reader ever sees half of it, and saying that it could not be written.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "ir/support/namespaces.h"

namespace lazuli::ir {

// Replaces or makes the file, through a temporary one beside it; folders above it are made. Links are
// followed, and what is no file, a terminal or a pipe, is written to. An error names the file and why.
absl::Status WriteTextFile(const std::string& path, std::string_view text);

// Makes the file, which must not be there: of several who try at a time one succeeds, and nobody sees
// half of it. kAlreadyExists if it is there.
absl::Status WriteNewTextFile(const std::string& path, std::string_view text);

// Appends to the file, or makes it: all of the text or none of it, also where another process that
// does the same appends at that time, and where the disk is full.
absl::Status AppendToTextFile(const std::string& path, std::string_view text);

// Says on standard error what went wrong with something that is only there to be looked at: the
// program goes on. Each sentence once. Nothing if the status is OK.
void SayOnce(const absl::Status& status);

// What LAZULI_DEBUG shows: to standard error, or to the end of LAZULI_DEBUG_FILE.
void ShowDebug(std::string_view text);

}  // namespace lazuli::ir
