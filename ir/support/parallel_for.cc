#include "ir/support/parallel_for.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <thread>
#include <utility>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "ir/support/fork.h"
#include "ir/support/spin.h"

namespace lazuli::ir {
namespace {

// Contiguous chunks of equal size (but the last), at most one per thread.
struct Chunks {
  int64_t n, size, count;
  Chunks(int64_t n, int64_t grain, int64_t threads)
      : n(n),
        size(std::max({grain, (n + threads - 1) / threads, int64_t{1}})),
        count((n + size - 1) / size) {}
  int64_t begin(int64_t i) const { return i * size; }
  int64_t end(int64_t i) const { return std::min(n, (i + 1) * size); }
  // Chunk after chunk, so that what a body does for each is the same as in a region.
  void RunInline(absl::FunctionRef<void(int64_t, int64_t)> body) const {
    for (int64_t i = 0; i < count; ++i) body(begin(i), end(i));
  }
};

// The floating-point mode (rounding, flushing of subnormals) of the thread that opens a region
// holds in all of it.
class FloatMode {
 public:
#if defined(__SSE2__)
  static FloatMode Current() { return FloatMode(_mm_getcsr()); }
  // Exception flags are no mode: they stay with the thread.
  void Apply() const {
    if (((_mm_getcsr() ^ mode_) & ~kFlags) != 0) _mm_setcsr(mode_ & ~kFlags);
  }

 private:
  static constexpr unsigned kFlags = 0x3f;
  explicit FloatMode(unsigned mode) : mode_(mode) {}
  unsigned mode_;
#else
  static FloatMode Current() { return {}; }
  void Apply() const {}
#endif
};

thread_local bool in_region = false;
thread_local Team team = nullptr;

// A loop whose chunks threads take one after the other.
struct Job {
  Chunks chunks;
  absl::FunctionRef<void(int64_t, int64_t)> body;
  FloatMode mode;
  std::atomic<int64_t> next{0};

  void Help() {
    in_region = true;
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < chunks.count;) {
      body(chunks.begin(i), chunks.end(i));
    }
    in_region = false;
  }
  // On a thread that somebody else uses, too.
  static void HelpAsGuest(void* job) {
    const FloatMode own = FloatMode::Current();
    static_cast<Job*>(job)->mode.Apply();
    static_cast<Job*>(job)->Help();
    own.Apply();
  }
};

// Workers that sleep between regions, though not at once: regions often follow each other. One
// region is open at a time; a second thread that wants one runs its loop itself. The caller works,
// too, and then waits only for workers that have begun: on a busy machine one that gets no
// processor holds nobody up. No locks.
class Pool final : private ForkParticipant {
 public:
  // The process's. In the child of a fork, which has none of its threads, it starts anew.
  static Pool& Get() {
    static auto* const pool = new Pool;
    return *pool;
  }
  // False if the pool is busy; then nothing has run.
  bool Run(const Chunks& chunks, absl::FunctionRef<void(int64_t, int64_t)> body) {
    if (busy_.exchange(true, std::memory_order_acquire)) return false;
    Grow(chunks.count - 1);
    Job job{chunks, body, FloatMode::Current()};
    job_ = &job;
    ++generation_;
    generation_.notify_all();
    job.Help();
    job_ = nullptr;  // a worker that comes only now finds nothing to do
    if (!SpinUntil([this] { return working_ == 0; })) {
      for (int working; (working = working_) != 0;) working_.wait(working);
    }
    busy_.store(false, std::memory_order_release);
    return true;
  }

 private:
  Pool() { Join(); }

  bool TryHold() override { return !busy_.exchange(true, std::memory_order_acquire); }
  void Release() override { busy_.store(false, std::memory_order_release); }
  void StartAnew(bool) override {
    workers_ = 0;
    working_ = 0;
    job_ = nullptr;
    busy_ = false;
  }

  // Detached, and the pool is never destroyed: a process may exit while they sleep. Where the
  // system gives no more threads, fewer do the work.
  void Grow(int64_t workers) {
    try {
      for (; workers_ < workers; ++workers_) std::thread([this] { Work(); }).detach();
    } catch (const std::exception&) {  // NOLINT: nothing is left to do
    }
  }

  void Work() {
    for (uint32_t seen = 0;;) {
      if (!SpinUntil([&] { return generation_ != seen; })) generation_.wait(seen);
      seen = generation_;
      // In this order, which is total: if the job is still there, the caller sees the worker.
      ++working_;
      if (Job* job = job_) {
        job->mode.Apply();
        job->Help();
      }
      if (--working_ == 0) working_.notify_one();
    }
  }

  std::atomic<bool> busy_{false};
  std::atomic<Job*> job_{nullptr};
  std::atomic<uint32_t> generation_{0};
  std::atomic<int> working_{0};
  int64_t workers_ = 0;  // of whoever has set busy_
};

}  // namespace

ScopedTeam::ScopedTeam(Team of) : before_(std::exchange(team, of)) {}
ScopedTeam::~ScopedTeam() { team = before_; }

void ParallelFor(int64_t n, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  if (n <= 0) return;
  const Chunks chunks(n, grain, NumThreads());
  if (chunks.count > 1 && !in_region) {
    if (team != nullptr) {
      Job job{chunks, body, FloatMode::Current()};
      return team(&Job::HelpAsGuest, &job);
    }
    if (Pool::Get().Run(chunks, body)) return;
  }
  chunks.RunInline(body);
}

}  // namespace lazuli::ir
