// The public function that this thread is in, which a run names when what the function recorded
// fails: an embedding's bad index is the embedding's, though an index_select finds it.
//
// The outermost scope wins, as with source lines. Without one the op's own name is the function's.
#pragma once

#include <cstddef>
#include <string_view>

#include "ir/support/namespaces.h"
#include "ir/support/thread_local.h"

namespace lazuli::lazy {

// The name of a function, which outlives the call: a run that fails names it long after the function
// has returned. So it is made of a literal or of an array with static storage; one of a local array is
// not a constant and does not compile.
class FunctionName {
 public:
  constexpr FunctionName() = default;  // empty: the op's own name is the function's
  template <std::size_t n>
  consteval FunctionName(const char (&name)[n])  // NOLINT(google-explicit-constructor)
      : FunctionName(std::string_view(name)) {}
  consteval FunctionName(std::string_view name)  // NOLINT(google-explicit-constructor)
      : text_(name.data()) {
    if (name.data()[name.size()] != '\0') throw "the text ends with a zero, as a literal does";
  }
  constexpr operator std::string_view() const {  // NOLINT(google-explicit-constructor)
    return text_ != nullptr ? std::string_view(text_) : std::string_view();
  }
  constexpr bool empty() const { return text_ == nullptr; }

 private:
  const char* text_ = nullptr;
};

namespace internal {
inline LAZULI_FAST_THREAD_LOCAL FunctionName current_function;
}

inline FunctionName CurrentFunction() { return internal::current_function; }

class FunctionScope {
 public:
  explicit FunctionScope(FunctionName name) : outermost_(internal::current_function.empty()) {
    if (outermost_) internal::current_function = name;
  }
  ~FunctionScope() {
    if (outermost_) internal::current_function = FunctionName();
  }
  FunctionScope(const FunctionScope&) = delete;
  FunctionScope& operator=(const FunctionScope&) = delete;

 private:
  bool outermost_;
};

}  // namespace lazuli::lazy
