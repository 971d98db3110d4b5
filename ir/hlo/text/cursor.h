// A position in HLO text and the lexical elements that can follow it. Reads nothing twice, copies
// nothing.
//
// Functions that return bool either advance past what they name, or note an error (only the first
// counts) and return false; Try... and Peek... leave the position alone when they return false.
// Space and comments before an element are skipped.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "ir/support/str.h"

namespace lazuli::hlo {

class Cursor {
 public:
  explicit Cursor(std::string_view text)
      : begin_(text.data()), p_(begin_), end_(begin_ + text.size()) {}

  const char* position() const { return p_; }
  void set_position(const char* p) { p_ = p; }
  int64_t remaining() const { return end_ - p_; }

  // The first character that is neither space nor comment; '\0' at the end.
  char Peek() {
    SkipSpace();
    return p_ < end_ ? *p_ : '\0';
  }
  // The character behind Peek()'s, with nothing skipped.
  char PeekSecond() const { return p_ + 1 < end_ ? p_[1] : '\0'; }
  bool AtEnd() { return Peek() == '\0' && p_ == end_; }

  bool Try(char c) {
    if (Peek() != c || p_ == end_) return false;
    ++p_;
    return true;
  }
  bool Try(std::string_view text) {
    SkipSpace();
    if (!Rest().starts_with(text)) return false;
    p_ += text.size();
    return true;
  }
  bool Expect(char c) { return Try(c) || Fail("expected '", c, "'"); }
  bool Expect(std::string_view text) { return Try(text) || Fail("expected '", text, "'"); }

  // [A-Za-z_][A-Za-z0-9_.-]*; empty if none follows.
  std::string_view TryIdentifier();
  // As above behind an optional '%'.
  bool Name(std::string_view* name);
  // A run of identifier characters and digits, for words of enums and numbers of any form.
  std::string_view Word();
  bool Integer(int64_t* value);
  bool Boolean(bool* value);
  // A quoted string, unescaped.
  bool String(std::string* value);
  // What follows '=' for an attribute that nobody interprets: a string, or everything to the next
  // space, comma or closing bracket outside brackets. Kept as written.
  bool RawValue(std::string_view* value);
  // From an opening bracket to the one that closes it, strings skipped.
  bool Balanced(std::string_view* value);

  // Notes an error at the current position, or at one of a part read before. Returns false.
  template <class... T>
  bool Fail(const T&... parts) {
    return FailAt(p_, parts...);
  }
  template <class... T>
  bool FailAt(const char* at, const T&... parts) {
    return NoteError(at, Str(parts...));
  }
  // "3:14" of a position: line and column, from 1.
  std::string Place(const char* at) const;
  bool failed() const { return !message_.empty(); }
  // "3:14: message", the line and a caret.
  absl::Status Error() const;

 private:
  void SkipSpace() {
    while (p_ < end_ && (*p_ == ' ' || *p_ == '\n' || *p_ == '\t' || *p_ == '\r')) ++p_;
    if (p_ < end_ && *p_ == '/') SkipComments();
  }
  void SkipComments();
  bool NoteError(const char* at, std::string message);
  std::string_view Rest() const { return {p_, static_cast<std::size_t>(end_ - p_)}; }

  const char* begin_;
  const char* p_;
  const char* end_;
  std::string message_;
  const char* error_at_ = nullptr;
};

}  // namespace lazuli::hlo
