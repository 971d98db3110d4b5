// The public function that this thread is in, which a run names when what the function recorded
// fails: an embedding's bad index is the embedding's, though an index_select finds it.
//
// The outermost scope wins, as with source lines. Without one the op's own name is the function's.
#pragma once

#include <string_view>

#include "ir/support/namespaces.h"
#include "ir/support/thread_local.h"

namespace lazuli::lazy {

namespace internal {
inline LAZULI_FAST_THREAD_LOCAL const char* current_function = nullptr;
}

inline std::string_view CurrentFunction() {
  return internal::current_function != nullptr ? internal::current_function : std::string_view();
}

class FunctionScope {
 public:
  // `name`: a literal.
  explicit FunctionScope(std::string_view name)
      : outermost_(internal::current_function == nullptr) {
    if (outermost_) internal::current_function = name.data();
  }
  ~FunctionScope() {
    if (outermost_) internal::current_function = nullptr;
  }
  FunctionScope(const FunctionScope&) = delete;
  FunctionScope& operator=(const FunctionScope&) = delete;

 private:
  bool outermost_;
};

}  // namespace lazuli::lazy
