// Text in the data of a page: JSON in a script element.
#pragma once

#include <string>
#include <string_view>

#include "ir/support/json.h"

namespace lazuli::lazy {

// The text of a script ends at "</script", wherever that stands.
inline std::string InScript(std::string_view json) {
  std::string text;
  text.reserve(json.size());
  for (const char c : json) {
    if (c == '/' && text.ends_with('<')) text += '\\';
    text += c;
  }
  return text;
}

inline std::string JsonText(std::string_view text) {
  std::string quoted;
  ir::AppendJsonString(quoted, text);
  return InScript(quoted);
}

}  // namespace lazuli::lazy
