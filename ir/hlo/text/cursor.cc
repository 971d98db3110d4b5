#include "ir/hlo/text/cursor.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ir/hlo/text/attr_text.h"
#include "ir/support/status.h"

namespace lazuli::hlo {
namespace {

// Characters of identifiers: 2 those that may begin one.
constexpr auto kIdentifier = [] {
  std::array<uint8_t, 256> table{};
  for (char c = 'a'; c <= 'z'; ++c) table[static_cast<uint8_t>(c)] = 2;
  for (char c = 'A'; c <= 'Z'; ++c) table[static_cast<uint8_t>(c)] = 2;
  table[static_cast<uint8_t>('_')] = 2;
  for (char c = '0'; c <= '9'; ++c) table[static_cast<uint8_t>(c)] = 1;
  table[static_cast<uint8_t>('.')] = table[static_cast<uint8_t>('-')] = 1;
  return table;
}();

bool IsOpen(char c) { return c == '{' || c == '[' || c == '('; }
bool IsClose(char c) { return c == '}' || c == ']' || c == ')'; }

}  // namespace

void Cursor::SkipComments() {
  while (p_ < end_) {
    const char* start = p_;
    if (Rest().starts_with("/*")) {
      const std::size_t close = Rest().find("*/", 2);
      if (close == std::string_view::npos) {
        Fail("the comment is not closed");
        p_ = end_;
        return;
      }
      p_ += close + 2;
    } else if (Rest().starts_with("//")) {
      p_ = std::find(p_, end_, '\n');
    }
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\n' || *p_ == '\t' || *p_ == '\r')) ++p_;
    if (p_ == start || p_ == end_ || *p_ != '/') return;
  }
}

std::string_view Cursor::TryIdentifier() {
  SkipSpace();
  const char* start = p_;
  if (p_ == end_ || kIdentifier[static_cast<uint8_t>(*p_)] != 2) return {};
  do ++p_;
  while (p_ < end_ && kIdentifier[static_cast<uint8_t>(*p_)] != 0);
  return {start, static_cast<std::size_t>(p_ - start)};
}

bool Cursor::Name(std::string_view* name) {
  Try('%');
  *name = TryIdentifier();
  return !name->empty() || Fail("expected a name");
}

std::string_view Cursor::Word() {
  SkipSpace();
  const char* start = p_;
  while (p_ < end_ && kIdentifier[static_cast<uint8_t>(*p_)] != 0) ++p_;
  return {start, static_cast<std::size_t>(p_ - start)};
}

bool Cursor::Integer(int64_t* value) {
  SkipSpace();
  const auto [end, error] = std::from_chars(p_, end_, *value);
  if (error == std::errc::result_out_of_range) return Fail("the number is out of range");
  if (error != std::errc()) return Fail("expected a whole number");
  p_ = end;
  return true;
}

bool Cursor::Boolean(bool* value) {
  const char* start = p_;
  const std::string_view word = Word();
  if (word == "true" || word == "false") {
    *value = word == "true";
    return true;
  }
  return FailAt(start, "expected true or false, not '", word, "'");
}

bool Cursor::String(std::string* value) {
  const char quote = Peek();
  const char* start = p_;
  if (quote != '"' && quote != '\'') return Fail("expected a quoted string");
  bool escaped = false;
  for (++p_; p_ < end_ && *p_ != quote; ++p_) {
    if (*p_ != '\\') continue;
    escaped = true;
    if (++p_ == end_) break;
  }
  if (p_ == end_) return FailAt(start, "the string is not closed");
  const std::string_view text(start + 1, static_cast<std::size_t>(p_ - start - 1));
  ++p_;
  if (!escaped) {
    *value = text;
    return true;
  }
  std::optional<std::string> unescaped = Unescape(text);
  if (!unescaped) return FailAt(start, "the string has an escape that does not exist");
  *value = *std::move(unescaped);
  return true;
}

bool Cursor::Balanced(std::string_view* value) {
  SkipSpace();
  const char* start = p_;
  int64_t depth = 0;
  for (; p_ < end_; ++p_) {
    if (*p_ == '"') {  // to the closing quote
      for (++p_; p_ < end_ && *p_ != '"'; ++p_) {
        if (*p_ == '\\' && p_ + 1 < end_) ++p_;
      }
      if (p_ == end_) break;
    } else if (*p_ == '/' && PeekSecond() == '*') {
      SkipComments();
      --p_;
    } else if (IsOpen(*p_)) {
      ++depth;
    } else if (IsClose(*p_) && --depth == 0) {
      ++p_;
      *value = {start, static_cast<std::size_t>(p_ - start)};
      return true;
    }
  }
  return FailAt(start, "the bracket is not closed");
}

bool Cursor::RawValue(std::string_view* value) {
  const char first = Peek();
  const char* start = p_;
  if (first == '"' || first == '\'') {
    std::string ignored;
    if (!String(&ignored)) return false;
  } else {
    for (; p_ < end_; ++p_) {
      if (std::strchr(" \t\r\n,", *p_) != nullptr || IsClose(*p_)) break;
      if (!IsOpen(*p_)) continue;
      std::string_view group;
      if (!Balanced(&group)) return false;
      --p_;
    }
  }
  *value = {start, static_cast<std::size_t>(p_ - start)};
  return !value->empty() || Fail("expected a value");
}

bool Cursor::NoteError(const char* at, std::string message) {
  if (message_.empty()) {
    message_.swap(message);
    error_at_ = at;
  }
  return false;
}

namespace {

const char* LineOf(const char* begin, const char* at) {
  while (at > begin && at[-1] != '\n') --at;
  return at;
}

}  // namespace

std::string Cursor::Place(const char* at) const {
  const char* line = LineOf(begin_, at);
  return Str(1 + std::count(begin_, line, '\n'), ":", at - line + 1);
}

absl::Status Cursor::Error() const {
  constexpr std::ptrdiff_t kShown =
      80;  // characters each side: lines of constants may have megabytes
  const char* line = LineOf(begin_, error_at_);
  const char* from = std::max(line, error_at_ - kShown);
  const char* to = std::find(error_at_, std::min(end_, error_at_ + kShown), '\n');
  std::string shown(from, to);
  std::replace_if(
      shown.begin(), shown.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
  return InvalidArgument(Place(error_at_), ": ", message_, "\n", shown, "\n",
                         std::string(static_cast<std::size_t>(error_at_ - from), ' '), "^");
}

}  // namespace lazuli::hlo
