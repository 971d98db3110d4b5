// SlowNotice: a line on the terminal while something takes long.
//
// There is no timer. The code that may take long calls Check() now and then.
#pragma once

#include <chrono>
#include <string>

#include "absl/functional/function_ref.h"

#include "ir/support/namespaces.h"

namespace lazuli::ir {

class SlowNotice {
 public:
  // While this lives, Check() on the same thread writes `text` to standard error once `after` has
  // passed, at most once, and only if standard error is a terminal. `text` must outlive this.
  SlowNotice(std::chrono::milliseconds after, absl::FunctionRef<std::string()> text);
  ~SlowNotice();
  SlowNotice(const SlowNotice&) = delete;
  SlowNotice& operator=(const SlowNotice&) = delete;

  static void Check();  // costs nothing where there is none

 private:
  std::chrono::steady_clock::time_point when_;
  absl::FunctionRef<std::string()> text_;
  SlowNotice* outer_;
};

}  // namespace lazuli::ir
