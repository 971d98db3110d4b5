// DataHandle: memory of a device that exists, is being produced by a run, or failed to be produced.
//
// Set once, by the execution thread or at import. Readers wait; a failed handle gives the error of its
// fault to every reader, for ever.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "absl/status/statusor.h"

#include "backend/client/client.h"
#include "ir/support/intrusive_ptr.h"
#include "lazy/tensor/fault.h"

namespace lazuli::lazy {

class DataHandle : public RefCounted<DataHandle> {
 public:
  DataHandle(Shape shape, backend::Device device) : shape_(std::move(shape)), device_(device) {}
  DataHandle(backend::BufferPtr buffer)  // NOLINT(google-explicit-constructor)
      : shape_(buffer->shape()),
        device_(buffer->device()),
        buffer_(std::move(buffer)),
        ready_(true) {}

  const Shape& shape() const { return shape_; }
  backend::Device device() const { return device_; }
  bool ready() const { return ready_.load(std::memory_order_acquire); }

  void Set(backend::BufferPtr buffer);
  void Set(FaultPtr fault);
  // Blocks until set, or until a signal ends the wait: that error is not the handle's.
  absl::StatusOr<backend::BufferPtr> Wait() const;
  // The buffer of a handle that is ready, or null; and why there is none.
  const backend::BufferPtr& buffer() const { return buffer_; }
  const FaultPtr& fault() const { return fault_; }
  bool has_failed() const { return ready() && fault_; }
  // Of a view whose base was updated in a run that takes no updates: it is to be derived anew from what
  // the base still holds. Before Set().
  void Undo() { undone_ = true; }
  bool undone() const { return ready() && undone_; }
  // Of a result that is computed through a check, in its own run or an earlier one, whether or not the
  // check has run by now. Said before others see the handle.
  void SetDoubtful() { may_fail_ = true; }
  // Whether it may turn out to have no elements, or has.
  bool doubtful() const { return may_fail_ || has_failed(); }

 private:
  void MakeReady();

  Shape shape_;
  backend::Device device_;
  backend::BufferPtr buffer_;
  FaultPtr fault_;
  bool undone_ = false;
  bool may_fail_ = false;
  std::atomic<bool> ready_{false};
};
using DataPtr = IntrusivePtr<DataHandle>;

}  // namespace lazuli::lazy
