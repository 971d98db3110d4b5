// For builds without LLVM: CHECK lines are not looked at.
#include "tests/support/pass_test.h"

namespace lazuli {

bool HasFileCheck() { return false; }

std::string FileCheckError(std::string_view, std::string_view) { return ""; }

}  // namespace lazuli
