#include "lowering/passes/join_products.h"

#include <algorithm>
#include <ranges>
#include <vector>

#include "absl/container/flat_hash_set.h"

#include "lowering/passes/rewriter.h"
#include "lowering/passes/scheduled.h"

namespace lazuli::lowering {
namespace {

using hlo::Instruction;
using hlo::Opcode;

constexpr std::size_t kLeastTerms = 4;

bool IsSum(const Instruction& i) {
  const DType dtype = i.shape().dtype();
  return i.opcode() == Opcode::kAdd &&
         (dtype == DType::kF32 || dtype == DType::kF64 || ir::IsIntegral(dtype));
}

// A part of the sum `user` that nothing else needs.
bool IsOnlyFor(const Instruction& i, const Instruction& user) {
  return i.users().size() == 1 && i.users()[0] == &user && !i.IsRoot() &&
         i.control_predecessors().empty();
}

// A dot whose factors together have fewer elements than it has.
bool IsProduct(const Instruction& i) {
  if (i.opcode() != Opcode::kDot) return false;
  const auto& attrs = i.attrs_as<hlo::DotAttrs>();
  const Shape &x = i.operand(0)->shape(), &y = i.operand(1)->shape();
  return attrs.lhs_contracting_dims.size() == 1 && x.dtype() == i.shape().dtype() &&
         y.dtype() == i.shape().dtype() &&
         x.num_elements() + y.num_elements() < i.shape().num_elements();
}

bool AreAlike(const Instruction& a, const Instruction& b) {
  return a.attrs_as<hlo::DotAttrs>() == b.attrs_as<hlo::DotAttrs>() &&
         a.operand(0)->shape() == b.operand(0)->shape() &&
         a.operand(1)->shape() == b.operand(1)->shape();
}

// The terms of a sum, first to last.
class Terms {
 public:
  explicit Terms(Instruction* sum) {
    struct Part {
      Instruction* value;
      const Instruction* user;
    };
    std::vector<Part> pending{{sum, nullptr}};
    while (!pending.empty()) {
      const auto [i, user] = pending.back();
      pending.pop_back();
      if (user != nullptr && !(IsSum(*i) && IsOnlyFor(*i, *user))) {
        Take(i, *user);
        continue;
      }
      sums_.insert(i);
      for (Instruction* operand : std::views::reverse(i->operands()))
        pending.push_back({operand, i});
    }
  }

  bool HasProducts() const {
    return std::any_of(groups_.begin(), groups_.end(),
                       [](const auto& group) { return group.size() >= kLeastTerms; });
  }
  const absl::flat_hash_set<const Instruction*>& sums() const { return sums_; }

  Instruction* Join(Rewriter& rewriter) const {
    std::vector<Instruction*> terms = others_;
    for (const std::vector<Instruction*>& group : groups_) {
      if (group.size() < kLeastTerms)
        terms.insert(terms.end(), group.begin(), group.end());
      else
        terms.push_back(JoinGroup(group, rewriter));
    }
    Instruction* sum = terms[0];
    for (Instruction* term : std::views::drop(terms, 1))
      sum = rewriter.Add(Opcode::kAdd, sum->shape(), {sum, term});
    return sum;
  }

 private:
  void Take(Instruction* term, const Instruction& user) {
    if (!IsProduct(*term) || !IsOnlyFor(*term, user)) return others_.push_back(term);
    const auto alike = std::find_if(groups_.begin(), groups_.end(), [&](const auto& group) {
      return AreAlike(*group.front(), *term);
    });
    if (alike == groups_.end())
      groups_.push_back({term});
    else
      alike->push_back(term);
  }

  static Instruction* JoinGroup(const std::vector<Instruction*>& group, Rewriter& rewriter) {
    const Instruction& first = *group.front();
    const auto& attrs = first.attrs_as<hlo::DotAttrs>();
    rewriter.set_origin(&first);
    const auto all = [&](int64_t side, int64_t d) {
      std::vector<Instruction*> factors;
      for (const Instruction* product : group) factors.push_back(product->operand(side));
      const Shape& one = factors.front()->shape();
      Dims dims(one.dims().begin(), one.dims().end());
      dims[static_cast<std::size_t>(d)] *= static_cast<int64_t>(group.size());
      return rewriter.Add(Opcode::kConcatenate, Shape(one.dtype(), dims), factors,
                          hlo::DimensionsAttrs{{d}});
    };
    return rewriter.AddClone(
        first, {all(0, attrs.lhs_contracting_dims[0]), all(1, attrs.rhs_contracting_dims[0])});
  }

  std::vector<Instruction*> others_;
  std::vector<std::vector<Instruction*>> groups_;  // of products that are alike
  absl::flat_hash_set<const Instruction*> sums_;
};

absl::StatusOr<bool> JoinProductsIn(hlo::Computation* computation) {
  Rewriter rewriter(computation);
  absl::flat_hash_set<const Instruction*> seen;  // parts of larger sums
  const std::vector<Instruction*> order = computation->PostOrder();
  for (Instruction* i : std::views::reverse(order)) {
    if (rewriter.IsErased(i) || !IsSum(*i) || seen.contains(i)) continue;
    const Terms terms(i);
    seen.insert(terms.sums().begin(), terms.sums().end());
    if (terms.HasProducts()) rewriter.Replace(i, terms.Join(rewriter));
  }
  return rewriter.changed();
}

}  // namespace

absl::StatusOr<bool> JoinProducts::Run(hlo::Module& module) {
  return RewriteScheduled(module, JoinProductsIn);
}

}  // namespace lazuli::lowering
