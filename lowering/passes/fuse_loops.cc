#include "lowering/passes/fuse_loops.h"

#include <algorithm>
#include <ranges>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "lowering/passes/rewriter.h"
#include "lowering/passes/scheduled.h"
#include "lowering/passes/unroll_reductions.h"

namespace lazuli::lowering {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;
using Supports = std::function<bool(const Instruction&)>;

// Leaves of the state, instructions of an iteration, and instructions taken in on either side.
constexpr std::size_t kMaxLeaves = 24;
constexpr int64_t kMaxBody = 400;
constexpr std::size_t kMaxAround = 100;

bool IsFlat(const Shape& shape) {
  return shape.IsTuple() && !shape.tuple().empty() && shape.tuple().size() <= kMaxLeaves &&
         std::all_of(shape.tuple().begin(), shape.tuple().end(),
                     [](const Shape& leaf) { return leaf.IsArray() && !leaf.has_layout(); });
}

bool IsShortcut(const Instruction& i) {  // of a callee that inlining and simplifying remove
  return i.opcode() == Opcode::kParameter || i.opcode() == Opcode::kTuple ||
         i.opcode() == Opcode::kGetTupleElement || i.opcode() == Opcode::kCall ||
         i.opcode() == Opcode::kConstant;
}

// A look before anything is copied. `budget`: instructions that calls may be written out to.
bool MayFuse(const Computation& computation, const Supports& supports, int64_t& budget) {
  budget -= computation.instruction_count();
  return budget >= 0 &&
         std::all_of(computation.instructions().begin(), computation.instructions().end(),
                     [&](const auto& i) {
                       const auto called = i->called();
                       if (i->opcode() == Opcode::kGather || i->opcode() == Opcode::kDynamicSlice)
                         return false;
                       if (i->opcode() != Opcode::kCall)
                         return IsShortcut(*i) || UnrollsReduction(*i) || supports(*i);
                       return std::all_of(called.begin(), called.end(), [&](const Computation* c) {
                         return MayFuse(*c, supports, budget);
                       });
                     });
}

bool MayFuse(const Computation& computation, const Supports& supports) {
  int64_t budget = kMaxBody;
  return MayFuse(computation, supports, budget);
}

bool IsScalarConstant(const Instruction* i) {
  return i->IsConstant() && i->shape().IsArray() && i->shape().num_elements() == 1;
}

// The same value for every element, or a line of numbers: made again where it is needed.
bool IsGenerated(const Instruction* i) {
  return IsScalarConstant(i) || (i->opcode() == Opcode::kIota && i->shape().rank() == 1) ||
         (i->opcode() == Opcode::kBroadcast && i->operand(0)->shape().num_elements() == 1);
}

// Adds what `i` computes to another computation, calls written out. Null if something in it is no
// part of a kernel.
class CalleeCopier {
 public:
  CalleeCopier(Computation* target, const Supports& supports)
      : target_(target), supports_(supports) {}

  Instruction* Copy(const Computation& source, absl::Span<Instruction* const> arguments) {
    std::unordered_map<const Instruction*, Instruction*> copies;
    std::vector<Instruction*> operands;
    for (const Instruction* i : source.PostOrder()) {
      operands.clear();
      for (const Instruction* operand : i->operands()) operands.push_back(copies.at(operand));
      Instruction* const copy = CopyOne(*i, operands, arguments);
      if (copy == nullptr) return nullptr;
      copies[i] = copy;
    }
    return copies.at(source.root());
  }

 private:
  Instruction* CopyOne(const Instruction& i, absl::Span<Instruction* const> operands,
                       absl::Span<Instruction* const> arguments) {
    switch (i.opcode()) {
      case Opcode::kParameter:
        return arguments[static_cast<std::size_t>(i.parameter_number())];
      case Opcode::kCall:
        return Copy(*i.to_apply(), operands);
      case Opcode::kTuple:
        return target_->Add(Opcode::kTuple, i.shape(), operands);
      case Opcode::kGetTupleElement:
        if (operands[0]->opcode() == Opcode::kTuple)
          return operands[0]->operand(i.attrs_as<hlo::TupleIndexAttrs>().index);
        return target_->AddClone(i, operands);
      default:
        return UnrollsReduction(i) || supports_(i) ? target_->AddClone(i, operands) : nullptr;
    }
  }

