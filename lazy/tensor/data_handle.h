// DataHandle: memory of a device that exists, is being produced by a run, or failed to be produced.
//
// Set once, by the execution thread or at import. Readers wait; a failed handle gives its error to
// every reader, for ever.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "absl/status/statusor.h"

#include "backend/client/client.h"
#include "ir/support/intrusive_ptr.h"

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

  void Set(absl::StatusOr<backend::BufferPtr> result);
  // Blocks until set, or until a signal ends the wait: that error is not the handle's.
  absl::StatusOr<backend::BufferPtr> Wait() const;
  // The buffer or the error of a handle that is ready.
  const absl::Status& error() const { return error_; }
  const backend::BufferPtr& buffer() const { return buffer_; }
  // Gives the buffer away (donation): later reads report `why`.
  backend::BufferPtr Take(absl::Status why);

 private:
  Shape shape_;
  backend::Device device_;
  backend::BufferPtr buffer_;
  absl::Status error_;
  std::atomic<bool> ready_{false};
};
using DataPtr = IntrusivePtr<DataHandle>;

}  // namespace lazuli::lazy
