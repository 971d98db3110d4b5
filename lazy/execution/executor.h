// The execution thread: runs programs in the order they were submitted, one at a time, whatever the
// number of devices.
//
// One thread opens all parallel regions of the process: two at once would share the cores. At most
// two runs are in flight on a device: the third Submit waits. A run that fails sets its outputs and
// its context to the error. Where a check failed, or some inputs are those of a failed run, only
// the outputs that are computed from them get the error.
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>
#include <string_view>
#include <thread>

#include "ir/support/hash_map.h"
#include "lazy/execution/program.h"
#include "lazy/tensor/context.h"

namespace lazuli::lazy {

struct Run {
  ProgramPtr program;
  backend::Device device;
  PooledVector<DataPtr> inputs;
  PooledVector<uint64_t> scalars;
  PooledVector<DataPtr> outputs;
  struct Check {  // of program->checks, in this run's trace
    SiteId site = ir::kNoSite;
    std::string_view function;  // that the user called; empty: the op
    uint32_t order = 0;         // of recording
  };
  PooledVector<Check> checks;
  SiteId site = ir::kNoSite;  // of the call that synced
  IntrusivePtr<Context> context;
  int64_t bytes = 0;  // to obtain when it starts
};

class Executor {
 public:
  static constexpr int kMaxInFlight = 2;

  // A list of one run, which can be queued without asking for memory.
  using Entry = std::list<Run, PoolAllocator<Run>>;

  // Made with its thread at first use; in the child of a fork anew.
  static Executor& Get();
  // Waits until the device may have one more run, and counts it. Memory is asked for here, where no
  // tensor waits for the run yet, and not by Submit.
  void Admit(backend::Device device);
  // Queues a run that was admitted; its inputs come from runs submitted before. Returns its number
  // for Wait.
  uint64_t Submit(Entry run) noexcept;
  // Blocks until the run and all before it are done, or a signal ends the wait.
  absl::Status Wait(uint64_t number);
  // Bytes that runs in flight on the device may have yet to obtain.
  int64_t BytesInFlight(backend::Device device);
  void WaitForAll();

 private:
  friend class ForkedExecutor;
  explicit Executor(uint64_t runs_before);
  void Loop();
  void Stop();
  static void StopAtExit();
  static void Execute(Run& run);

  std::mutex mu_;
  std::condition_variable submitted_;
  std::condition_variable finished_;
  Entry queue_;
  struct InFlight {
    int runs = 0;
    int64_t bytes = 0;
  };
  HashMap<std::pair<void*, int32_t>, InFlight> in_flight_;  // by device
  // Written under the lock.
  std::atomic<uint64_t> submitted_count_;
  std::atomic<uint64_t> finished_count_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace lazuli::lazy
