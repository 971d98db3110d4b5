#include "lazy/tensor/data_handle.h"

#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "ir/support/check.h"
#include "ir/support/fork.h"
#include "ir/support/spin.h"
#include "lazy/tensor/interruption.h"
#include "lazy/tensor/site_span.h"

namespace lazuli::lazy {
namespace {

// One pair for all handles: waiting is rare and ends with the run, so a wake-up of a waiter for
// another handle costs little, and a handle stays small.
class Arrivals final : private ir::ForkParticipant {
 public:
  static Arrivals& Get() {
    static auto* arrivals = new Arrivals;
    return *arrivals;
  }
  std::mutex mutex;
  std::condition_variable condition;

 private:
  Arrivals() { Join(); }
  bool TryHold() override { return mutex.try_lock(); }
  void Release() override { mutex.unlock(); }
  void StartAnew(bool) override {  // whoever waited is gone
    new (&mutex) std::mutex;
    new (&condition) std::condition_variable;
  }
};

}  // namespace

void DataHandle::Set(absl::StatusOr<backend::BufferPtr> result) {
  LAZULI_CHECK(!ready(), "a data handle is set once");
  if (result.ok()) {
    buffer_ = *std::move(result);
  } else {
    error_ = result.status();
  }
  {
    std::lock_guard lock(Arrivals::Get().mutex);
    ready_.store(true, std::memory_order_release);
  }
  Arrivals::Get().condition.notify_all();
}

absl::StatusOr<backend::BufferPtr> DataHandle::Wait() const {
  std::optional<SiteSpan> span;
  if (!ready()) span.emplace(ir::SpanKind::kWait, "wait");
  if (!ir::SpinUntil([this] { return ready(); })) {
    LAZULI_RETURN_IF_ERROR(ir::ForkError());
    Arrivals& arrivals = Arrivals::Get();
    std::unique_lock lock(arrivals.mutex);
    LAZULI_RETURN_IF_ERROR(InterruptibleWait(arrivals.condition, lock, [this] { return ready(); }));
  }
  if (!error_.ok()) return error_;
  return buffer_;
}

backend::BufferPtr DataHandle::Take(absl::Status why) {
  error_ = std::move(why);
  return std::exchange(buffer_, nullptr);
}

}  // namespace lazuli::lazy
