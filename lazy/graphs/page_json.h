// Text in the data of a page: JSON in a script element.
#pragma once

#include <string>
#include <string_view>

#include "ir/support/json.h"

namespace lazuli::lazy {

inline std::string JsonText(std::string_view text) {
  std::string quoted, json;
  ir::AppendJsonString(quoted, text);
  // The text of a script ends at "</script", wherever that stands.
  for (const char c : quoted) {
    if (c == '/' && json.ends_with('<')) json += '\\';
    json += c;
  }
  return json;
}

}  // namespace lazuli::lazy
