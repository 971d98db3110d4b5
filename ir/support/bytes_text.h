// Numbers of bytes for people.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include "ir/support/namespaces.h"

namespace lazuli::ir {

// "12.3 MiB"
inline std::string BytesText(int64_t bytes) {
  constexpr std::array kUnits = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", value, kUnits[unit]);
  return text.data();
}

}  // namespace lazuli::ir
