// Tensors that are others for a while, as calls of modules with other parameters need them.
#include <utility>

#include "cpp_api/src/facade.h"
#include "lazuli/func.h"
#include "lazuli/ops.h"
#include "lazy/tensor/tape.h"

namespace lazuli::func::internal {

struct Lent::Impl {
  lazy::Tensor place;
  lazy::StoragePtr storage;
  ir::IntrusivePtr<lazy::TensorImpl> base;
  lazy::AutogradMeta history;
};

// A leaf lends a copy: its own history is the tensor itself, which is in another place.
Lent::Lent(const Tensor& place, const Tensor& value, SourceLocation loc)
    : impl_(std::make_unique<Impl>()) {
  Call(loc, [&] {
    const lazy::Tensor given =
        TensorAccess::Unwrap(value.requires_grad() ? value.clone(loc) : value);
    impl_->place = TensorAccess::Unwrap(place);
    lazy::TensorImpl& to = *impl_->place.impl();
    impl_->storage = to.storage();
    impl_->base = to.base_ptr();
    impl_->history = std::exchange(to.mutable_autograd(), {});
    to.RestoreStorage(given.impl()->storage(), nullptr);
    const lazy::Edge edge = lazy::GradEdge(given);
    to.mutable_autograd().grad_fn = edge.node;
    to.mutable_autograd().output = edge.index;
  });
}

Lent::~Lent() {
  lazy::TensorImpl& to = *impl_->place.impl();
  to.RestoreStorage(std::move(impl_->storage), std::move(impl_->base));
  to.mutable_autograd() = std::move(impl_->history);
}

void RefuseName(const std::string& name, const SourceLocation& loc) {
  Call(loc, [&] {
    throw lazy::StatusError(ir::InvalidArgument(
        "functional_call: the module has no parameter or buffer \"", name, "\""));
  });
}

}  // namespace lazuli::func::internal
