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
inline LAZULI_FAST_THREAD_LOCAL std::string_view current_function;
}

inline std::string_view CurrentFunction() { return internal::current_function; }

class FunctionScope {
 public:
  // `name` lives as long as the process.
  explicit FunctionScope(std::string_view name) : outermost_(internal::current_function.empty()) {
    if (outermost_) internal::current_function = name;
  }
  ~FunctionScope() {
    if (outermost_) internal::current_function = {};
  }
  FunctionScope(const FunctionScope&) = delete;
  FunctionScope& operator=(const FunctionScope&) = delete;

 private:
  bool outermost_;
};

}  // namespace lazuli::lazy
