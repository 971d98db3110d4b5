// Storage: what a tensor's elements are right now - a recorded value, memory of a device, or an
// error - and how often they were overwritten.
//
// Several tensors may share one storage (detach()); a write replaces the value and raises the
// version, and everybody who shares it sees the new value. A storage may also be a view of another
// one (view.h), which then has the elements. The members are guarded by the lock of
// the context that the storage belongs to, except shape and device, which never change. Which
// context that is changes under the lock of the one that gives it up; without a lock it is a hint,
// and so is the version.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "ir/graph/node.h"
#include "lazy/tensor/data_handle.h"

namespace lazuli::lazy {

class Context;
struct LentMemory;
class View;

class Storage : public RefCounted<Storage> {
 public:
  // Made through Context; see there.
  Storage(Context& context, const Shape& shape, backend::Device device);
  ~Storage();

  const Shape& shape() const { return shape_; }
  backend::Device device() const { return device_; }
  // Grows with creation within a context: the order of a graph's outputs.
  uint64_t id() const { return id_; }
  // Writes so far, to a view's base. An op that read the version first and finds it again when it
  // writes was alone.
  uint64_t version() const;
  // Null unless the elements are another storage's.
  const View* view() const { return view_.get(); }
  // Who has the elements: the base of a view, or the storage itself.
  Storage& written();
  bool pending() const { return linked_; }
  // "conv1.weight": shown in dumps and parameter metadata.
  const std::shared_ptr<const std::string>& name() const { return name_; }
  void set_name(std::string name) { name_ = std::make_shared<const std::string>(std::move(name)); }

 private:
  friend class Context;

  // Nothing is written over any more.
  void ForgetOld() {
    replaced_ = nullptr;
    before_ = {};
  }

  // The one a pending value belongs to; its storages keep it alive.
  std::atomic<Context*> context_;
  Shape shape_;
  backend::Device device_;
  uint64_t id_;
  std::atomic<uint64_t> version_{0};
  std::unique_ptr<View> view_;  // set when made
  Value value_;                 // pending, or a leaf for data_ kept for reuse, or a number
  DataPtr data_;                // null while pending
  // What the pending value was first written over: its memory may become the result's, and it is what
  // the storage holds if the write is not taken.
  DataPtr replaced_;
  // The same where that was pending itself: what the storage held when the first op was recorded
  // whose check may fail, or that reads what a check of an earlier run may leave without elements.
  Value before_;
  std::shared_ptr<const std::string> name_;
  std::unique_ptr<LentMemory> lent_;  // null unless the user has a pointer to write to
  bool linked_ = false;               // in the context's list of pending storages
  Storage* previous_ = nullptr;
  Storage* next_ = nullptr;
};
using StoragePtr = IntrusivePtr<Storage>;

}  // namespace lazuli::lazy
