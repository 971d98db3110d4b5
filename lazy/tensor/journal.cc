#include "lazy/tensor/journal.h"

#include <algorithm>
#include <ranges>

#include "lazy/tensor/outside.h"
#include "lazy/tensor/status_error.h"
#include "lazy/tensor/tape.h"

namespace lazuli::lazy {
namespace {

void CheckMayChange(const TensorImpl& tensor, std::string_view what) {
  const Context& context = Context::Current();
  const Outside* const outside = Outside::Of(context);
  if (outside == nullptr || outside->may_write() || context.Owns(*tensor.storage())) return;
  throw StatusError(FailedPrecondition("the ", what, " of a tensor from outside of the function, ",
                                       tensor.storage()->shape(),
                                       ", would be changed inside, where nothing is computed yet; "
                                       "return what it is to be"));
}

}  // namespace

void Journal::NoteGrad(TensorImpl& tensor) {
  CheckMayChange(tensor, "gradient");
  const auto is_noted = [&](const Grad& grad) { return grad.tensor.get() == &tensor; };
  if (std::any_of(grads_.begin(), grads_.end(), is_noted)) return;
  const AutogradMeta* const meta = tensor.autograd();
  grads_.push_back({IntrusivePtr<TensorImpl>(&tensor), meta != nullptr ? meta->grad : Tensor()});
}

void Journal::NoteStorage(TensorImpl& tensor) {
  CheckMayChange(tensor, "data");
  const auto is_noted = [&](const Data& data) { return data.tensor.get() == &tensor; };
  if (std::any_of(data_.begin(), data_.end(), is_noted)) return;
  data_.push_back({IntrusivePtr<TensorImpl>(&tensor), tensor.storage(), tensor.base_ptr()});
}

void Journal::Undo(Context& context) {
  for (const Grad& grad : grads_) grad.tensor->mutable_autograd().grad = grad.grad;
  for (const Data& data : data_) data.tensor->RestoreStorage(data.storage, data.base);
  for (JournalEntry& taken : taken_ | std::views::reverse) context.GiveBack(taken);
  grads_.clear();
  data_.clear();
  taken_.clear();
}

}  // namespace lazuli::lazy
