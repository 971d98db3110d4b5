// What happens where a device has no code for an instruction and the evaluator would run it, one
// element after the other on one thread: the policy of CompileOptions::fallback.
//
//   lazuli: aten::fft (train.cc:12) runs in the evaluator on cpu: there is no code for c128[4096].
//   It is slow. LAZULI_FALLBACK=error refuses it, =allow is silent; the counter "fallback" counts.
#pragma once

#include <string_view>

#include "absl/status/status.h"

#include "backend/client/client.h"
#include "ir/hlo/module.h"

namespace lazuli::backend {

// Counts the instruction, and refuses it (Unimplemented, with op, line and reason) or says it as the
// policy wants: once per op and line, and only where the evaluator's time would be felt. What the
// evaluator is the right place for - custom calls of the host, transfers to and from it - is none.
absl::Status ReportFallback(const hlo::Instruction& instruction, std::string_view device,
                            std::string_view reason, Fallback policy);

}  // namespace lazuli::backend
