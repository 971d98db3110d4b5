#include "lazy/ops/program/barrier.h"

namespace lazuli::lazy {

std::vector<lowering::Op> BarrierOp::Lower(lowering::Builder& b,
                                           absl::Span<const lowering::Op> xs) const {
  const lowering::Op behind = b.Unary(lowering::Opcode::kOptBarrier, b.Tuple(xs));
  std::vector<lowering::Op> results;
  for (int64_t i = 0; i < count; ++i) results.push_back(b.GetTupleElement(behind, i));
  return results;
}

Tensors BarrierOp::Vjp(const Saved& s, absl::Span<const Tensor> dys) const {
  Tensors gradients = Barrier(dys, {});
  gradients.resize(s.size());
  return gradients;
}

Tensors Barrier(absl::Span<const Tensor> xs, absl::Span<const Tensor> after) {
  absl::InlinedVector<Operand, 6> in;
  for (const Tensor& x : xs) {
    if (x.defined()) in.push_back(x);
  }
  const auto count = static_cast<int64_t>(in.size());
  if (count == 0) return Tensors(xs.begin(), xs.end());
  for (const Tensor& x : after) {
    if (x.defined() && x.device() == in[0].tensor()->device()) in.push_back(x);
  }
  Tensors behind = RecordAll(BarrierOp{count}, in), all;
  std::size_t next = 0;
  for (const Tensor& x : xs) all.push_back(x.defined() ? std::move(behind[next++]) : Tensor());
  return all;
}

}  // namespace lazuli::lazy
