// View: what makes a storage a second name for elements of another one, its base.
//
// The elements of a view are those at some strides from an offset in the base's memory, seen as one
// row of elements; views of views are views of the base, so the depth of a chain costs nothing. A
// view's storage holds what was derived from the base at one version, like any recorded value: as
// long as nobody writes, a view is a value like others. After a write the view is stale, and what
// is read of it next is derived anew. A write through a view is one to the base: its elements with
// those of the view in their places.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "lazy/tensor/storage.h"

namespace lazuli::lazy {

class GradNode;
class Tensor;

class View : public Pooled {
 public:
  virtual ~View() = default;
  View(const View&) = delete;
  View& operator=(const View&) = delete;

  const StoragePtr& base() const { return base_; }  // which is no view itself
  // Of elements, in the base's memory.
  const Dims& strides() const { return strides_; }
  int64_t offset() const { return offset_; }
  // For History: views of different rows are different.
  uint32_t place() const {
    constexpr uint32_t kSpread = 0x85ebca6b;
    return kSpread * static_cast<uint32_t>(offset_);
  }
  // The functions below that take `shape` are given that of the view's storage.
  // Whether each element of the base is one of the view, once.
  virtual bool IsWhole(const Shape& shape) const = 0;
  // Whether a place of the base is several elements of the view.
  virtual bool IsExpanded(const Shape& shape) const = 0;

  // The view's elements in a value of the base.
  virtual Value Read(const Shape& shape, const Value& base, SiteId site) const = 0;
  // A value of the base with these elements in the view's place. The base may be null if the view is
  // the whole.
  virtual Value Written(const Value& base, const Value& elements, SiteId site) const = 0;
  // How gradients of the view, `view`, flow to the base, and those of the base after the write of
  // `elements` to it and to them. The base is a tensor whose storage is base(), or is a view of it
  // without gaps.
  virtual IntrusivePtr<GradNode> ReadHistory(const Tensor& base, const Tensor& view) const = 0;
  virtual IntrusivePtr<GradNode> WrittenHistory(const Tensor& base,
                                                const Tensor& elements) const = 0;

 protected:
  View(const StoragePtr& base, Dims&& strides, int64_t offset)
      : base_(base), strides_(std::move(strides)), offset_(offset), version_(base_->version()) {}

 private:
  friend class Context;
  // Its elements are derived anew when they are read next.
  void MakeStale() {
    constexpr uint64_t kNever = ~uint64_t{0};  // a version that no storage has
    version_.store(kNever, std::memory_order_release);
  }

  StoragePtr base_;
  Dims strides_;
  int64_t offset_;
  std::atomic<uint64_t> version_;  // of the base, that the storage's value is of
};

inline uint64_t Storage::version() const {
  return (view_ == nullptr ? *this : *view_->base()).version_.load(std::memory_order_acquire);
}
inline Storage& Storage::written() { return view_ == nullptr ? *this : *view_->base(); }

}  // namespace lazuli::lazy
