#include "backend/npu/page.h"

#include <cstdio>
#include <utility>

namespace lazuli::npu {

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

std::string Fixed(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, value);
  return text;
}

std::string Scaled(double value, std::string_view unit) {
  constexpr std::pair<double, const char*> kScales[] = {{1, ""}, {1e-3, "m"}, {1e-6, "u"}};
  for (const auto& [scale, prefix] : kScales) {
    if (value < scale && scale != 1e-6) continue;
    char text[64];
    std::snprintf(text, sizeof text, "%.3g %s%s", value / scale, prefix, std::string(unit).c_str());
    return text;
  }
  return "";
}

std::string Large(double value) {
  constexpr std::pair<double, const char*> kScales[] = {
      {1e12, " T"}, {1e9, " G"}, {1e6, " M"}, {1e3, " k"}};
  for (const auto& [scale, unit] : kScales) {
    if (value >= scale) return Fixed(value / scale, 1) + unit;
  }
  return Fixed(value, 0);
}

}  // namespace lazuli::npu
