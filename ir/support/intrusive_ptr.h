// A pointer to an object that counts its own references (`Retain()`, `Release()`); no control
// block, one word.
#pragma once

#include <atomic>
#include <cstdint>
#include <utility>

#include "ir/support/namespaces.h"
#include "ir/support/pool.h"

namespace lazuli::ir {

template <class T>
class IntrusivePtr {
 public:
  IntrusivePtr() = default;
  IntrusivePtr(std::nullptr_t) {}  // NOLINT(google-explicit-constructor)
  explicit IntrusivePtr(T* p) : p_(p) {
    if (p_) p_->Retain();
  }
  IntrusivePtr(const IntrusivePtr& other) : IntrusivePtr(other.p_) {}
  IntrusivePtr(IntrusivePtr&& other) noexcept : p_(std::exchange(other.p_, nullptr)) {}
  template <class U>
    requires std::is_convertible_v<U*, T*>
  IntrusivePtr(IntrusivePtr<U> other)
      : p_(other.Detach()) {}  // NOLINT(google-explicit-constructor)
  IntrusivePtr& operator=(IntrusivePtr other) noexcept {
    std::swap(p_, other.p_);
    return *this;
  }
  ~IntrusivePtr() {
    if (p_) p_->Release();
  }

  // Takes over a reference that somebody already counted.
  static IntrusivePtr Adopt(T* p) {
    IntrusivePtr r;
    r.p_ = p;
    return r;
  }
  T* Detach() { return std::exchange(p_, nullptr); }

  T* get() const { return p_; }
  T& operator*() const { return *p_; }
  T* operator->() const { return p_; }
  explicit operator bool() const { return p_ != nullptr; }
  friend bool operator==(const IntrusivePtr& a, const IntrusivePtr& b) { return a.p_ == b.p_; }

 private:
  T* p_ = nullptr;
};

// The count of an object's owners. Starts at zero: the first IntrusivePtr makes it one.
class RefCount {
 public:
  void Retain(uint32_t owners = 1) const { refs_.fetch_add(owners, std::memory_order_relaxed); }
  // The first reference of an object that no other thread can see yet: a store costs a quarter of
  // an atomic addition.
  void RetainFirst() const { refs_.store(1, std::memory_order_relaxed); }
  // Whether the caller was the last owner. The only owner need not write: nobody else is left to
  // raise the count.
  bool ReleaseLast() const {
    return refs_.load(std::memory_order_acquire) == 1 ||
           refs_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }
  uint32_t use_count() const { return refs_.load(std::memory_order_acquire); }

 private:
  mutable std::atomic<uint32_t> refs_{0};
};

// Mixin that counts; deletes through the derived type, which must be the most derived one.
template <class Derived>
class RefCounted : public Pooled {
 public:
  void Retain(uint32_t owners = 1) const { refs_.Retain(owners); }
  void RetainFirst() const { refs_.RetainFirst(); }
  void Release() const {
    if (refs_.ReleaseLast()) delete static_cast<const Derived*>(this);
  }
  uint32_t use_count() const { return refs_.use_count(); }

 protected:
  RefCounted() = default;
  ~RefCounted() = default;
  RefCounted(const RefCounted&) {}
  RefCounted& operator=(const RefCounted&) { return *this; }

 private:
  RefCount refs_;
};

template <class T, class... Args>
IntrusivePtr<T> MakeIntrusive(Args&&... args) {
  T* made = new T(std::forward<Args>(args)...);
  made->RetainFirst();
  return IntrusivePtr<T>::Adopt(made);
}

}  // namespace lazuli::ir
