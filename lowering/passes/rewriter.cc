#include "lowering/passes/rewriter.h"

#include <utility>
#include <vector>

#include "ir/support/check.h"

namespace lazuli::lowering {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

Rewriter::Rewriter(Computation* computation) : computation_(computation) {
  for (const auto& i : computation->instructions()) {
    for (const Instruction* before : i->control_predecessors()) pinned_.insert(before);
  }
}

Rewriter::~Rewriter() {
  if (changed_ || added_) computation_->RemoveDead();
}

Instruction* Rewriter::Add(Opcode opcode, const Shape& shape,
                           absl::Span<Instruction* const> operands, hlo::Attrs attrs,
                           absl::Span<Computation* const> called) {
  Instruction* const root = computation_->root();
  Instruction* i = computation_->Add(opcode, shape, operands, std::move(attrs), called);
  computation_->set_root(root);
  if (origin_ != nullptr && !origin_->metadata().empty()) i->set_metadata(origin_->metadata());
  added_ = true;
  return i;
}

Instruction* Rewriter::AddClone(const Instruction& source,
                                absl::Span<Instruction* const> operands) {
  Instruction* const root = computation_->root();
  Instruction* i = computation_->AddClone(source, operands);
  computation_->set_root(root);
  if (origin_ != nullptr && i->metadata().empty()) i->set_metadata(origin_->metadata());
  added_ = true;
  return i;
}

Instruction* Rewriter::AddConstant(Literal value) {
  const Shape shape = value.shape();
  return Add(Opcode::kConstant, shape, {},
             hlo::ConstantAttrs{std::make_shared<const Literal>(std::move(value))});
}

Instruction* Rewriter::Scalar(DType dtype, double value) {
  return AddConstant(Literal::Full(Shape(dtype), value));
}

Instruction* Rewriter::Full(const Shape& shape, double value) {
  Instruction* scalar = Scalar(shape.dtype(), value);
  return shape.rank() == 0 ? scalar : Broadcast(scalar, shape, {});
}

Instruction* Rewriter::Convert(Instruction* x, DType dtype) {
  if (x->shape().dtype() == dtype) return x;
  Shape shape = x->shape();
  shape.set_dtype(dtype);
  return Add(Opcode::kConvert, shape, {x});
}

Instruction* Rewriter::Reshape(Instruction* x, absl::Span<const int64_t> dims) {
  if (x->shape().dims() == dims) return x;
  return Add(Opcode::kReshape, Shape(x->shape().dtype(), dims), {x});
}

Instruction* Rewriter::Broadcast(Instruction* x, const Shape& shape,
                                 absl::Span<const int64_t> dimensions) {
  return Add(Opcode::kBroadcast, Shape(x->shape().dtype(), shape.dims()), {x},
             hlo::DimensionsAttrs{Dims(dimensions.begin(), dimensions.end())});
}

Instruction* Rewriter::Transpose(Instruction* x, absl::Span<const int64_t> permutation) {
  Dims dims;
  for (int64_t from : permutation) dims.push_back(x->shape().dim(from));
  return Add(Opcode::kTranspose, Shape(x->shape().dtype(), dims), {x},
             hlo::DimensionsAttrs{Dims(permutation.begin(), permutation.end())});
}

void Rewriter::Replace(Instruction* old, Instruction* with) {
  LAZULI_CHECK(old != with && Compatible(old->shape(), with->shape()), old->name(), " of shape ",
               old->shape(), " replaced by ", with->name(), " of shape ", with->shape());
  if (with->metadata().empty() && !old->metadata().empty() && !with->IsConstant() &&
      with->opcode() != Opcode::kParameter) {
    with->set_metadata(old->metadata());
  }
  old->ReplaceAllUsesWith(with);
  changed_ = true;
  Erase(old);
}

void Rewriter::ReplaceOperand(Instruction* user, int64_t index, Instruction* with) {
  Instruction* const old = user->operand(index);
  if (old == with) return;
  user->ReplaceOperand(index, with);
  changed_ = true;
  Erase(old);
}

void Rewriter::SetAttrs(Instruction* i, hlo::Attrs attrs) {
  i->mutable_attrs() = std::move(attrs);
  changed_ = true;
}

bool Rewriter::CanErase(const Instruction* i) const {
  return i->users().empty() && !i->IsRoot() && i->opcode() != Opcode::kParameter &&
         !pinned_.contains(i) && !i->HasSideEffect();
}

void Rewriter::Erase(Instruction* dead) {
  std::vector<Instruction*> pending = {dead};
  while (!pending.empty()) {
    Instruction* const i = pending.back();
    pending.pop_back();
    if (IsErased(i) || !CanErase(i)) continue;
    erased_.insert(i);
    pending.insert(pending.end(), i->operands().begin(), i->operands().end());
    computation_->Detach(i);
    changed_ = true;
  }
}

}  // namespace lazuli::lowering
