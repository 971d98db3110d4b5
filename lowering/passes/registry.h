// Passes by name, for tools, tests and users who bring their own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "lowering/passes/pass.h"

namespace lazuli::lowering {

struct PassRow {
  std::string_view name;
  std::string_view doc;
  std::unique_ptr<Pass> (*make)();
};
absl::Span<const PassRow> RegisteredPasses();  // sorted by name

// Passes from outside of this folder: a backend's, a user's.
struct AddedPass {
  std::string name;
  std::string doc;
  std::function<std::unique_ptr<Pass>()> make;
  bool every_program = false;  // every later compilation runs it, before all other passes
  bool removable = false;      // by RemovePass(): a user's
};
// The name must be new: FailedPrecondition otherwise. Thread-safe.
absl::Status AddPass(AddedPass pass);
// Forgets a pass that is removable: NotFound if there is none of this name. Thread-safe; compilations
// that are under way may still run it.
absl::Status RemovePass(std::string_view name);
std::vector<AddedPass> AddedPasses();  // in the order in which they came
// Names of those that every compilation runs, separated by commas. Takes no lock without any.
std::string ProgramPasses();

// A new pass of this name; the error lists the names there are.
absl::StatusOr<std::unique_ptr<Pass>> MakePass(std::string_view name);

}  // namespace lazuli::lowering
