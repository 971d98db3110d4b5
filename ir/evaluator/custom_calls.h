// Custom calls that the evaluator (and with it the interpreter and every device's fallback) can
// run, by target name.
//
// Built in: "Sharding" and its like (the identity on one device), "TopK", linear algebra
// (lapack_calls.h) and "lazuli.check_index_range"(indices: s32 or s64, limit:
// s64[]) -> indices, which fails with OutOfRange "index 12 is out of range [0, 10)" at the first
// index outside of [0, limit).
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "ir/hlo/module.h"
#include "ir/types/literal.h"

namespace lazuli::hlo {

using CustomCall = std::function<absl::StatusOr<Literal>(
    const Instruction& instruction, absl::Span<const Literal* const> operands)>;

// What instructions carry themselves (CustomCallAttrs::host), and transforms may know more of.
struct HostFunction {
  explicit HostFunction(CustomCall function) : call(std::move(function)) {}
  virtual ~HostFunction() = default;
  const CustomCall call;
};

// Thread-safe. Registering a target again replaces it.
void RegisterCustomCall(std::string_view target, CustomCall call);
// Empty if there is none of this name.
CustomCall FindCustomCall(std::string_view target);

// OK, or the OutOfRange error of lazuli.check_index_range.
absl::Status CheckIndexRange(const Literal& indices, int64_t limit);

}  // namespace lazuli::hlo
