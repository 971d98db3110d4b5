#include "backend/npu/sim/tokens.h"

#include <charconv>
#include <utility>

#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

bool IsNameStart(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '.';
}
bool IsNameChar(char c) { return IsNameStart(c) || IsDigit(c); }

// A quoted text, its escapes undone; `at` is behind the opening quote and ends behind the closing
// one.
std::optional<std::string> QuotedText(std::string_view line, std::size_t& at) {
  std::string text;
  while (at < line.size() && line[at] != '"') {
    char c = line[at++];
    if (c == '\\' && at < line.size()) {
      c = line[at++];
      if (c == 'n') c = '\n';
      if (c == 'x') {
        unsigned value = 0;
        const std::string_view digits = line.substr(at, 2);
        if (std::from_chars(digits.data(), digits.data() + digits.size(), value, 16).ec !=
            std::errc())
          return std::nullopt;
        at += digits.size();
        c = static_cast<char>(value);
      }
    }
    text += c;
  }
  if (at >= line.size()) return std::nullopt;
  ++at;
  return text;
}

}  // namespace

absl::StatusOr<std::vector<std::vector<Token>>> Scan(std::string_view line) {
  std::vector<std::vector<Token>> statements(1);
  std::size_t at = 0;
  while (at < line.size() && line[at] != '#') {
    const char c = line[at];
    if (c == ' ' || c == '\t' || c == '\r') {
      ++at;
    } else if (c == ';') {
      statements.emplace_back();
      ++at;
    } else if (c == '"') {
      ++at;
      auto text = QuotedText(line, at);
      if (!text) return InvalidArgument("a text is not closed");
      statements.back().push_back({TokenKind::kText, *std::move(text)});
    } else if (IsDigit(c) || IsNameStart(c)) {
      std::size_t end = at + 1;
      while (end < line.size() && (IsNameChar(line[end]) ||
                                   (IsDigit(c) && (line[end] == '+' || line[end] == '-') &&
                                    (line[end - 1] == 'e') && !line.substr(at).starts_with("0x"))))
        ++end;
      statements.back().push_back({IsDigit(c) ? TokenKind::kNumber : TokenKind::kName,
                                   std::string(line.substr(at, end - at))});
      at = end;
    } else if (std::string_view("[](),=+->:$@|").find(c) != std::string_view::npos) {
      const bool two = line.substr(at).starts_with(">=");
      statements.back().push_back({TokenKind::kMark, std::string(line.substr(at, two ? 2 : 1))});
      at += two ? 2 : 1;
    } else {
      return InvalidArgument("the character '", c, "' means nothing here");
    }
  }
  return statements;
}

std::optional<int64_t> IntegerOf(std::string_view text) {
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  uint64_t value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value, hex ? 16 : 10);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size()) return std::nullopt;
  return static_cast<int64_t>(value);
}

std::optional<uint32_t> Numbered(const Token& token, char letter, int most) {
  if (token.kind != TokenKind::kName || token.text.size() < 2 || token.text[0] != letter ||
      !IsDigit(token.text[1]))
    return std::nullopt;
  const auto value = IntegerOf(std::string_view(token.text).substr(1));
  if (!value || *value < 0 || *value > most) return std::nullopt;
  return static_cast<uint32_t>(*value);
}

std::string TextOf(Tokens tokens) {
  std::string text;
  for (const Token& token : tokens) text += token.text;
  return text;
}

}  // namespace lazuli::npu
