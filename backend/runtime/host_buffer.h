// HostBuffer: row-major elements in host memory - a block of the client's allocator, or imported
// memory with its deleter.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "backend/client/client.h"
#include "backend/runtime/allocator.h"

namespace lazuli::backend {

class HostBuffer final : public Buffer {
 public:
  // The allocator outlives its buffers because they share it.
  HostBuffer(Shape shape, Device device, std::shared_ptr<Allocator> allocator, Block block)
      : Buffer(std::move(shape), device),
        allocator_(std::move(allocator)),
        block_(block),
        data_(block.data),
        id_(NextId()) {}
  HostBuffer(Shape shape, Device device, const HostView& imported, Deleter deleter)
      : Buffer(std::move(shape), device),
        data_(const_cast<std::byte*>(static_cast<const std::byte*>(imported.data))),
        writable_(imported.writable),
        deleter_(std::move(deleter)) {}
  // An output that takes the memory of a donated buffer, which afterwards has no data.
  HostBuffer(Shape shape, Device device, HostBuffer& donor)
      : Buffer(std::move(shape), device),
        allocator_(donor.allocator_),
        block_(std::exchange(donor.block_, {})),
        data_(std::exchange(donor.data_, nullptr)),
        writable_(donor.writable_),
        id_(donor.id_ == 0 ? 0 : NextId()),
        deleter_(std::exchange(donor.deleter_, {})) {}
  ~HostBuffer() override {
    if (block_.data != nullptr) allocator_->Free(block_);
    if (deleter_) deleter_();
  }

  const std::byte* host_data() const override { return data_; }
  std::byte* data() { return data_; }

  // Tells apart buffers that have the same memory one after the other: elements are written once,
  // by the run that makes the buffer. 0 for imported memory, which is not ours alone.
  uint64_t id() const { return id_; }

  // Whether its memory is there to be taken by an output: its own, or lent for that.
  bool may_be_taken() const { return data_ != nullptr && (block_.data != nullptr || writable_); }

 private:
  static uint64_t NextId() {
    static std::atomic<uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  std::shared_ptr<Allocator> allocator_;
  Block block_;
  std::byte* data_ = nullptr;
  bool writable_ = false;
  uint64_t id_ = 0;
  Deleter deleter_;
};

}  // namespace lazuli::backend
