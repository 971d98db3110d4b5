#include "ir/support/process_end.h"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <mutex>

#include <sys/syscall.h>
#include <unistd.h>

#include "ir/support/fork.h"

namespace lazuli::ir {
namespace {

class ProcessEnd final : private ForkParticipant {
 public:
  static ProcessEnd& Get() {
    static auto* const end = new ProcessEnd;  // outlives everything
    return *end;
  }

  void Begin() {
    std::unique_lock lock(mutex_);
    begun_ = true;
    idle_.wait(lock, [this] { return count_ == 0; });
  }
  bool begun() const { return begun_.load(std::memory_order_relaxed); }

  void EndMainThread() {
    std::unique_lock lock(mutex_);
    main_thread_ended_ = true;
    idle_.wait(lock, [this] { return count_ == 0; });
  }
  bool MayBeginInBackground() {
    const std::lock_guard lock(mutex_);
    return !begun_ && !main_thread_ended_;
  }

  // Whether the work may begin.
  bool Start() {
    const std::lock_guard lock(mutex_);
    if (begun_) return false;
    ++count_;
    return true;
  }
  void Finish() {
    const std::lock_guard lock(mutex_);
    if (--count_ == 0) idle_.notify_all();
  }

 private:
  ProcessEnd() {
    Join();
    std::atexit(BeginProcessEnd);
  }
  bool TryHold() override { return mutex_.try_lock(); }
  void Release() override { mutex_.unlock(); }
  // The child of a fork has none of the threads that work.
  void StartAnew(bool held) override {
    if (!held) new (&mutex_) std::mutex;
    count_ = 0;
    if (held) mutex_.unlock();
  }

  std::mutex mutex_;
  std::condition_variable idle_;
  std::atomic<bool> begun_{false};
  bool main_thread_ended_ = false;
  int64_t count_ = 0;
};

class MainThread {
 public:
  ~MainThread() {
    if (syscall(SYS_gettid) == getpid()) ProcessEnd::Get().EndMainThread();
  }
  bool IsMade() const { return true; }
};
thread_local const MainThread main_thread;
// The main thread loads the library, in general, and so makes its object.
[[maybe_unused]] const bool is_made = main_thread.IsMade();

}  // namespace

void BeginProcessEnd() { ProcessEnd::Get().Begin(); }
bool ProcessEnds() { return ProcessEnd::Get().begun(); }
bool MayBeginInBackground() { return ProcessEnd::Get().MayBeginInBackground(); }

EndWaits::EndWaits() : may_begin_(ProcessEnd::Get().Start()) {}
EndWaits::~EndWaits() {
  if (may_begin_) ProcessEnd::Get().Finish();
}

}  // namespace lazuli::ir
