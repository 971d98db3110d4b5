// Str(a, b, ...) concatenates printable values; Join(range, sep) joins them.
//
// Debian's Abseil is built with its own string_view, so absl::StrCat does not take
// std::string_view; this does. For messages and dumps, never for hot paths.
#pragma once

#include <charconv>
#include <concepts>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>

#include "ir/support/namespaces.h"

namespace lazuli::ir {

inline void AppendTo(std::string& out, std::string_view v) { out += v; }
inline void AppendTo(std::string& out, const char* v) { out += v; }
inline void AppendTo(std::string& out, char v) { out += v; }
inline void AppendTo(std::string& out, bool v) { out += v ? "true" : "false"; }

template <std::integral T>
void AppendTo(std::string& out, T v) {
  char buffer[24];
  auto result = std::to_chars(buffer, buffer + sizeof buffer, v);
  out.append(buffer, result.ptr);
}

template <std::floating_point T>
void AppendTo(std::string& out, T v) {  // shortest form that reads back as the same value
  char buffer[64];
  auto result = std::to_chars(buffer, buffer + sizeof buffer, v);
  out.append(buffer, result.ptr);
}

// Anything with a ToString() member prints as that; anything else streamable prints through
// operator<<.
template <class T>
  requires(!std::is_arithmetic_v<T> && !std::convertible_to<const T&, std::string_view>)
void AppendTo(std::string& out, const T& v) {
  if constexpr (requires {
                  { v.ToString() } -> std::convertible_to<std::string_view>;
                }) {
    out += v.ToString();
  } else {
    std::ostringstream os;
    os << v;
    out += os.str();
  }
}

template <class... T>
std::string Str(const T&... v) {
  std::string out;
  (AppendTo(out, v), ...);
  return out;
}

template <class Range>
std::string Join(const Range& range, std::string_view separator) {
  std::string out;
  bool first = true;
  for (const auto& v : range) {
    if (!first) out += separator;
    first = false;
    AppendTo(out, v);
  }
  return out;
}

}  // namespace lazuli::ir
