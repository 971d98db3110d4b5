// FusionDecision: whether an instruction joins a kernel, and why not. FusionDecisions writes the reasons
// down for those who ask: `lazuli-opt --emit=fusion`, `compiler_ir(stage="fusion")`.
//
//   reduce.5 (softmax at train.py:12) begins a kernel of its own:
//     not in the kernel of its users: a reduction is known only when its loop has ended
//     not beside others: no kernel reads the same arrays
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "ir/hlo/dump/module_dump.h"
#include "ir/hlo/module.h"

namespace lazuli::lowering {

class FusionDecision {
 public:
  static FusionDecision Joins() { return FusionDecision(""); }
  // `why_not` is a literal: a sentence without its end.
  static FusionDecision No(std::string_view why_not) { return FusionDecision(why_not); }
  bool joins() const { return why_not_.empty(); }
  std::string_view why_not() const { return why_not_; }

 private:
  explicit FusionDecision(std::string_view why_not) : why_not_(why_not) {}
  std::string_view why_not_;
};

// The decisions of one run of the pass; it costs nothing where nobody asks.
class FusionDecisions {
 public:
  FusionDecisions();
  ~FusionDecisions();
  FusionDecisions(const FusionDecisions&) = delete;
  FusionDecisions& operator=(const FusionDecisions&) = delete;

  using Against = std::pair<std::string_view, FusionDecision>;  // "not beside others", why
  // An instruction that begins a kernel.
  void Begins(const hlo::Instruction& i, std::initializer_list<Against> against);

 private:
  hlo::ModuleDump* dump_;  // null: nobody asks
  std::string text_;
};

}  // namespace lazuli::lowering
