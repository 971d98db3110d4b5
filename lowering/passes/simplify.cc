#include "lowering/passes/simplify.h"

#include <deque>
#include <vector>

#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "ir/support/status.h"
#include "lowering/passes/names.h"
#include "lowering/passes/rewriter.h"
#include "lowering/passes/rules/rules.h"

namespace lazuli::lowering {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Positions in AllRules() of the rules for each opcode.
using RuleIndex = std::vector<std::vector<std::size_t>>;

RuleIndex RulesByOpcode() {
  RuleIndex index(static_cast<std::size_t>(hlo::NumOpcodes()));
  const absl::Span<const Rule> rules = AllRules();
  for (std::size_t op = 0; op < index.size(); ++op) {
    for (std::size_t k = 0; k < rules.size(); ++k) {
      if (rules[k].opcodes.contains(static_cast<Opcode>(op))) index[op].push_back(k);
    }
  }
  return index;
}

absl::StatusOr<std::vector<bool>> EnabledRules() {
  const absl::Span<const Rule> rules = AllRules();
  std::vector<bool> enabled(rules.size(), true);
  for (std::string_view name : SplitNames(flags().disable_rules())) {
    bool found = false;
    for (std::size_t k = 0; k < rules.size(); ++k) {
      if (rules[k].name != name) continue;
      enabled[k] = false;
      found = true;
    }
    if (!found) return InvalidArgument("LAZULI_DISABLE_RULES: there is no rule ", name);
  }
  return enabled;
}

// One computation's worklist: every instruction at first, then those around each change.
class Worklist {
 public:
  explicit Worklist(const Computation& computation) {
    for (Instruction* i : computation.PostOrder()) Push(i);
  }
  void Push(Instruction* i) {
    const auto id = static_cast<std::size_t>(i->id());
    if (id >= queued_.size()) queued_.resize(id + id / 2 + 64, false);
    if (queued_[id]) return;
    queued_[id] = true;
    queue_.push_back(i);
  }
  Instruction* Pop() {
    if (queue_.empty()) return nullptr;
    Instruction* const i = queue_.front();
    queue_.pop_front();
    queued_[static_cast<std::size_t>(i->id())] = false;
    return i;
  }

 private:
  std::deque<Instruction*> queue_;
  std::vector<bool> queued_;
};

class Driver {
 public:
  Driver(Computation* computation, const std::vector<bool>& enabled, std::vector<int64_t>& hits)
      : rewriter_(computation),
        worklist_(*computation),
        enabled_(enabled),
        hits_(hits),
        budget_(1000 + 16 * computation->instruction_count()) {}

  absl::StatusOr<bool> Run() {
    while (Instruction* i = worklist_.Pop()) {
      if (rewriter_.IsErased(i) || !i->control_predecessors().empty()) continue;
      if (i->users().empty() && !i->IsRoot()) continue;  // dead: not ours to simplify
      LAZULI_RETURN_IF_ERROR(Visit(i));
      if (budget_ < 0)
        return Internal("simplify: rules rewrite ", rewriter_.computation()->name(), " for ever");
    }
    return rewriter_.changed();
  }

 private:
  absl::Status Visit(Instruction* i) {
    static const auto& rules_of = *new RuleIndex(RulesByOpcode());
    for (std::size_t k : rules_of[static_cast<std::size_t>(i->opcode())]) {
      if (!enabled_[k]) continue;
      const Rule& rule = AllRules()[k];
      rewriter_.set_origin(i);
      Instruction* const with = rule.apply(i, rewriter_);
      if (with == nullptr || with == i) continue;
      if (!Compatible(with->shape(), i->shape())) {
        return Internal("rule ", rule.name, " replaced ", i->name(), " of shape ", i->shape(),
                        " by a value of shape ", with->shape());
      }
      if (with->shape() != i->shape()) continue;  // another layout: somebody wants it
      ++hits_[k];
      --budget_;
      Changed(i, with);
      return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  void Changed(Instruction* old, Instruction* with) {
    const absl::InlinedVector<Instruction*, 4> operands(old->operands().begin(),
                                                        old->operands().end());
    const absl::InlinedVector<Instruction*, 4> users(old->users().begin(), old->users().end());
    rewriter_.Replace(old, with);
    for (Instruction* operand : with->operands()) worklist_.Push(operand);
    worklist_.Push(with);
    for (Instruction* user : users) worklist_.Push(user);
    // Rules may ask whether something is used once.
    for (Instruction* operand : operands) {
      if (rewriter_.IsErased(operand) || operand->users().size() != 1) continue;
      worklist_.Push(operand->users()[0]);
    }
  }

  Rewriter rewriter_;
  Worklist worklist_;
  const std::vector<bool>& enabled_;
  std::vector<int64_t>& hits_;
  int64_t budget_;
};

}  // namespace

absl::StatusOr<bool> Simplify::Run(hlo::Module& module) {
  LAZULI_ASSIGN_OR_RETURN(const std::vector<bool> enabled, EnabledRules());
  std::vector<int64_t> hits(enabled.size(), 0);
  bool changed = false;
  for (const auto& computation : module.computations()) {
    LAZULI_ASSIGN_OR_RETURN(const bool here, Driver(computation.get(), enabled, hits).Run());
    changed |= here;
  }
  for (std::size_t k = 0; k < hits.size(); ++k) {
    if (hits[k] > 0) AddNamed(Str("rule.", AllRules()[k].name), hits[k]);
  }
  return changed;
}

}  // namespace lazuli::lowering
