// Passes by name, for tools and tests.
#pragma once

#include <memory>
#include <string_view>

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

// A new pass of this name; the error lists the names there are.
absl::StatusOr<std::unique_ptr<Pass>> MakePass(std::string_view name);

}  // namespace lazuli::lowering
