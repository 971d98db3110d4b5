#include "lowering/builder/lowering_context.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "ir/hlo/clone.h"

namespace lazuli::lowering {

void LoweringContext::CheckNone(Op bad, Op values, CheckMessage message) {
  if (builder.shapes_only()) return;
  const Op wide = builder.Convert(values, DType::kS64);
  Op sentinel = builder.Constant(Literal::Scalar<int64_t>(RuntimeCheck::kNoOffender));
  sentinel = builder.Broadcast(sentinel, wide.shape().dims(), {});
  Dims all(static_cast<std::size_t>(wide.rank()));
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  const Op offender = builder.Reduce(Opcode::kMaximum, builder.Select(bad, wide, sentinel), all);
  checks.push_back({offender, std::move(message)});
}

void LoweringContext::CheckMatrices(Op bad, Op info, std::string op, std::string before) {
  if (builder.shapes_only()) return;
  const bool is_batch = info.rank() > 0;
  const int64_t n = info.shape().num_elements();
  if (n == 0) return;
  const Shape row(DType::kS64, {n});
  const Op from_end =
      builder.Minus(builder.Full(row, static_cast<double>(n - 1)), builder.Iota(row, 0));
  const Op place =
      builder.Times(from_end, builder.Full(row, std::ldexp(1.0, FailedMatrix::kInfoBits)));
  // The bits of the number, also where it is negative.
  const Shape bits(DType::kU32, {n});
  const Op low = builder.Convert(
      builder.Add(Opcode::kBitcastConvert, {builder.Reshape(info, {n})}, hlo::NoAttrs{}, {}, &bits),
      DType::kS64);
  CheckNone(builder.Reshape(bad, {n}), builder.Plus(place, low),
            {std::move(op), std::move(before), "", n, is_batch});
}

void LoweringContext::ComesAfter(Op effect, absl::Span<const Op> before, bool ordered) {
  hlo::Instruction* const i = effect.instruction();
  if (i == nullptr) return;
  std::vector<hlo::Instruction*> all;
  for (const Op value : before) all.push_back(value.instruction());
  if (ordered) all.push_back(std::exchange(last_ordered_, i));
  for (hlo::Instruction* first : all) {
    const bool is_given = first == nullptr || first->opcode() == Opcode::kParameter;
    const auto& present = i->control_predecessors();
    if (!is_given && std::find(present.begin(), present.end(), first) == present.end())
      i->AddControlPredecessor(first);
  }
}

hlo::Computation* LoweringContext::CopyOf(const hlo::Module& program) {
  const auto [copy, is_new] = copies_.try_emplace(&program, nullptr);
  if (is_new) copy->second = hlo::AddCopy(program, *builder.module());
  return copy->second;
}

}  // namespace lazuli::lowering
