// What an op's Lower sees besides its operands: the builder and run-time checks.
#pragma once

#include <string>
#include <vector>

#include "lowering/builder/builder.h"

namespace lazuli::lowering {

// A condition on values that only a run can decide ("label 12 is out of range [0, 10)"). It becomes
// one more output of the module, an s64 scalar that is kNoOffender or the offending value, so it is
// plain HLO on every device; the executor reads it after the run and fails the run with the
// message.
struct RuntimeCheck {
  static constexpr int64_t kNoOffender = INT64_MIN;
  Op offender;  // s64[]
  // Message text before and after the offending value. It begins with the op's name and a colon; a
  // run puts the function that the user called in place of the name.
  std::string before;
  std::string after;
  uint32_t site = 0;
};

class LoweringContext {
 public:
  explicit LoweringContext(Builder& builder) : builder(builder) {}
  LoweringContext(const LoweringContext&) = delete;
  LoweringContext& operator=(const LoweringContext&) = delete;

  // Fails the run if any element of `bad` (pred) is set; `values` (integers, same dims) says which
  // value to name.
  void CheckNone(Op bad, Op values, std::string before, std::string after);

  Builder& builder;
  uint32_t site = 0;  // of the node being lowered
  std::vector<RuntimeCheck> checks;
};

}  // namespace lazuli::lowering
