#include "backend/cpu/runtime/sort_order.h"

#include <unordered_map>

#include "absl/container/flat_hash_set.h"

namespace lazuli::cpu {
namespace {

using hlo::ComparisonDirection;
using hlo::ComparisonType;
using hlo::Instruction;
using hlo::Opcode;

// Comparators are small; larger ones are not looked at, and recursion here is bounded by it.
constexpr int64_t kMaxInstructions = 256;

// Whether `a` makes of the left element what `b` makes of the right one, of one operand.
class Mirror {
 public:
  bool Match(const Instruction* a, const Instruction* b) {
    if (a == b) return a->IsConstant();
    if (!seen_.emplace(a, b).second) return true;
    if (a->opcode() != b->opcode() || a->shape() != b->shape()) return false;
    if (a->opcode() == Opcode::kParameter) return MatchParameters(*a, *b);
    const bool plain = a->IsElementwise() && a->called().empty() && a->shape().IsScalar();
    if ((!plain && !a->IsConstant()) || a->attrs() != b->attrs()) return false;
    for (int64_t i = 0; i < a->operand_count(); ++i) {
      if (!Match(a->operand(i), b->operand(i))) return false;
    }
    return true;
  }
  // -1: a constant, which is no key.
  int64_t operand() const { return operand_; }

