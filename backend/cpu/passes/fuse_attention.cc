#include "backend/cpu/passes/fuse_attention.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "backend/cpu/passes/attention_pattern.h"
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
      for (Instruction* operand : i->operands()) {
        if (clones_.contains(operand)) continue;
        stack.push_back(operand);
        ready = false;
      }
      if (!ready) continue;
      stack.pop_back();
      if (clones_.contains(i)) continue;
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
      leaves.push_back(ViewOf(step.array, /*scales=*/false).base);
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

void FusePattern(lowering::Rewriter& rewriter, const AttentionPattern& pattern) {
  std::vector<Instruction*> leaves = LeavesOf(pattern), roots{pattern.result.dot};
  std::vector<Instruction*> slopes, slope_leaves = leaves;
  if (pattern.has_gradient()) {
    roots.push_back(pattern.largest);
    roots.push_back(pattern.divisor);
    slope_leaves.insert(slope_leaves.end(),
                        {pattern.dresult.base, pattern.largest, pattern.divisor});
    for (const PatternResult* made : {&pattern.dquery, &pattern.dkey, &pattern.dvalue})
      if (made->dot != nullptr) slopes.push_back(made->dot);
  }
  if (DependsOn(leaves, roots) || DependsOn(slope_leaves, slopes)) return;
  // The gradient first: it reads what the other fusion replaces.
  if (!slopes.empty()) FuseRoots(rewriter, slopes, slope_leaves);
  FuseRoots(rewriter, roots, leaves);
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
  if (pattern.has_gradient()) return pattern.rows() * pattern.keys() >= kScoresOfGradient;
  return pattern.rows() <= kFewRows || pattern.rows() * pattern.keys() >= kScores;
}

absl::StatusOr<bool> FuseIn(hlo::Computation* computation) {
  lowering::Rewriter rewriter(computation);
  for (Instruction* i : computation->PostOrder()) {
    if (i->opcode() != Opcode::kDivide || rewriter.IsErased(i)) continue;
    const auto pattern = MatchAttention(i, /*is_body=*/false);
    if (pattern && pattern->result.dot != nullptr && IsWorthwhile(*pattern) && IsClosed(*pattern))
      FusePattern(rewriter, *pattern);
  }
  return rewriter.changed();
}

}  // namespace

absl::StatusOr<bool> FuseAttention::Run(hlo::Module& module) {
  return lowering::RewriteScheduled(module, FuseIn);
}

}  // namespace lazuli::cpu
