// Placement: which instructions of a module's entry a device runs, which the host, and why.
//
// The one mechanism for every device that does not run everything. An instruction goes to the device
// unless something speaks against it; each objection is a Refusal, a code for tables and a sentence
// for people:
//
//   denied-by-filter    OpFilter: configuration or environment
//   unsupported-op, unsupported-dtype, unsupported-shape   the device's compiler (WhyNot)
//   in-loop-body        a loop or branch goes as a whole; something in it cannot
//   does-not-compile    the compiler gave up on its region
//   tiny                the whole program is less than a launch is worth
//   cheaper-on-host     its region costs more on the device, transfers counted, than on the host
//
// Parameters, constants and tuples are nowhere: they go with who uses them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>

#include "backend/client/client.h"
#include "backend/runtime/op_filter.h"
#include "backend/runtime/refusal.h"
#include "ir/hlo/module.h"

namespace lazuli::backend {

// What the device's compiler has against an instruction, as it stands alone.
using WhyNotFunction = std::function<std::optional<Refusal>(const hlo::Instruction&)>;

// Whether the instruction has no place of its own.
bool GoesWithItsUsers(const hlo::Instruction& instruction);

class Placement {
 public:
  // Asks filter and compiler about each instruction of the entry.
  Placement(const hlo::Module& module, const OpFilter& filter, const WhyNotFunction& why_not);

  bool OnDevice(const hlo::Instruction& instruction) const {
    return !refusals_.contains(&instruction);
  }
  // Null if the device takes it.
  const Refusal* RefusalOf(const hlo::Instruction& instruction) const;
  void Refuse(const hlo::Instruction& instruction, const Refusal& refusal);
  // From now on refusals do not count: what nobody else can run.
  void Keep(const hlo::Instruction& instruction) { kept_.insert(&instruction); }
  // Every instruction that is on the device.
  void RefuseAll(const Refusal& refusal);

  // Without soft placement: an error that names the first op which the device lacks, and its line.
  // What is merely not worth the transfer is none.
  absl::Status CheckAllOnDevice(std::string_view device) const;

  const hlo::Module& module() const { return module_; }
  // "3 add, 1 sort: unsupported-op: ..." one line for each reason.
  std::string ReasonsText() const;

 private:
  const hlo::Module& module_;
  std::unordered_map<const hlo::Instruction*, Refusal> refusals_;
  std::unordered_set<const hlo::Instruction*> kept_;
};

}  // namespace lazuli::backend