  Computation* target_;
  const Supports& supports_;
};

// The elements of a tuple, each by an instruction that `adder` adds.
template <class Adder>
std::vector<Instruction*> ElementsOf(Instruction* tuple, Adder* adder) {
  std::vector<Instruction*> elements;
  for (const Shape& element : tuple->shape().tuple()) {
    const hlo::TupleIndexAttrs index{static_cast<int64_t>(elements.size())};
    elements.push_back(adder->Add(Opcode::kGetTupleElement, element, {tuple}, index));
  }
  return elements;
}

// A copy of the computation in its module, for the loop inside a kernel. Null if something in it is
// no part of one.
Computation* AddCallee(const Computation& source, const Supports& supports) {
  hlo::Module& module = *source.parent();
  Computation* const target = module.AddComputation(source.name());
  Instruction* const state = target->AddParameter(0, source.parameters()[0]->shape());
  Instruction* const root = CalleeCopier(target, supports).Copy(source, {state});
  if (root != nullptr) {
    target->set_root(root->shape().IsTuple() && root->opcode() != Opcode::kTuple
                         ? target->Add(Opcode::kTuple, root->shape(), ElementsOf(root, target))
                         : root);
    UnrollReductionsIn(target);
    target->RemoveDead();
  }
  // A loop's iteration is a plan of elements, without folds over others.
  const auto is_element = [&](const auto& i) {
    return (IsShortcut(*i) && !i->IsConstant()) || (supports(*i) && i->called().empty());
  };
  const auto& all = target->instructions();
  if (root != nullptr && std::all_of(all.begin(), all.end(), is_element)) return target;
  module.RemoveComputation(target);
  return nullptr;
}

class LoopFuser {
 public:
  LoopFuser(Computation* computation, const FusionTarget& target)
      : computation_(computation),
        module_(*computation->parent()),
        target_(target),
        rewriter_(computation) {}

  bool Run() {
    std::vector<Instruction*> loops;
    for (Instruction* i : computation_->PostOrder()) {
      if (i->opcode() == Opcode::kWhile) loops.push_back(i);
    }
    for (Instruction* loop : loops) {
      if (Eligible(*loop)) TryFuse(loop);
    }
    return rewriter_.changed();
  }

 private:
  // What becomes of one loop.
  struct LoopParts {
    Instruction* loop;
    std::vector<Instruction*> before, after;  // in post-order
    std::unordered_set<const Instruction*> taken;
    Shape space;
  };

  bool Eligible(const Instruction& loop) const;
  void NameElements(Instruction* root);
  void TryFuse(Instruction* loop);
  bool Fits(const Instruction* i, const Shape& space) const;
  void TakeBefore(absl::Span<Instruction* const> earlier, LoopParts& parts) const;
  void TakeAfter(absl::Span<Instruction* const> earlier, absl::Span<Instruction* const> later,
                 LoopParts& parts) const;
  LoopParts Choose(Instruction* loop, bool with_neighbours) const;
  Computation* Build(const LoopParts& parts, absl::Span<Computation* const> callees);
  Instruction* Value(Instruction* outside, Computation* body);
  void Replace(const LoopParts& parts, Computation* body);

