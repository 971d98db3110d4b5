// Lists of names, as flags and tools take them.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace lazuli::ir {

// "a, b,,c" is {"a", "b", "c"}: any of the separators ends a name. The parts point into `text`.
std::vector<std::string_view> SplitNames(std::string_view text, std::string_view separators = ",");

// Of the known names the first that takes the fewest inserted, dropped or changed letters. An empty
// name if there are none.
struct Nearest {
  std::string_view name;
  int64_t distance = 0;
};
Nearest NearestName(std::string_view name, absl::Span<const std::string_view> known);

// OK if all names are among those there are. The error says which is not, and which it is a part of
// or is nearest to it: "LAZULI_DISABLE_RULES: there is no rule add-hero; the nearest is add-zero".
absl::Status CheckNames(std::string_view where, std::string_view what,
                        absl::Span<const std::string_view> names,
                        absl::Span<const std::string_view> known);

}  // namespace lazuli::ir
