// Comma-separated lists of names, as flags and tools take them.
#pragma once

#include <string_view>
#include <vector>

#include "ir/support/namespaces.h"

namespace lazuli::lowering {

// "a, b,,c" is {"a", "b", "c"}. The parts point into `text`.
inline std::vector<std::string_view> SplitNames(std::string_view text) {
  std::vector<std::string_view> names;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    std::string_view name = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    while (!name.empty() && name.front() == ' ') name.remove_prefix(1);
    while (!name.empty() && name.back() == ' ') name.remove_suffix(1);
    if (!name.empty()) names.push_back(name);
  }
  return names;
}

}  // namespace lazuli::lowering
