#include "backend/cpu/codegen/background_compiler.h"

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <new>
#include <shared_mutex>
#include <system_error>
#include <thread>
#include <utility>

#include <sys/resource.h>

#include "backend/cpu/codegen/compile_mutex.h"
#include "ir/support/fork.h"
#include "ir/support/process_end.h"

namespace lazuli::cpu {
namespace {

// Of a thread that may wait while others work.
constexpr int kNice = 10;
// How long the thread rests when a fork found it at work, so that the fork finds it idle.
constexpr std::chrono::milliseconds kRest{2};

class BackgroundCompiler final : private ir::ForkParticipant {
 public:
  // It outlives everything, as its thread does.
  static BackgroundCompiler& Get() {
    static auto* const compiler = new BackgroundCompiler;
    return *compiler;
  }

  bool Add(BackgroundJob job) {
    const std::lock_guard lock(mutex_);
    if (!ir::MayBeginInBackground()) return false;
    if (!has_thread_) {
      try {
        std::thread([this] { Work(); }).detach();
      } catch (const std::system_error&) {  // NOLINT: the caller does without
        return false;
      }
      has_thread_ = true;
    }
    jobs_.push_back(std::move(job));
    changed_.notify_all();
    return true;
  }

  void Wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(
        lock, [this] { return !has_thread_ || ir::ProcessEnds() || (jobs_.empty() && !at_work_); });
  }

 private:
  BackgroundCompiler() { Join(); }

  void Work() {
    setpriority(PRIO_PROCESS, 0, kNice);  // on Linux of this thread alone
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return !jobs_.empty(); });
      if (std::exchange(fork_waits_, false)) changed_.wait_for(lock, kRest, [] { return false; });
      if (jobs_.empty()) continue;
      BackgroundJob job = std::move(jobs_.back());
      jobs_.pop_back();
      at_work_ = true;
      lock.unlock();
      Do(std::move(job));
      // Objects that LLVM made meanwhile are destroyed before what was registered earlier is called.
      if (!std::exchange(is_registered_, true)) std::atexit(ir::BeginProcessEnd);
      lock.lock();
      at_work_ = false;
      changed_.notify_all();
    }
  }
  // The job ends here, with all that it holds.
  static void Do(BackgroundJob job) {
    const ir::EndWaits end_waits;
    if (!ir::MayBeginInBackground()) return;
    const std::shared_lock compiling(CompileMutex());
    job();
    job = nullptr;
  }

  bool TryHold() override {
    if (!mutex_.try_lock()) return false;
    if (!at_work_) return true;
    fork_waits_ = true;
    mutex_.unlock();
    return false;
  }
  void Release() override { mutex_.unlock(); }
  // The child has no thread, and starts one for its next job.
  void StartAnew(bool held) override {
    if (held)
      mutex_.unlock();
    else
      new (&mutex_) std::mutex;
    new (&changed_) std::condition_variable;
    has_thread_ = at_work_ = fork_waits_ = false;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<BackgroundJob> jobs_;  // the newest at the back
  bool is_registered_ = false;      // of the thread alone
  bool has_thread_ = false, at_work_ = false, fork_waits_ = false;
};

}  // namespace

bool DoInBackground(BackgroundJob job) { return BackgroundCompiler::Get().Add(std::move(job)); }
void WaitForBackground() { BackgroundCompiler::Get().Wait(); }

}  // namespace lazuli::cpu