  Computation* computation_;
  hlo::Module& module_;
  const FusionTarget& target_;
  Rewriter rewriter_;
  std::unordered_map<const Instruction*, Instruction*> inside_;
  std::vector<Instruction*> parameters_, results_;  // outside
};

bool LoopFuser::Eligible(const Instruction& loop) const {
  return IsFlat(loop.shape()) && !loop.HasSideEffect() && loop.control_predecessors().empty() &&
         std::all_of(
             loop.users().begin(), loop.users().end(),
             [](const Instruction* user) { return user->opcode() == Opcode::kGetTupleElement; }) &&
         MayFuse(*loop.called()[0], target_.supports) &&
         MayFuse(*loop.called()[1], target_.supports);
}

// Makes a tuple of the loop's elements the root.
void LoopFuser::NameElements(Instruction* root) {
  rewriter_.set_origin(root);
  computation_->set_root(
      rewriter_.Add(Opcode::kTuple, root->shape(), ElementsOf(root, &rewriter_)));
}

// Whether the instruction can be computed in the loop's kernel: it is elementwise, of the kernel's
// space or a scalar.
bool LoopFuser::Fits(const Instruction* i, const Shape& space) const {
  return !rewriter_.IsErased(i) && i->IsElementwise() && target_.supports(*i) &&
         !i->shape().has_layout() &&
         (SameDims(i->shape(), space) || i->shape().num_elements() == 1);
}

// Takes in what only the loop needs. `earlier`: what is computed before the loop.
void LoopFuser::TakeBefore(absl::Span<Instruction* const> earlier, LoopParts& parts) const {
  const auto is_taken = [&](const Instruction* i) { return parts.taken.contains(i); };
  for (Instruction* i : std::ranges::reverse_view(earlier)) {
    if (parts.before.size() > kMaxAround) return;
    if (!Fits(i, parts.space) || i->IsRoot() || i->users().empty() ||
        !std::all_of(i->users().begin(), i->users().end(), is_taken))
      continue;
    parts.taken.insert(i);
    parts.before.insert(parts.before.begin(), i);
  }
}

// Takes in what comes of the loop, and else only of constants and of arrays that are there before it.
void LoopFuser::TakeAfter(absl::Span<Instruction* const> earlier,
                          absl::Span<Instruction* const> later, LoopParts& parts) const {
  const std::unordered_set<const Instruction*> known(earlier.begin(), earlier.end());
  const auto is_result = [&](const Instruction* i) {
    return i->opcode() == Opcode::kGetTupleElement && i->operand(0) == parts.loop;
  };
  const auto comes_of_loop = [&](const Instruction* i) {
    return is_result(i) ||
           std::find(parts.after.begin(), parts.after.end(), i) != parts.after.end();
  };
  const auto is_value = [&](const Instruction* i) {
    return is_result(i) || parts.taken.contains(i) || IsScalarConstant(i) ||
           (i->opcode() == Opcode::kBroadcast && IsScalarConstant(i->operand(0))) ||
           (known.contains(i) && !i->shape().IsTuple() && SameDims(i->shape(), parts.space));
  };
  for (Instruction* i : later) {
    if (parts.after.size() > kMaxAround) return;
    const auto& operands = i->operands();
    if (!Fits(i, parts.space) || !SameDims(i->shape(), parts.space) ||
        std::none_of(operands.begin(), operands.end(), comes_of_loop) ||
        !std::all_of(operands.begin(), operands.end(), is_value))
      continue;
    parts.taken.insert(i);
    parts.after.push_back(i);
  }
}

// What becomes one kernel: the loop, and with its neighbours the elementwise values around it.
LoopFuser::LoopParts LoopFuser::Choose(Instruction* loop, bool with_neighbours) const {
  LoopParts parts{.loop = loop, .before = {}, .after = {}, .taken = {loop}, .space = {}};
  parts.space = loop->shape().tuple()[0];
  for (const Shape& leaf : loop->shape().tuple()) {
    if (leaf.num_elements() > parts.space.num_elements()) parts.space = leaf;
  }
  const Instruction* state = loop->operand(0);
  if (state->opcode() == Opcode::kTuple && state->users().size() == 1) parts.taken.insert(state);
  if (!with_neighbours) return parts;
  const std::vector<Instruction*> order = computation_->PostOrder();
  const auto at =
      static_cast<std::size_t>(std::find(order.begin(), order.end(), loop) - order.begin());
  const absl::Span<Instruction* const> all(order), earlier = all.first(at);
  TakeBefore(earlier, parts);
  TakeAfter(earlier, all.subspan(at + 1), parts);
  return parts;
}

// Inside the body: what was made there, a copy of what is cheap, or a parameter.
Instruction* LoopFuser::Value(Instruction* outside, Computation* body) {
  if (const auto it = inside_.find(outside); it != inside_.end()) return it->second;
  Instruction* value = nullptr;
  if (outside->opcode() == Opcode::kGetTupleElement && inside_.contains(outside->operand(0))) {
    value = body->AddClone(*outside, {inside_.at(outside->operand(0))});
  } else if (IsGenerated(outside) && target_.supports(*outside)) {
    std::vector<Instruction*> operands;
    for (Instruction* operand : outside->operands()) operands.push_back(Value(operand, body));
    value = body->AddClone(*outside, operands);
  } else {
    value = body->AddParameter(static_cast<int64_t>(parameters_.size()), outside->shape());
    parameters_.push_back(outside);
  }
  return inside_[outside] = value;
}

Computation* LoopFuser::Build(const LoopParts& parts, absl::Span<Computation* const> callees) {
  inside_.clear();
  parameters_.clear();
  results_.clear();
  Computation* body = module_.AddComputation("fused_loop");
  body->set_is_fusion(true);
  const auto clone = [&](Instruction* i) {
    std::vector<Instruction*> operands;
    for (Instruction* operand : i->operands()) operands.push_back(Value(operand, body));
    inside_[i] = body->AddClone(*i, operands);
  };
  for (Instruction* i : parts.before) clone(i);
  std::vector<Instruction*> state;
  Instruction* const outside = parts.loop->operand(0);
  rewriter_.set_origin(parts.loop);
  const std::vector<Instruction*> leaves =
      outside->opcode() == Opcode::kTuple
          ? std::vector<Instruction*>(outside->operands().begin(), outside->operands().end())
          : ElementsOf(outside, &rewriter_);
  for (Instruction* leaf : leaves) state.push_back(Value(leaf, body));
  Instruction* tuple = body->Add(Opcode::kTuple, parts.loop->shape(), state);
  inside_[parts.loop] =
      body->Add(Opcode::kWhile, parts.loop->shape(), {tuple}, hlo::NoAttrs{}, callees);
  for (Instruction* i : parts.after) clone(i);
  const auto is_needed = [&](const Instruction* i) {
    return i->IsRoot() || std::any_of(i->users().begin(), i->users().end(), [&](const auto* user) {
             return !parts.taken.contains(user);
           });
  };
  for (Instruction* user : parts.loop->users()) {
    if (is_needed(user)) results_.push_back(user);
  }
  for (Instruction* i : parts.after) {
    if (is_needed(i)) results_.push_back(i);
  }
  std::vector<Instruction*> roots;
  std::vector<Shape> shapes;
  for (Instruction* result : results_) {
    roots.push_back(Value(result, body));
    shapes.push_back(result->shape());
  }
  body->set_root(roots.size() == 1
                     ? roots[0]
                     : body->Add(Opcode::kTuple, Shape::Tuple(std::move(shapes)), roots));
  return body;
}

void LoopFuser::Replace(const LoopParts& parts, Computation* body) {
  rewriter_.set_origin(parts.loop);
  Instruction* fusion = rewriter_.Add(Opcode::kFusion, body->root()->shape(), parameters_,
                                      hlo::FusionAttrs{hlo::FusionKind::kLoop}, {body});
  if (results_.size() == 1) return rewriter_.Replace(results_[0], fusion);
  for (std::size_t o = 0; o < results_.size(); ++o) {
    Instruction* element = rewriter_.Add(Opcode::kGetTupleElement, results_[o]->shape(), {fusion},
                                         hlo::TupleIndexAttrs{static_cast<int64_t>(o)});
    rewriter_.Replace(results_[o], element);
  }
}

void LoopFuser::TryFuse(Instruction* loop) {
  std::vector<Computation*> callees;
  const bool is_root = loop->IsRoot();
  const auto give_up = [&] {
    if (is_root) computation_->set_root(loop);
    for (Computation* callee : callees) module_.RemoveComputation(callee);
  };
  for (const Computation* callee : loop->called()) {
    Computation* const copy = AddCallee(*callee, target_.supports);
    if (copy == nullptr) return give_up();
    callees.push_back(copy);
  }
  if (is_root) NameElements(loop);
  for (const bool with_neighbours : {true, false}) {
    const LoopParts parts = Choose(loop, with_neighbours);
    Computation* body = Build(parts, callees);
    if (!results_.empty() && target_.supports_loop(*body)) {
      return Replace(parts, body);
    }
    module_.RemoveComputation(body);
  }
  give_up();
}

}  // namespace

absl::StatusOr<bool> FuseLoops::Run(hlo::Module& module) {
  if (!target_.supports_loop) return false;
  return RewriteScheduled(
      module, [&](Computation* computation) { return LoopFuser(computation, target_).Run(); });
}

}  // namespace lazuli::lowering
