#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "ir/support/parallel_for.h"
#include "ir/support/parallel_for_internal.h"

namespace lazuli::ir {
namespace {

thread_local bool in_region = false;

// Workers that sleep between regions. One region is open at a time; a second thread that wants one
// runs its loop itself.
class Pool {
 public:
  explicit Pool(int workers) {
    // Detached, and the pool is never destroyed: a process may exit while they sleep.
    for (int i = 0; i < workers; ++i) std::thread([this] { Work(); }).detach();
  }

  // False if the pool is busy; then nothing has run.
  bool Run(const internal::Chunks& chunks, absl::FunctionRef<void(int64_t, int64_t)> body) {
    std::unique_lock region(region_, std::try_to_lock);
    if (!region) return false;
    Job job{chunks, body, internal::FloatMode::Current()};
    {
      std::lock_guard lock(mutex_);
      job_ = &job;
      ++generation_;
    }
    wake_.notify_all();
    job.Help();
    std::unique_lock lock(mutex_);
    job_ = nullptr;  // a worker that wakes only now finds nothing to do
    idle_.wait(lock, [&] { return working_ == 0; });
    return true;
  }

 private:
  struct Job {
    internal::Chunks chunks;
    absl::FunctionRef<void(int64_t, int64_t)> body;
    internal::FloatMode mode;
    std::atomic<int64_t> next{0};

    void Help() {
      in_region = true;
      for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < chunks.count;) {
        body(chunks.begin(i), chunks.end(i));
      }
      in_region = false;
    }
  };

  void Work() {
    uint64_t seen = 0;
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [&] { return generation_ != seen; });
      seen = generation_;
      Job* job = job_;
      if (job == nullptr) continue;
      ++working_;
      lock.unlock();
      job->mode.Apply();
      job->Help();
      lock.lock();
      if (--working_ == 0) idle_.notify_one();
    }
  }

  std::mutex region_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable idle_;
  Job* job_ = nullptr;
  uint64_t generation_ = 0;
  int working_ = 0;
};

}  // namespace

void ParallelFor(int64_t n, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  if (n <= 0) return;
  const internal::Chunks chunks(n, grain, NumThreads());
  if (chunks.count > 1 && !in_region) {
    static Pool* pool = new Pool(NumThreads() - 1);
    if (pool->Run(chunks, body)) return;
  }
  chunks.RunInline(body);
}

}  // namespace lazuli::ir
