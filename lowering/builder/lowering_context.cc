#include "lowering/builder/lowering_context.h"

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

hlo::Computation* LoweringContext::CopyOf(const hlo::Module& program) {
  const auto [copy, is_new] = copies_.try_emplace(&program, nullptr);
  if (is_new) copy->second = hlo::AddCopy(program, *builder.module());
  return copy->second;
}

}  // namespace lazuli::lowering
