#include "backend/runtime/placement.h"

#include <map>
#include <utility>
#include <vector>

#include "backend/runtime/thunk.h"
#include "ir/support/status.h"

namespace lazuli::backend {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Loops and branches, whose computations are run instruction by instruction.
bool RunsItsCallees(const Instruction& i) {
  return i.opcode() == Opcode::kWhile || i.opcode() == Opcode::kConditional ||
         i.opcode() == Opcode::kCall;
}

class Objections {
 public:
  Objections(const OpFilter& filter, const WhyNotFunction& why_not)
      : filter_(filter), why_not_(why_not) {}

  std::optional<Refusal> To(const Instruction& i) {
    if (std::string why = filter_.WhyDenied(i.opcode()); !why.empty())
      return Refusal{"denied-by-filter", std::move(why)};
    if (std::optional<Refusal> refusal = why_not_(i)) return refusal;
    if (!RunsItsCallees(i)) return std::nullopt;
    for (const Computation* callee : i.called()) {
      if (const std::optional<Refusal>& inside = Inside(*callee)) return inside;
    }
    return std::nullopt;
  }

 private:
  // The first objection to an instruction of the computation. Kept, so that a module is looked at
  // once however it nests.
  const std::optional<Refusal>& Inside(const Computation& computation) {
    if (const auto known = inside_.find(&computation); known != inside_.end()) return known->second;
    std::optional<Refusal> found;
    for (const auto& i : computation.instructions()) {
      if (GoesWithItsUsers(*i)) continue;
      if (const std::optional<Refusal> refusal = To(*i)) {
        found = Refusal{"in-loop-body", refusal->code == "in-loop-body"
                                            ? refusal->sentence
                                            : Str(i->name(), " inside it: ", refusal->sentence)};
        break;
      }
    }
    return inside_.emplace(&computation, std::move(found)).first->second;
  }

  const OpFilter& filter_;
  const WhyNotFunction& why_not_;
  std::unordered_map<const Computation*, std::optional<Refusal>> inside_;
};

bool IsLack(std::string_view code) { return code != "tiny" && code != "cheaper-on-host"; }

}  // namespace

bool GoesWithItsUsers(const Instruction& i) {
  return i.opcode() == Opcode::kParameter || i.opcode() == Opcode::kConstant ||
         i.opcode() == Opcode::kTuple || i.opcode() == Opcode::kGetTupleElement;
}

Placement::Placement(const hlo::Module& module, const OpFilter& filter,
                     const WhyNotFunction& why_not)
    : module_(module) {
  Objections objections(filter, why_not);
  for (const auto& i : module.entry()->instructions()) {
    if (GoesWithItsUsers(*i)) continue;
    if (std::optional<Refusal> refusal = objections.To(*i)) Refuse(*i, *std::move(refusal));
  }
}

const Refusal* Placement::RefusalOf(const Instruction& instruction) const {
  const auto found = refusals_.find(&instruction);
  return found == refusals_.end() ? nullptr : &found->second;
}

void Placement::Refuse(const Instruction& instruction, const Refusal& refusal) {
  if (!kept_.contains(&instruction)) refusals_.try_emplace(&instruction, refusal);
}

void Placement::RefuseAll(const Refusal& refusal) {
  for (const auto& i : module_.entry()->instructions()) {
    if (!GoesWithItsUsers(*i)) Refuse(*i, refusal);
  }
}

absl::Status Placement::CheckAllOnDevice(std::string_view device) const {
  for (const auto& i : module_.entry()->instructions()) {
    const Refusal* const refusal = RefusalOf(*i);
    if (refusal == nullptr || !IsLack(refusal->code)) continue;
    return WithSite(
        Unimplemented(device, " does not run ", hlo::OpcodeText(i->opcode()), " of ", i->shape(),
                      ": ", refusal->code, ": ", refusal->sentence, " (LAZULI_SOFT_PLACEMENT=0)"),
        ThunkInfo::Of("place", *i));
  }
  return absl::OkStatus();
}

std::string Placement::ReasonsText() const {
  std::map<std::pair<std::string, std::string>, std::map<std::string_view, int>> reasons;
  for (const auto& i : module_.entry()->instructions()) {
    if (const Refusal* refusal = RefusalOf(*i))
      ++reasons[{std::string(refusal->code), refusal->sentence}][hlo::OpcodeText(i->opcode())];
  }
  std::string text;
  for (const auto& [reason, ops] : reasons) {
    text += Str("  ", reason.first, ": ", reason.second, ":");
    for (const auto& [op, count] : ops) text += Str(" ", count, " ", op);
    text += "\n";
  }
  return text;
}

}  // namespace lazuli::backend
