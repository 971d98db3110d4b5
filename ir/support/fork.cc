#include "ir/support/fork.h"

#include <atomic>
#include <thread>

#include <pthread.h>

#include "ir/support/status.h"

namespace lazuli::ir {
namespace {

std::atomic<bool> forked_at_work{false};
std::atomic<std::chrono::milliseconds> patience{std::chrono::seconds(10)};

}  // namespace

class ForkRegistry {
 public:
  static ForkRegistry& Get() {
    static auto* registry = new ForkRegistry;  // mutexes of static objects go very late
    return *registry;
  }

  void Add(ForkParticipant* p) {
    const std::lock_guard lock(mutex_);
    p->previous_ = last_;
    (last_ != nullptr ? last_->next_ : first_) = p;
    last_ = p;
  }
  void Remove(ForkParticipant* p) {
    const std::lock_guard lock(mutex_);
    (p->previous_ != nullptr ? p->previous_->next_ : first_) = p->next_;
    (p->next_ != nullptr ? p->next_->previous_ : last_) = p->previous_;
  }

 private:
  ForkRegistry() {
    pthread_atfork([] { Get().Prepare(); }, [] { Get().InParent(); }, [] { Get().InChild(); });
  }

  // All or none: in no order, so that nobody who takes two of them can be waiting for this thread
  // while it waits for them.
  bool TryHoldAll() {
    for (ForkParticipant* p = first_; p != nullptr; p = p->next_) {
      if (p->TryHold()) continue;
      ReleaseBefore(p);
      return false;
    }
    return true;
  }
  // Null: all.
  void ReleaseBefore(ForkParticipant* end) {
    for (ForkParticipant* p = end != nullptr ? end->previous_ : last_; p != nullptr;
         p = p->previous_)
      p->Release();
  }

  void Prepare() {
    mutex_.lock();
    const auto deadline = std::chrono::steady_clock::now() + patience.load();
    while (!(held_ = TryHoldAll()) && std::chrono::steady_clock::now() < deadline) {
      mutex_.unlock();  // whoever works may make or drop a participant
      std::this_thread::sleep_for(std::chrono::microseconds(200));
      mutex_.lock();
    }
  }
  void InParent() {
    if (held_) ReleaseBefore(nullptr);
    mutex_.unlock();
  }
  void InChild() {
    if (!held_) forked_at_work = true;
    for (ForkParticipant* p = last_; p != nullptr; p = p->previous_) p->StartAnew(held_);
    mutex_.unlock();
  }

  std::mutex mutex_;
  ForkParticipant* first_ = nullptr;
  ForkParticipant* last_ = nullptr;
  bool held_ = false;
};

void ForkParticipant::Join() { ForkRegistry::Get().Add(this); }
void ForkParticipant::Leave() { ForkRegistry::Get().Remove(this); }

absl::Status ForkError() {
  if (!forked_at_work) return absl::OkStatus();
  return FailedPrecondition(
      "this process was forked while a thread was at work in lazuli, which did not come to rest in "
      "time; fork when nothing runs, or start processes by spawn");
}

void SetForkPatience(std::chrono::milliseconds p) { patience = p; }

}  // namespace lazuli::ir
