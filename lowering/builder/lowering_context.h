// What an op's Lower sees besides its operands: the builder and run-time checks.
#pragma once

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "lowering/builder/builder.h"

namespace lazuli::lowering {

// What a check says: "cross_entropy: label 12 is out of range [0, 10)", where 12 is what a run finds.
struct CheckMessage {
  std::string op;      // "cross_entropy"; a run names the function that the user called, if any
  std::string before;  // "label "
  std::string after;   // " is out of range [0, 10)"
  // Above 0: the check is of the decompositions of so many matrices. It says "(Batch element 1): " of
  // a batch, then `before`, where the number of LAPACK that the run finds takes the place of each #.
  int64_t matrices = 0;
  bool is_batch = false;
  bool says_value = true;  // otherwise it is `before` alone
  // The condition is the program's own: `op` is what it calls itself, and the error is one of an
  // argument, not of an index.
  bool is_users = false;
};

// A matrix of a batch and LAPACK's number of what failed there, as one number. The greatest one is
// of the first matrix.
struct FailedMatrix {
  static constexpr int kInfoBits = 32;
  int64_t index, info;

  static FailedMatrix Of(int64_t value, int64_t matrices) {
    return {matrices - 1 - (value >> kInfoBits), static_cast<int32_t>(value)};
  }
};

// A condition on values that only a run can decide ("label 12 is out of range [0, 10)"). It becomes
// one more output of the module, an s64 scalar that is kNoOffender or the offending value, so it is
// plain HLO on every device; the executor reads it after the run and fails the run with the
// message.
struct RuntimeCheck {
  static constexpr int64_t kNoOffender = INT64_MIN;
  Op offender;  // s64[]
  CheckMessage message;
};

class LoweringContext {
 public:
  explicit LoweringContext(Builder& builder) : builder(builder) {}
  LoweringContext(const LoweringContext&) = delete;
  LoweringContext& operator=(const LoweringContext&) = delete;

  // Fails the run if any element of `bad` (pred) is set; `values` (integers, same dims) says which
  // value to name.
  void CheckNone(Op bad, Op values, CheckMessage message);

  // Fails the run with a LinAlgError if any element of `bad` (pred) is set; `info` (s32, same dims) is
  // LAPACK's. The rest of the message is `before`, where # stands for the number.
  void CheckMatrices(Op bad, Op info, std::string op, std::string before);

  // The program's entry computation in the module under construction, copied there at the first call.
  hlo::Computation* CopyOf(const hlo::Module& program);

  // An effect comes after these values; an ordered one also after the ordered one before it.
  void ComesAfter(Op effect, absl::Span<const Op> before, bool ordered);

  Builder& builder;
  std::vector<RuntimeCheck> checks;

 private:
  absl::flat_hash_map<const hlo::Module*, hlo::Computation*> copies_;
  hlo::Instruction* last_ordered_ = nullptr;
};

}  // namespace lazuli::lowering