 private:
  bool MatchParameters(const Instruction& a, const Instruction& b) {
    const int64_t left = a.parameter_number();
    if (left % 2 != 0 || b.parameter_number() != left + 1) return false;
    if (operand_ >= 0 && operand_ != left / 2) return false;
    operand_ = left / 2;
    return true;
  }
  int64_t operand_ = -1;
  absl::flat_hash_set<std::pair<const Instruction*, const Instruction*>> seen_;
};

Instruction* CopyExpression(const Instruction* i, hlo::Computation& to,
                            std::unordered_map<const Instruction*, Instruction*>& copies) {
  if (const auto known = copies.find(i); known != copies.end()) return known->second;
  Instruction* copy;
  if (i->opcode() == Opcode::kParameter) {
    copy = to.AddParameter(0, i->shape());
  } else {
    std::vector<Instruction*> operands;
    for (const Instruction* operand : i->operands())
      operands.push_back(CopyExpression(operand, to, copies));
    copy = to.Add(i->opcode(), i->shape(), operands, i->attrs());
  }
  return copies[i] = copy;
}

std::unique_ptr<hlo::Module> ExpressionOf(const Instruction* key) {
  if (key->opcode() == Opcode::kParameter) return nullptr;
  auto module = std::make_unique<hlo::Module>("key");
  hlo::Computation* entry = module->AddComputation("key");
  std::unordered_map<const Instruction*, Instruction*> copies;
  entry->set_root(CopyExpression(key, *entry, copies));
  module->set_entry(entry);
  return module;
}

const hlo::CompareAttrs* CompareOf(const Instruction* i) {
  return i->opcode() == Opcode::kCompare ? &i->attrs_as<hlo::CompareAttrs>() : nullptr;
}

bool MatchKey(const Instruction* less, std::vector<SortKey>* keys) {
  const hlo::CompareAttrs* attrs = CompareOf(less);
  if (attrs == nullptr || (attrs->direction != ComparisonDirection::kLt &&
                           attrs->direction != ComparisonDirection::kGt))
    return false;
  bool descending = attrs->direction == ComparisonDirection::kGt;
  const Instruction* left = less->operand(0);
  Mirror mirror, swapped;
  if (!mirror.Match(left, less->operand(1))) {
    left = less->operand(1);
    if (!swapped.Match(left, less->operand(0))) return false;
    descending = !descending;
    mirror = swapped;
  }
  if (mirror.operand() < 0) return false;
  keys->push_back({.operand = mirror.operand(),
                   .dtype = left->shape().dtype(),
                   .descending = descending,
                   .total_order = attrs->type == ComparisonType::kTotalOrder,
                   .expression = ExpressionOf(left)});
  return true;
}

// Whether `equal` says that the keys which `less` compares are equal.
bool IsEqualityOf(const Instruction* equal, const Instruction* less) {
  const hlo::CompareAttrs* a = CompareOf(equal);
  const hlo::CompareAttrs* b = CompareOf(less);
  if (a == nullptr || b == nullptr || a->direction != ComparisonDirection::kEq ||
      a->type != b->type)
    return false;
  return (equal->operand(0) == less->operand(0) && equal->operand(1) == less->operand(1)) ||
         (equal->operand(0) == less->operand(1) && equal->operand(1) == less->operand(0));
}

bool MatchLess(const Instruction* less, std::vector<SortKey>* keys);

// less || (equal && rest), in any order
bool MatchOr(const Instruction* root, std::vector<SortKey>* keys) {
  for (int64_t first : {0, 1}) {
    const Instruction* less = root->operand(first);
    const Instruction* both = root->operand(1 - first);
    if (CompareOf(less) == nullptr || both->opcode() != Opcode::kAnd) continue;
    for (int64_t second : {0, 1}) {
      if (!IsEqualityOf(both->operand(second), less)) continue;
      return MatchKey(less, keys) && MatchLess(both->operand(1 - second), keys);
    }
  }
  return false;
}

bool MatchLess(const Instruction* less, std::vector<SortKey>* keys) {
  if (less->opcode() == Opcode::kOr) return MatchOr(less, keys);
  if (less->opcode() == Opcode::kSelect)  // equal ? rest : less
    return IsEqualityOf(less->operand(0), less->operand(2)) && MatchKey(less->operand(2), keys) &&
           MatchLess(less->operand(1), keys);
  return MatchKey(less, keys);
}

// The operand of a module's `x != x`; null for any other instruction.
const Instruction* NaNTested(const Instruction* i) {
  const hlo::CompareAttrs* attrs = CompareOf(i);
  const bool tests = attrs != nullptr && attrs->direction == ComparisonDirection::kNe &&
                     i->operand(0) == i->operand(1) &&
                     i->operand(0)->opcode() == Opcode::kParameter;
  return tests ? i->operand(0) : nullptr;
}

// Whether the first key is `x != x` as a number, and the second `x != x ? constant : x`.
bool PutNaNLast(const SortKey& first, const SortKey& second) {
  if (first.operand != second.operand || first.descending != second.descending ||
      first.expression == nullptr || second.expression == nullptr || second.total_order)
    return false;
  const Instruction *flag = first.expression->entry()->root(),
                    *value = second.expression->entry()->root();
  return flag->opcode() == Opcode::kConvert && ir::IsIntegral(flag->shape().dtype()) &&
         NaNTested(flag->operand(0)) != nullptr && value->opcode() == Opcode::kSelect &&
         NaNTested(value->operand(0)) == value->operand(2) && value->operand(1)->IsConstant();
}

// Floats as PyTorch and NumPy sort them: those two keys are one.
void MergeNaNKeys(std::vector<SortKey>& keys) {
  for (std::size_t i = 0; i + 1 < keys.size(); ++i) {
    if (!PutNaNLast(keys[i], keys[i + 1])) continue;
    keys[i] = {.operand = keys[i].operand,
               .dtype = keys[i + 1].dtype,
               .descending = keys[i].descending,
               .nan_is_largest = true,
               .expression = nullptr};
    keys.erase(keys.begin() + static_cast<std::ptrdiff_t>(i) + 1);
  }
}

}  // namespace

std::optional<std::vector<SortKey>> MatchSortOrder(const hlo::Computation& comparator) {
  std::vector<SortKey> keys;
  if (comparator.instruction_count() > kMaxInstructions || !MatchLess(comparator.root(), &keys))
    return std::nullopt;
  MergeNaNKeys(keys);
  return keys;
}

}  // namespace lazuli::cpu
