#include "backend/cpu/passes/fuse_attention.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backend/cpu/passes/attention_pattern.h"
#include "backend/cpu/passes/strided_view.h"
#include "backend/cpu/passes/widened_copy.h"
#include "ir/hlo/composite.h"
#include "ir/support/status.h"
#include "lowering/passes/dce.h"
#include "lowering/passes/inline_calls.h"
#include "lowering/passes/rewriter.h"
#include "lowering/passes/scheduled.h"

namespace lazuli::cpu {
namespace {

using hlo::Instruction;
using hlo::Opcode;

// Copies what `roots` are computed from, down to the leaves, into the body of a fusion.
class BodyOfRoots {
 public:
  BodyOfRoots(hlo::Module& module, const std::vector<Instruction*>& leaves)
      : body_(module.AddComputation("attention")) {
    body_->set_is_fusion(true);
    for (Instruction* leaf : leaves) {
      if (clones_.contains(leaf)) continue;
      clones_[leaf] = body_->AddParameter(static_cast<int64_t>(operands_.size()), leaf->shape());
      operands_.push_back(leaf);
    }
  }

  Instruction* CloneOf(Instruction* wanted) {
    std::vector<Instruction*> stack{wanted};
    while (!stack.empty()) {
      Instruction* const i = stack.back();
      bool ready = true;
      if (clones_.contains(i)) {
        stack.pop_back();
        continue;
      }
      for (Instruction* operand : i->operands()) {
        if (clones_.contains(operand)) continue;
        stack.push_back(operand);
        ready = false;
      }
      if (!ready) continue;
      stack.pop_back();
      std::vector<Instruction*> operands;
      for (Instruction* operand : i->operands()) operands.push_back(clones_.at(operand));
      clones_[i] = body_->AddClone(*i, operands);
    }
    return clones_.at(wanted);
  }

  hlo::Computation* body() { return body_; }
  const std::vector<Instruction*>& operands() const { return operands_; }

