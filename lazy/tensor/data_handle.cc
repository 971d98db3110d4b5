#include "lazy/tensor/data_handle.h"

#include <utility>

#include "ir/support/check.h"
#include "ir/support/spin.h"
#include "lazy/tensor/interruption.h"

namespace lazuli::lazy {
namespace {

// One pair for all handles: waiting is rare and ends with the run, so a wake-up of a waiter for
// another handle costs little, and a handle stays small.
std::mutex& ReadyMutex() {
  static auto* mutex = new std::mutex;
  return *mutex;
}
std::condition_variable& ReadyCondition() {
  static auto* condition = new std::condition_variable;
  return *condition;
}

}  // namespace

void DataHandle::Set(absl::StatusOr<backend::BufferPtr> result) {
  LAZULI_CHECK(!ready(), "a data handle is set once");
  if (result.ok()) {
    buffer_ = *std::move(result);
  } else {
    error_ = result.status();
  }
  {
    std::lock_guard lock(ReadyMutex());
    ready_.store(true, std::memory_order_release);
  }
  ReadyCondition().notify_all();
}

absl::StatusOr<backend::BufferPtr> DataHandle::Wait() const {
  if (!ir::SpinUntil([this] { return ready(); })) {
    std::unique_lock lock(ReadyMutex());
    LAZULI_RETURN_IF_ERROR(InterruptibleWait(ReadyCondition(), lock, [this] { return ready(); }));
  }
  if (!error_.ok()) return error_;
  return buffer_;
}

backend::BufferPtr DataHandle::Take(absl::Status why) {
  error_ = std::move(why);
  return std::exchange(buffer_, nullptr);
}

}  // namespace lazuli::lazy
