#include "lowering/passes/simplify.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <deque>
#include <utility>
#include <vector>

#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "ir/support/name_list.h"
#include "ir/support/status.h"
#include "lowering/passes/rewriter.h"
#include "lowering/passes/rules/weight.h"

namespace lazuli::lowering {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// Positions of the rules for each opcode.
using RuleIndex = std::vector<std::vector<std::size_t>>;

RuleIndex RulesByOpcode(absl::Span<const Rule> rules) {
  RuleIndex index(static_cast<std::size_t>(hlo::NumOpcodes()));
  for (std::size_t op = 0; op < index.size(); ++op) {
    for (std::size_t k = 0; k < rules.size(); ++k) {
      if (rules[k].opcodes.contains(static_cast<Opcode>(op))) index[op].push_back(k);
    }
  }
  return index;
}

// What one run of the pass shares between computations.
struct RuleSet {
  absl::Span<const Rule> rules;
  const RuleIndex& by_opcode;
  std::vector<bool> enabled;
  std::vector<int64_t> hits;
};

// Rules that undo each other are a mistake of ours that costs the user no program.
void Stopped(const Computation& computation) {
  Add(Counter::kSimplifyStopped);
  static std::atomic<bool> told{false};
  if (told.exchange(true)) return;
  std::fprintf(stderr,
               "lazuli: the rules of simplify rewrite %s for ever; it goes on as far as they came "
               "(LAZULI_DISABLE_RULES turns rules off)\n",
               computation.name().c_str());
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
  Driver(Computation* computation, RuleSet& set)
      : rewriter_(computation),
        worklist_(*computation),
        set_(set),
        verifies_(flags().verify_passes()),
        budget_(1000 + 16 * computation->instruction_count()) {}

  absl::StatusOr<bool> Run() {
    while (Instruction* i = worklist_.Pop()) {
      if (rewriter_.IsErased(i) || !i->control_predecessors().empty()) continue;
      if (i->users().empty() && !i->IsRoot()) continue;  // dead: not ours to simplify
      LAZULI_RETURN_IF_ERROR(Visit(i));
      if (budget_ >= 0) continue;
      Stopped(*rewriter_.computation());
      break;
    }
    return rewriter_.changed();
  }

 private:
  // Weighing is linear, and would make the pass quadratic.
  static constexpr int64_t kMaxWeighed = 200;
  static constexpr double kMaxExact = 1LL << 53;

  absl::Status Visit(Instruction* i) {
    for (std::size_t k : set_.by_opcode[static_cast<std::size_t>(i->opcode())]) {
      if (!set_.enabled[k]) continue;
      const Rule& rule = set_.rules[k];
      rewriter_.set_origin(i);
      Instruction* const with = rule.apply(i, rewriter_);
      if (with == nullptr || with == i) continue;
      if (!Compatible(with->shape(), i->shape())) {
        return Internal("rule ", rule.name, " replaced ", i->name(), " of shape ", i->shape(),
                        " by a value of shape ", with->shape());
      }
      if (with->shape() != i->shape()) continue;  // another layout: somebody wants it
      if (verifies_) LAZULI_RETURN_IF_ERROR(CheckLighter(rule, *i, *with));
      ++set_.hits[k];
      --budget_;
      Changed(i, with);
      return absl::OkStatus();
    }
    return absl::OkStatus();
  }

  absl::Status CheckLighter(const Rule& rule, const Instruction& old, const Instruction& with) {
    const Computation& computation = *rewriter_.computation();
    if (computation.instruction_count() > kMaxWeighed) return absl::OkStatus();
    const hlo::DenseMap<double> weights = WeightsOf(computation);
    const double before = weights[&old], after = weights[&with];
    if (after < before || before >= kMaxExact) return absl::OkStatus();
    return Internal("rule ", rule.name, " replaced ", old.ToString(), ", which weighs ", before,
                    ", by ", with.ToString(), ", which weighs ", after);
  }

  void Changed(Instruction* old, Instruction* with) {
    const absl::InlinedVector<Instruction*, 4> operands(old->operands().begin(),
                                                        old->operands().end());
    const absl::InlinedVector<Instruction*, 4> users(old->users().begin(), old->users().end());
    rewriter_.Replace(old, with);
    for (Instruction* operand : with->operands()) worklist_.Push(operand);
    worklist_.Push(with);
    for (Instruction* user : users) {
      worklist_.Push(user);
      for (Instruction* further : user->users()) worklist_.Push(further);
    }
    // Rules may ask whether something is used once.
    for (Instruction* operand : operands) {
      if (rewriter_.IsErased(operand) || operand->users().size() != 1) continue;
      worklist_.Push(operand->users()[0]);
    }
  }

  Rewriter rewriter_;
  Worklist worklist_;
  RuleSet& set_;
  const bool verifies_;
  int64_t budget_;
};

}  // namespace

absl::StatusOr<std::vector<bool>> Simplify::EnabledRules() const {
  std::vector<bool> enabled(rules_.size(), true);
  const std::vector<std::string_view> disabled = SplitNames(disabled_);
  if (disabled.empty()) return enabled;
  std::vector<std::string_view> names;
  for (const Rule& rule : AllRules()) names.push_back(rule.name);
  LAZULI_RETURN_IF_ERROR(CheckNames("LAZULI_DISABLE_RULES", "rule", disabled, names));
  for (std::size_t k = 0; k < rules_.size(); ++k)
    enabled[k] = std::find(disabled.begin(), disabled.end(), rules_[k].name) == disabled.end();
  return enabled;
}

absl::StatusOr<bool> Simplify::Run(hlo::Module& module) {
  static const auto& index_of_all = *new RuleIndex(RulesByOpcode(AllRules()));
  const RuleIndex other = rules_.data() == AllRules().data() ? RuleIndex() : RulesByOpcode(rules_);
  LAZULI_ASSIGN_OR_RETURN(std::vector<bool> enabled, EnabledRules());
  RuleSet set{rules_, other.empty() ? index_of_all : other, std::move(enabled),
              std::vector<int64_t>(rules_.size(), 0)};
  bool changed = false;
  for (const auto& computation : module.computations()) {
    LAZULI_ASSIGN_OR_RETURN(const bool here, Driver(computation.get(), set).Run());
    changed |= here;
  }
  for (std::size_t k = 0; k < set.hits.size(); ++k) {
    if (set.hits[k] > 0) AddNamed(Str("rule.", rules_[k].name), set.hits[k]);
  }
  return changed;
}

}  // namespace lazuli::lowering
