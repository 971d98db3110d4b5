#include "backend/runtime/fallback.h"

#include <cstdio>
#include <mutex>
#include <set>
#include <string>

#include "backend/runtime/thunk.h"
#include "ir/support/flags.h"
#include "ir/support/fork.h"
#include "ir/support/metrics.h"
#include "ir/support/runtime.h"
#include "ir/support/status.h"
#include "ir/support/text_file.h"
#include "ir/types/leaves.h"

namespace lazuli::backend {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// The evaluator takes 20 to 100 ns an element: from about here on a run has a millisecond more.
constexpr int64_t kFeltElements = 10'000;

bool BelongsToTheHost(const Instruction& i) {
  if (i.opcode() == Opcode::kCustomCall) return true;
  return i.called().empty() && i.HasSideEffect();
}

int64_t ElementsOf(const Shape& shape) {
  int64_t elements = 0;
  ForEachLeaf(shape, [&](const Shape& leaf) { elements += leaf.num_elements(); });
  return elements;
}

bool IsFelt(const Instruction& i) {
  if (!i.called().empty() && (i.opcode() == Opcode::kWhile || i.opcode() == Opcode::kConditional ||
                              i.opcode() == Opcode::kCall))
    return true;
  int64_t elements = ElementsOf(i.shape());
  for (const Instruction* operand : i.operands()) elements += ElementsOf(operand->shape());
  return elements >= kFeltElements;
}

// Whether nobody has been told of this op at this line.
bool IsNews(const ThunkInfo& info) {
  struct ReportedFallbacks {
    ir::ForkMutex mutex;
    std::set<std::string> places;
  };
  ReportedFallbacks& reported = ir::Runtime::Get().Of<ReportedFallbacks>();
  const std::lock_guard lock(reported.mutex);
  return reported.places.insert(Str(info.op, "@", info.source)).second;
}

}  // namespace

absl::Status ReportFallback(const Instruction& i, std::string_view device, std::string_view reason,
                            Fallback policy) {
  if (BelongsToTheHost(i)) return absl::OkStatus();
  Add(Counter::kFallbacks);
  const ThunkInfo info = ThunkInfo::Of("evaluate", i);
  if (!flags().xla_fntracker_file().empty()) {
    ir::SayOnce(Prefixed(
        ir::AppendToTextFile(flags().xla_fntracker_file(),
                             Str("[FALLBACK] ", info.op, " (", info.source, ") on ", device, ": ",
                                 hlo::OpcodeText(i.opcode()), " ", i.shape(), ": ", reason, "\n")),
        "XLA_FNTRACKER_FILE: "));
  }
  if (policy == Fallback::kError) {
    return Unimplemented(device, " has no code for ", hlo::OpcodeText(i.opcode()), " of ",
                         i.shape(), ": ", reason, " (LAZULI_FALLBACK=error)");
  }
  if (policy == Fallback::kAllow || !IsFelt(i) || !IsNews(info)) return absl::OkStatus();
  const std::string place = info.source.empty() ? "" : Str(" (", info.source, ")");
  std::fprintf(stderr,
               "lazuli: %s%s runs in the evaluator on %s: %s. It is slow. LAZULI_FALLBACK=error "
               "refuses it, =allow is silent; the counter \"fallback\" counts.\n",
               info.op.c_str(), place.c_str(), std::string(device).c_str(),
               std::string(reason).c_str());
  return absl::OkStatus();
}

}  // namespace lazuli::backend
