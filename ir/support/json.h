// Strings as JSON writes them.
#pragma once

#include <string>
#include <string_view>

#include "ir/support/namespaces.h"

namespace lazuli::ir {

// Bytes of the UTF-8 sequence that the text begins with; 0 if it begins with none.
inline std::size_t Utf8Length(std::string_view text) {
  const auto byte = [text](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const std::size_t length = byte(0) < 0x80   ? 1
                             : byte(0) < 0xc2 ? 0
                             : byte(0) < 0xe0 ? 2
                             : byte(0) < 0xf0 ? 3
                             : byte(0) < 0xf5 ? 4
                                              : 0;
  if (length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return length;
}

// Appends the text in double quotes, escaped. What is no UTF-8 becomes U+FFFD.
inline void AppendJsonString(std::string& out, std::string_view text) {
  constexpr std::string_view kHex = "0123456789abcdef";
  out += '"';
  while (!text.empty()) {
    const std::size_t length = Utf8Length(text);
    const std::string_view piece = text.substr(0, length);
    text.remove_prefix(length == 0 ? 1 : length);
    if (length != 1) {
      out += length == 0 ? "\\ufffd" : piece;
      continue;
    }
    const char c = piece[0];
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (c == '\n') {
      out += "\\n";
    } else if (byte < 0x20) {
      out += "\\u00";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    } else {
      out += c;
    }
  }
  out += '"';
}

}  // namespace lazuli::ir
