// Tests of passes: text in, text out, in one string.
//
//   ExpectPass(Cse(), R"(
//     ENTRY main {
//       p = f32[4] parameter(0)
//       // CHECK:      %[[A:.*]] = f32[4] add(%p, %p)
//       // CHECK-NOT:  add(
//       a = f32[4] add(p, p)
//       b = f32[4] add(p, p)
//       // CHECK:      multiply(%[[A]], %[[A]])
//       ROOT m = f32[4] multiply(a, b)
//     })");
//
// CHECK lines are LLVM's FileCheck over the printed result (with %, without layouts and metadata).
// The module is verified before and after, both versions are evaluated on the same random inputs,
// ordinary and special, and must agree bit for bit, and a second run must change nothing. So a pass
// test cannot pass while the pass breaks the maths. In builds without LLVM the CHECK lines are not
// looked at; everything else is.
#pragma once

#include <string>
#include <string_view>

#include "lowering/passes/pass.h"

namespace lazuli {

// Expects the pass to change the module and all of the above.
void ExpectPass(lowering::Pass& pass, std::string_view text);
inline void ExpectPass(lowering::Pass&& pass, std::string_view text) { ExpectPass(pass, text); }

// Expects the pass to report no change and to leave the text as it is.
void ExpectNoChange(lowering::Pass& pass, std::string_view text);
inline void ExpectNoChange(lowering::Pass&& pass, std::string_view text) {
  ExpectNoChange(pass, text);
}

// Whether ExpectPass looks at CHECK lines in this build.
bool HasFileCheck();
// Empty if `output` satisfies the CHECK lines of `checks`, else FileCheck's message.
std::string FileCheckError(std::string_view checks, std::string_view output);

}  // namespace lazuli