 private:
  hlo::Computation* body_;
  std::unordered_map<const Instruction*, Instruction*> clones_;
  std::vector<Instruction*> operands_;
};

// Replaces the roots by the results of a fusion.
void FuseRoots(lowering::Rewriter& rewriter, const std::vector<Instruction*>& roots,
               const std::vector<Instruction*>& leaves) {
  rewriter.set_origin(roots[0]);
  BodyOfRoots builder(*rewriter.computation()->parent(), leaves);
  std::vector<Instruction*> clones;
  std::vector<Shape> shapes;
  for (Instruction* root : roots) {
    clones.push_back(builder.CloneOf(root));
    shapes.push_back(root->shape());
  }
  hlo::Computation* const body = builder.body();
  body->set_root(roots.size() == 1
                     ? clones[0]
                     : body->Add(Opcode::kTuple, Shape::Tuple(std::move(shapes)), clones));
  Instruction* const fusion =
      rewriter.Add(Opcode::kFusion, body->root()->shape(), builder.operands(),
                   hlo::FusionAttrs{hlo::FusionKind::kCustom}, {body});
  if (roots.size() == 1) return rewriter.Replace(roots[0], fusion);
  for (std::size_t r = 0; r < roots.size(); ++r) {
    Instruction* const element = rewriter.Add(Opcode::kGetTupleElement, roots[r]->shape(), {fusion},
                                              hlo::TupleIndexAttrs{static_cast<int64_t>(r)});
    rewriter.Replace(roots[r], element);
  }
}

std::vector<Instruction*> LeavesOf(const AttentionPattern& pattern) {
  std::vector<Instruction*> leaves{pattern.query.base, pattern.key.base, pattern.value.base};
  for (const PatternStep& step : pattern.steps) {
    if (step.array != nullptr && !CausalShift(pattern, step))
      leaves.push_back(ViewOf(step.array, ViewThrough::kWidening).base);
  }
  return leaves;
}

// Whether a leaf is computed from what the fusion would give.
bool DependsOn(const std::vector<Instruction*>& leaves, const std::vector<Instruction*>& roots) {
  std::unordered_set<const Instruction*> seen(leaves.begin(), leaves.end());
  std::vector<const Instruction*> stack(leaves.begin(), leaves.end());
  while (!stack.empty()) {
    const Instruction* const i = stack.back();
    stack.pop_back();
    if (std::find(roots.begin(), roots.end(), i) != roots.end()) return true;
    for (const Instruction* operand : i->operands())
      if (seen.insert(operand).second) stack.push_back(operand);
  }
  return false;
}

// Whether anything but the pattern reads one of its instructions.
bool IsRead(const AttentionPattern& pattern, const Instruction* i) {
  return std::any_of(i->users().begin(), i->users().end(), [&](const Instruction* user) {
    return std::find(pattern.inside.begin(), pattern.inside.end(), user) == pattern.inside.end();
  });
}

void FusePattern(lowering::Rewriter& rewriter, const AttentionPattern& pattern) {
  std::vector<Instruction*> leaves = LeavesOf(pattern), roots, slopes, slope_leaves = leaves;
  if (pattern.result.dot != nullptr) {
    roots.push_back(pattern.result.made);
    for (Instruction* of_rows : {pattern.largest, pattern.divisor})
      if (pattern.has_gradient() || IsRead(pattern, of_rows)) roots.push_back(of_rows);
  }
  if (pattern.has_gradient()) {
    slope_leaves.insert(slope_leaves.end(),
                        {pattern.dresult.base, pattern.largest, pattern.divisor});
    for (const PatternResult* made : {&pattern.dquery, &pattern.dkey, &pattern.dvalue})
      if (made->dot != nullptr) slopes.push_back(made->made);
  }
  if (DependsOn(leaves, roots) || DependsOn(slope_leaves, slopes)) return;
  // The gradient first: it reads what the other fusion replaces.
  if (!slopes.empty()) FuseRoots(rewriter, slopes, slope_leaves);
  if (!roots.empty()) FuseRoots(rewriter, roots, leaves);
}

// Whether the kernel is faster than two products and loops between them, four more in a gradient,
// which it computes after a product that these need not. Times of one thread, new over old, of
// AVX-512 and 2 MiB of second cache (`./lz bench kernels` has rows of these kinds):
//
//   rows x keys    forward    with its gradient
//   32 x 32        .7 to 1.2  1.1 to 1.7
//   64 x 64        .7 to 1.4  1.1 to 1.4
//   128 x 128      .6 to 1    .7 to 1.2
//   1024 x 1024    .7         .8
//
// Causal ones are the lower bounds: keys that nobody sees cost nothing. Few queries read keys and
// values where they lie: 0.1 to 0.4.
bool IsWorthwhile(const AttentionPattern& pattern) {
  constexpr int64_t kFewRows = 4, kScores = 96 * 96, kScoresOfGradient = 128 * 128;
  const bool is_pair = pattern.has_gradient() && pattern.result.dot != nullptr;
  if (is_pair) return pattern.rows() * pattern.keys() >= kScoresOfGradient;
  return (!pattern.has_gradient() && pattern.rows() <= kFewRows) ||
         pattern.rows() * pattern.keys() >= kScores;
}

// The pattern around `weights` if it becomes a fusion; of a composite's body if `is_body`.
std::optional<AttentionPattern> FusiblePattern(Instruction* weights, bool is_body) {
  if (weights->opcode() != Opcode::kDivide) return std::nullopt;
  auto pattern = MatchAttention(weights, is_body);
  const bool has_sums = pattern && (pattern->result.dot != nullptr ||
                                    (is_body && pattern->largest->opcode() == Opcode::kParameter));
  if (!has_sums || !IsWorthwhile(*pattern) || !IsClosed(*pattern)) return std::nullopt;
  return pattern;
}

bool FuseIn(hlo::Computation* computation, bool is_body) {
  lowering::Rewriter rewriter(computation);
  for (Instruction* i : computation->PostOrder()) {
    if (rewriter.IsErased(i)) continue;
    if (const auto pattern = FusiblePattern(i, is_body)) FusePattern(rewriter, *pattern);
  }
  return rewriter.changed();
}

// What took an element of the tuple takes what the tuple is made of.
void ReplaceElements(lowering::Rewriter& rewriter, const Instruction* tuple) {
  if (tuple->opcode() != Opcode::kTuple) return;
  const std::vector<Instruction*> users(tuple->users().begin(), tuple->users().end());
  for (Instruction* user : users) {
    if (user->opcode() == Opcode::kGetTupleElement)
      rewriter.Replace(user, tuple->operand(user->attrs_as<hlo::TupleIndexAttrs>().index));
  }
}

bool IsAttention(const Instruction& i) {
  return i.opcode() == Opcode::kFusion &&
         i.attrs_as<hlo::FusionAttrs>().kind == hlo::FusionKind::kCustom;
}
bool HasAttention(const hlo::Computation& body) {
  const auto& all = body.instructions();
  return std::any_of(all.begin(), all.end(), [](const auto& i) { return IsAttention(*i); });
}

bool BecomesFusion(const hlo::Computation& body) {
  const auto& all = body.instructions();
  return std::any_of(all.begin(), all.end(), [](const auto& i) {
    return FusiblePattern(i.get(), /*is_body=*/true).has_value();
  });
}

// The call, of a body in f32 if it was in 16-bit floats: that is what the kernel computes.
Instruction* WithWideBody(lowering::Rewriter& rewriter, Instruction* call) {
  hlo::Computation* const wide = WidenedCopy(*call->to_apply());
  if (wide == nullptr) return call;
  rewriter.set_origin(call);
  Instruction* const made =
      rewriter.Add(Opcode::kCall, call->shape(), call->operands(), hlo::NoAttrs{}, {wide});
  rewriter.Replace(call, made);
  return made;
}

// Fuses what the calls' bodies compute, of which several may share one, and inlines them.
bool FuseCalls(hlo::Computation* computation) {
  lowering::Rewriter rewriter(computation);
  for (Instruction* i : computation->PostOrder()) {
    if (rewriter.IsErased(i) || !hlo::IsComposite(*i)) continue;
    Instruction* call = i;
    if (IsAttentionCall(*i)) {
      call = WithWideBody(rewriter, i);
      FuseIn(call->to_apply(), /*is_body=*/true);
    }
    if (!HasAttention(*call->to_apply())) continue;
    ReplaceElements(rewriter, lowering::InlineCall(rewriter, call));
  }
  return rewriter.changed();
}

// Whether the kernel computes the same bits where it reads these arrays as where it reads those.
bool ReadsAlike(const AttentionPattern& x, const AttentionPattern& y) {
  const auto alike = [](const PatternMatrix& a, const PatternMatrix& b) {
    return a.column == b.column && (a.column == 1 || a.row == b.row);
  };
  return x.steps.size() == y.steps.size() && alike(x.key, y.key) && alike(x.value, y.value);
}

// Has a fusion read arrays where they lie, instead of copies in another order.
void ReadThroughViews(lowering::Rewriter& rewriter, Instruction* fusion) {
  std::vector<Instruction*> leaves;
  for (Instruction* operand : fusion->operands())
    leaves.push_back(ViewOf(operand, ViewThrough::kMoves).base);
  if (std::equal(leaves.begin(), leaves.end(), fusion->operands().begin())) return;
  hlo::Module& module = *rewriter.computation()->parent();
  BodyOfRoots builder(module, leaves);
  std::unordered_map<const Instruction*, Instruction*> copies;
  for (const Instruction* i : fusion->to_apply()->PostOrder()) {
    std::vector<Instruction*> operands;
    for (const Instruction* operand : i->operands()) operands.push_back(copies.at(operand));
    copies[i] = i->opcode() == Opcode::kParameter
                    ? builder.CloneOf(fusion->operand(i->parameter_number()))
                    : builder.body()->AddClone(*i, operands);
  }
  builder.body()->set_root(copies.at(fusion->to_apply()->root()));
  const auto before = MatchAttentionBody(*fusion->to_apply()),
             after = MatchAttentionBody(*builder.body());
  if (!before || !after || !ReadsAlike(*before, *after))
    return module.RemoveComputation(builder.body());
  rewriter.set_origin(fusion);
  rewriter.Replace(fusion,
                   rewriter.Add(Opcode::kFusion, fusion->shape(), builder.operands(),
                                hlo::FusionAttrs{hlo::FusionKind::kCustom}, {builder.body()}));
}

void ReadThroughViewsIn(hlo::Computation* computation) {
  lowering::Rewriter rewriter(computation);
  for (Instruction* i : computation->PostOrder()) {
    if (IsAttention(*i)) ReadThroughViews(rewriter, i);
  }
}

}  // namespace

bool IsAttentionCall(const Instruction& call) {
  // A composite that is more than attention gains more from what is around it.
  constexpr int64_t kMostInstructions = 100;
  if (!hlo::IsComposite(call) || call.to_apply()->instruction_count() > kMostInstructions)
    return false;
  hlo::Computation* const wide = WidenedCopy(*call.to_apply());
  if (wide == nullptr) return BecomesFusion(*call.to_apply());
  const bool becomes = BecomesFusion(*wide);
  wide->parent()->RemoveComputation(wide);
  return becomes;
}

absl::StatusOr<bool> FuseAttention::Run(hlo::Module& module) {
  const auto fuse = [this](hlo::Computation* computation) {
    bool changed = FuseCalls(computation);
    if (is_whole_module_) changed |= FuseIn(computation, /*is_body=*/false);
    if (changed) ReadThroughViewsIn(computation);
    return absl::StatusOr<bool>(changed);
  };
  LAZULI_ASSIGN_OR_RETURN(const bool changed, lowering::RewriteScheduled(module, fuse));
  if (changed) LAZULI_RETURN_IF_ERROR(lowering::Dce().Run(module).status());
  return changed;
}

}  // namespace lazuli::cpu
