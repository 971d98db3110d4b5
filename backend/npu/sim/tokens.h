// Words and marks of a line of assembly.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "backend/npu/sim/namespace.h"

namespace lazuli::npu {

enum class TokenKind : uint8_t { kName, kNumber, kText, kMark };
struct Token {
  TokenKind kind;
  std::string text;  // of a number its digits, as written; of a text what is between the quotes
};
using Tokens = std::span<const Token>;

// The statements of a line. Numbers take letters along, so that 12ab is one token that is no
// number.
absl::StatusOr<std::vector<std::vector<Token>>> Scan(std::string_view line);

constexpr bool IsDigit(char c) { return c >= '0' && c <= '9'; }
inline bool Is(const Token& token, std::string_view mark) {
  return token.kind == TokenKind::kMark && token.text == mark;
}
// Decimal digits, or hexadecimal ones behind 0x; at most 64 bits.
std::optional<int64_t> IntegerOf(std::string_view text);
// The number N of a name like r12, at most `most`.
std::optional<uint32_t> Numbered(const Token& token, char letter, int most);
// The tokens as they were written, without the spaces.
std::string TextOf(Tokens tokens);

}  // namespace lazuli::npu
