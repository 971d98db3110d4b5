// SlowNotice: a line on the terminal when something takes long, while it does.
//
// What takes long asks now and then (Check()); there is no clock that runs beside it.
#pragma once

#include <chrono>
#include <string>

#include "absl/functional/function_ref.h"

#include "ir/support/namespaces.h"

namespace lazuli::ir {

class SlowNotice {
 public:
  // From now on the calling thread's Check() writes `text` to standard error, once, when this has
  // lived for `after` and standard error is a terminal. `text` outlives this.
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
