#include "lazy/tensor/outside.h"

#include <utility>

#include "lazy/tensor/journal.h"

namespace lazuli::lazy {

Outside* Outside::Of(const Context& context) {
  const Journal* const journal = context.journal();
  return journal == nullptr ? nullptr : journal->outside();
}

Value Outside::LeafFor(std::size_t i, Storage& storage, SiteId site) {
  const Tensor* const operand = i < operands_.size() ? operands_[i] : nullptr;
  if (operand != nullptr) {
    const TensorImpl* const base = operand->impl()->base();
    if (&operand->storage() == &storage) return LeafFor(*operand, site);
    if (base != nullptr && base->storage().get() == &storage)
      return LeafFor(Tensor(operand->impl()->base_ptr()), site);
  }
  return LeafFor(Tensor(StoragePtr(&storage)), site);
}

Outside::Operands::Operands(Outside* outside, absl::Span<const Tensor* const> tensors)
    : outside_(outside) {
  if (outside != nullptr) outer_ = std::exchange(outside->operands_, tensors);
}
Outside::Operands::~Operands() {
  if (outside_ != nullptr) outside_->operands_ = outer_;
}

absl::Status CheckRuns(const Context& context) {
  if (Outside::Of(context) == nullptr) [[likely]]
    return absl::OkStatus();
  return FailedPrecondition(
      "nothing runs while a function is traced, so its tensors have no elements to read; compute "
      "with the tensors, and read what is needed before the function is called");
}

}  // namespace lazuli::lazy
