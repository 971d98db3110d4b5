// SlowNotice: a line on the terminal while something takes long.
//
// There is no timer. The code that may take long calls Check() now and then.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"

#include "ir/support/namespaces.h"

namespace lazuli::ir {

class SlowNotice {
 public:
  // While this lives, Check() on the same thread writes `text` and what the code is at to standard
  // error once `after` has passed, and again after twice that time and so on, but only if standard
  // error is a terminal and LAZULI_PROGRESS is on. `text` must outlive this.
  SlowNotice(std::chrono::milliseconds after, absl::FunctionRef<std::string()> text);
  ~SlowNotice();
  SlowNotice(const SlowNotice&) = delete;
  SlowNotice& operator=(const SlowNotice&) = delete;

  // `at`: "cpu_fuse", what is about to begin. Costs nothing where there is none.
  static void Check(std::string_view at = {});

 private:
  std::chrono::milliseconds after_;
  std::chrono::steady_clock::time_point when_;
  absl::FunctionRef<std::string()> text_;
  SlowNotice* outer_;
};

}  // namespace lazuli::ir
