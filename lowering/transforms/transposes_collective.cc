// Transpose rules of collectives: of the map from the operands of all devices to the results of all devices, so the
// products of values and cotangents are added up over the devices, too.
#include <utility>

#include "ir/hlo/attrs.h"
#include "ir/hlo/monoid.h"
#include "lowering/transforms/transpose.h"

namespace lazuli::lowering {
namespace {

// The same devices exchange, in one array.
absl::Status GiveByCollective(TransposeStep& s, Opcode opcode) {
  if (s.operands.size() != 1) return s.NotLinear();
  const Op ct = s.ct();
  const Shape shape = s.shape(0).WithDefaultLayout();
  hlo::Computation* const add = s.b.ScalarComputation(Opcode::kAdd, shape.dtype());
  const bool reduces = hlo::Traits(opcode).regions > 0;
  s.Give(0, s.b.Add(opcode, {ct}, s.i.attrs(),
                    reduces ? absl::MakeConstSpan(&add, 1) : absl::Span<hlo::Computation* const>(),
                    &shape));
  return absl::OkStatus();
}

}  // namespace

absl::Status TransposeAllReduce(TransposeStep& s) {
  if (hlo::MonoidOf(*s.i.to_apply()) != Opcode::kAdd) return s.NotLinear();
  return GiveByCollective(s, Opcode::kAllReduce);
}

absl::Status TransposeAllGather(TransposeStep& s) {
  return GiveByCollective(s, Opcode::kReduceScatter);
}

absl::Status TransposeReduceScatter(TransposeStep& s) {
  if (hlo::MonoidOf(*s.i.to_apply()) != Opcode::kAdd) return s.NotLinear();
  return GiveByCollective(s, Opcode::kAllGather);
}

// What device a has of device b goes back: the same exchange.
absl::Status TransposeAllToAll(TransposeStep& s) {
  std::vector<std::vector<Op>> cts;
  for (std::size_t k = 0; k < s.operands.size(); ++k) {
    if (!s.linear(k)) return s.NotLinear();
    if (s.operands.size() == s.results.size())
      cts.push_back({s.cotangents.OrZeros(s.results[k].slot)});
  }
  if (cts.size() != s.results.size()) return s.NotLinear();
  const std::vector<Op> given = AddLikeOfParts(s.b, s.i, cts);
  for (std::size_t k = 0; k < given.size(); ++k) s.Give(k, given[k]);
  return absl::OkStatus();
}

absl::Status TransposeCollectivePermute(TransposeStep& s) {
  auto attrs = s.i.attrs_as<hlo::PermuteAttrs>();
  for (auto& [source, target] : attrs.source_target_pairs) std::swap(source, target);
  s.Give(0, s.b.Add(Opcode::kCollectivePermute, {s.ct()}, attrs));
  return absl::OkStatus();
}

}  // namespace lazuli::lowering
