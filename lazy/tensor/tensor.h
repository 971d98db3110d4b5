// Tensor: the handle that ops take and give. TensorImpl: a storage and what autograd knows of it.
//
// A tensor that is a view remembers the tensor that it is a view of: a write through either changes
// the history of both. Views of views have the same one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "lazy/tensor/context.h"
#include "lazy/tensor/storage.h"

namespace lazuli::lazy {

class GradNode;
struct AutogradMeta;

// Whether tensors of the dtype can have gradients.
inline bool HasGradient(DType dtype) { return IsFloat(dtype) || IsComplex(dtype); }

class TensorImpl : public RefCounted<TensorImpl> {
 public:
  // How a view came to be, which decides whether its history can follow a write through it.
  enum class ViewKind : uint8_t { kPlain, kWithoutGrad, kOneOfSeveral };

  explicit TensorImpl(StoragePtr storage);
  // A view, whose storage is one.
  TensorImpl(StoragePtr storage, IntrusivePtr<TensorImpl> base, ViewKind kind);
  ~TensorImpl();
  const StoragePtr& storage() const { return storage_; }
  // The tensor stays, with other elements: for leaves only, whose history cannot get wrong.
  void set_storage(StoragePtr storage);
  void RestoreStorage(StoragePtr storage, IntrusivePtr<TensorImpl> base) {  // as it was before
    storage_ = std::move(storage);
    base_ = std::move(base);
  }
  // The same elements under other dims; what the tensor is a view of stays.
  void BecomeView(StoragePtr storage) { storage_ = std::move(storage); }
  // Null: no gradient wanted. That of a view follows writes to its base.
  AutogradMeta* autograd() const {
    if (base_) [[unlikely]]
      FollowBase();
    return autograd_.get();
  }
  AutogradMeta& mutable_autograd();  // makes it
  // Made in inference mode: no history can be recorded of it.
  bool is_inference() const { return is_inference_; }

  // What stands for the tensor in another language, where it is to be one object; null: nothing does.
  // The tensor does not own it. Whoever sets it also clears it and guards it.
  void* wrapper() const { return wrapper_; }
  void set_wrapper(void* wrapper) { wrapper_ = wrapper; }

  // What the tensor is a view of; null if it is none.
  TensorImpl* base() const { return base_.get(); }
  const IntrusivePtr<TensorImpl>& base_ptr() const { return base_; }
  ViewKind view_kind() const { return kind_; }
  // Whether the history of the view is that of another version of the base, which has one.
  bool IsBehindBase() const;
  // Throws FailedPrecondition if the history of a view of this kind cannot follow a write, to the
  // view itself or to what it is a view of.
  void CheckFollows(bool itself) const;
  // The history is that of what the view holds now.
  void HistoryIsCurrent() { version_ = storage_->version(); }
  // The history is the base's, which is asked for when it is needed.
  void HistoryIsTheBases() { version_ = ~uint64_t{0}; }

 private:
  void FollowBase() const;

  bool is_inference_;
  StoragePtr storage_;
  mutable std::unique_ptr<AutogradMeta> autograd_;
  IntrusivePtr<TensorImpl> base_;
  mutable uint64_t version_ = 0;  // of the base, that a view's history is of
  ViewKind kind_ = ViewKind::kPlain;
  void* wrapper_ = nullptr;
};

class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(IntrusivePtr<TensorImpl> impl) : impl_(std::move(impl)) {}
  explicit Tensor(StoragePtr storage) : impl_(MakeIntrusive<TensorImpl>(std::move(storage))) {}

  bool defined() const { return static_cast<bool>(impl_); }
  const Shape& shape() const { return storage().shape(); }
  DType dtype() const { return shape().dtype(); }
  int64_t rank() const { return shape().rank(); }
  int64_t dim(int64_t i) const { return shape().dim(i); }
  backend::Device device() const { return storage().device(); }
  bool requires_grad() const;

  TensorImpl* impl() const { return impl_.get(); }
  const IntrusivePtr<TensorImpl>& ptr() const { return impl_; }
  Storage& storage() const { return *impl_->storage(); }
  // Gives up the reference without releasing it.
  TensorImpl* Detach() { return impl_.Detach(); }

 private:
  IntrusivePtr<TensorImpl> impl_;
};
using Tensors = PooledVector<Tensor>;

// A tensor of these elements on the device. Copies, unless the device can use the literal's memory
// in place.
Tensor FromLiteral(const Literal& literal, backend::Device device);
// The elements, after a sync of the context and a wait for this tensor.
Literal ToLiteral(const Tensor& tensor);
// The same, but the device's memory itself, shared.
backend::BufferPtr ToBuffer(const Tensor& tensor);
// The same storage without its history: writes through either are seen by both.
Tensor Detach(const Tensor& tensor);

// While inference mode is on, this thread records no gradients, and what it makes never takes part in
// a history. Returns what it was.
bool InferenceMode();
bool SetInferenceMode(bool enabled);

// Whether ops record gradients on this thread; on by default.
bool GradEnabled();
bool SetGradEnabled(bool enabled);  // returns what it was
class GradModeGuard {
 public:
  explicit GradModeGuard(bool enabled);
  ~GradModeGuard();
  GradModeGuard(const GradModeGuard&) = delete;
  GradModeGuard& operator=(const GradModeGuard&) = delete;

 private:
  bool saved_;
};

}  // namespace lazuli::lazy
