#include "backend/npu/compiler/region.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "ir/hlo/monoid.h"
#include "ir/support/status.h"

namespace lazuli::npu {
namespace {

using hlo::Opcode;

bool IsParameter(const hlo::Instruction& i, int64_t number) {
  return i.opcode() == Opcode::kParameter && i.parameter_number() == number;
}

// A constant's value, which is the same for every element.
ValueNodes ScalarValue(const Literal& literal, Expression& e) {
  const DType dtype = literal.shape().dtype();
  uint64_t bits = 0;
  std::memcpy(&bits, literal.raw(), static_cast<std::size_t>(ByteWidth(dtype)));
  if (IsWide(dtype))
    return {e.Literal(static_cast<uint32_t>(bits), kUnsigned),
            e.Literal(static_cast<uint32_t>(bits >> 32), kUnsigned)};
  if (dtype == DType::kBF16) return {e.Literal(static_cast<uint32_t>(bits << 16), kFloats)};
  return {e.Literal(static_cast<uint32_t>(NumberOf(*TypeOf(dtype), bits)), ArithmeticOf(dtype))};
}

// It keeps one of two tuples whole, by one predicate: the parameters before or those behind.
bool Selects(const hlo::Computation& region) {
  const hlo::Instruction& root = *region.root();
  if (root.opcode() != Opcode::kTuple || root.operand_count() == 0) return false;
  const int64_t n = root.operand_count();
  const hlo::Instruction* keep = nullptr;
  for (int64_t k = 0; k < n; ++k) {
    const hlo::Instruction& part = *root.operand(k);
    if (part.opcode() != Opcode::kSelect || (keep != nullptr && keep != part.operand(0)) ||
        !IsParameter(*part.operand(1), k) || !IsParameter(*part.operand(2), n + k))
      return false;
    keep = part.operand(0);
  }
  return true;
}

// It asks whether the value is NaN, for both values: its order is total.
bool KnowsNan(const hlo::Computation& region, int64_t values) {
  bool asked[2] = {false, false};
  for (const auto& i : region.instructions()) {
    if (i->opcode() != Opcode::kCompare || i->operand(0) != i->operand(1)) continue;
    asked[0] = asked[0] || IsParameter(*i->operand(0), 0);
    asked[1] = asked[1] || IsParameter(*i->operand(0), values);
  }
  return asked[0] && asked[1];
}

}  // namespace

std::optional<std::string> WhyNoExpression(const hlo::Computation& region) {
  for (const hlo::Instruction* i : region.PostOrder()) {
    if (i->opcode() == Opcode::kParameter || i->opcode() == Opcode::kTuple) continue;
    if (!Computes(i->shape().dtype()) && !IsWide(i->shape().dtype()))
      return Str("a reducer of ", i->shape());
    if (i->opcode() == Opcode::kConstant) continue;
    if (!i->IsElementwise()) return Str("a reducer with ", OpcodeText(i->opcode()));
    if (auto reason = WhyNoNodes(*i)) return reason;
  }
  return std::nullopt;
}

std::vector<ValueNodes> AddRegion(const hlo::Computation& region,
                                  absl::Span<const ValueNodes> arguments, Expression& e) {
  std::unordered_map<const hlo::Instruction*, ValueNodes> values;
  std::vector<ValueNodes> result;
  for (const hlo::Instruction* i : region.PostOrder()) {
    std::vector<ValueNodes> operands;
    for (const hlo::Instruction* operand : i->operands()) operands.push_back(values[operand]);
    if (i->opcode() == Opcode::kParameter)
      values[i] = arguments[static_cast<std::size_t>(i->parameter_number())];
    else if (i->opcode() == Opcode::kConstant)
      values[i] = ScalarValue(i->literal(), e);
    else if (i->opcode() == Opcode::kTuple)
      result = operands;
    else
      values[i] = AddElementwise(*i, operands, e);
  }
  return region.root()->opcode() == Opcode::kTuple ? result
                                                   : std::vector<ValueNodes>{values[region.root()]};
}

FoldOrder FoldOrderOf(const hlo::Instruction& reduce) {
  const hlo::Computation& region = *reduce.to_apply();
  const DType dtype = reduce.operand(0)->shape().dtype();
  const int64_t values = reduce.operand_count() / 2;
  if (values == 1)
    return hlo::MonoidOf(region) && !IsFloat(dtype) ? FoldOrder::kAny : FoldOrder::kStrict;
  return Selects(region) && (!IsFloat(dtype) || KnowsNan(region, values)) ? FoldOrder::kGroups
                                                                          : FoldOrder::kStrict;
}

}  // namespace lazuli::npu
