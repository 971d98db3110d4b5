#include "lazy/tensor/data_handle.h"

#include <condition_variable>
#include <mutex>
#include <new>
#include <optional>
#include <utility>

#include "ir/support/blocking.h"
#include "ir/support/check.h"
#include "ir/support/fork.h"
#include "ir/support/spin.h"
#include "ir/support/status.h"
#include "lazy/tensor/engine.h"
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

void DataHandle::Set(backend::BufferPtr buffer) {
  LAZULI_CHECK(!ready(), "a data handle is set once");
  buffer_ = std::move(buffer);
  MakeReady();
}

void DataHandle::Set(FaultPtr fault) {
  LAZULI_CHECK(!ready(), "a data handle is set once");
  fault_ = std::move(fault);
  MakeReady();
}

void DataHandle::MakeReady() {
  {
    std::lock_guard lock(Arrivals::Get().mutex);
    ready_.store(true, std::memory_order_release);
  }
  Arrivals::Get().condition.notify_all();
}

absl::StatusOr<backend::BufferPtr> DataHandle::Wait() const {
  std::optional<SiteSpan> span;
  if (!ready()) span.emplace(ir::SpanKind::kWait, "wait");
  if (!ready() && ir::RunScope::IsActive()) GetEngine().RunNested();
  if (!ready() && ir::RunScope::IsActive()) {
    return FailedPrecondition(
        "a function that a run calls reads a tensor that is not computed yet; "
        "give it to the function as an argument");
  }
  if (!ir::SpinUntil([this] { return ready(); })) {
    LAZULI_RETURN_IF_ERROR(ir::ForkError());
    const ir::WaitScope waits;
    Arrivals& arrivals = Arrivals::Get();
    std::unique_lock lock(arrivals.mutex);
    LAZULI_RETURN_IF_ERROR(InterruptibleWait(arrivals.condition, lock, [this] { return ready(); }));
  }
  if (fault_) return fault_->status();
  return buffer_;
}

}  // namespace lazuli::lazy
