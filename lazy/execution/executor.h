// Executors: for each device a queue of runs and the thread that runs them, one at a time and in the
// order in which they were submitted.
//
// Programs of two devices run at the same time, as a collective would need them to. Where both are
// the CPU, one of them has the workers of ParallelFor and the other runs its loops alone, so that two
// teams never share the cores. At most two runs are in flight on a device: the third Submit waits. A
// run that fails sets its outputs and its context to the error. Where a check failed, or some inputs
// are those of a failed run, only the outputs that are computed from them get the error; and none of the
// updates in place is taken, if a check failed or one of them is computed from such an input.
#pragma once

#include <atomic>
#include <condition_variable>
#include <list>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "lazy/execution/cached_program.h"
#include "lazy/tensor/context.h"

namespace lazuli::lazy {

struct Run {
  CachedProgramPtr program;
  backend::Device device;
  PooledVector<DataPtr> inputs;
  PooledVector<uint64_t> scalars;
  PooledVector<DataPtr> outputs;
  struct Check {  // of program->checks(), in this run's trace
    SiteId site = ir::kNoSite;
    FunctionName function;  // that the user called; empty: the op
    uint32_t order = 0;     // of recording
  };
  PooledVector<Check> checks;
  PooledVector<Check> nans;  // the same of program->nans
  struct Update {            // of an output: what it is written over
    int32_t input = -1;      // which input has that
    DataPtr kept;            // it, if none has; null for an output that updates nothing
    bool of_view = false;    // the output is a view: it may be derived anew from its base
    bool any() const { return input >= 0 || kept; }
  };
  PooledVector<Update> updates;
  GraphOutcomePtr outcome;    // of the graph, if anybody waits for it
  uint64_t told = 0;          // Fault::Told() when the run was made
  SiteId site = ir::kNoSite;  // of the call that synced
  IntrusivePtr<Context> context;
  int64_t bytes = 0;                    // to obtain when it starts
  int64_t number = 0;                   // of all runs of the process, for traces
  hlo::Peers::Clock::time_point asked;  // the same for all devices of a sync
};

class Executor {
 public:
  static constexpr int kMaxInFlight = 2;

  // A list of one run, which can be queued without asking for memory.
  using Entry = std::list<Run, PoolAllocator<Run>>;

  // The device's, made with its thread at first use; in the child of a fork anew.
  static Executor& Of(backend::Device device);
  // Waits until everything is done that was submitted for devices of the client; null: of all.
  static void WaitForAll(const backend::ComputationClient* client);
  // Runs what a function that a run calls has submitted to the device whose thread it runs on: that
  // thread is the one that would run it. Without effect on other threads.
  static void RunNested();
  // Whose thread this is; without a client if it is none's.
  static backend::Device DeviceOfThread();
  // Blocks until the context's last runs, one for each device, and all before them are done, or a
  // signal ends the wait.
  static absl::Status Wait(const Context::LastRuns& runs);

  // Waits until the device may have one more run, and counts it. Memory is asked for here, where no
  // tensor waits for the run yet, and not by Submit.
  void Admit();
  bool TryAdmit();  // false if it has to wait
  void Dismiss();   // a run that was admitted and is not submitted
  // Queues a run that was admitted; its inputs come from runs submitted before. Returns its number
  // for Wait.
  uint64_t Submit(Entry run) noexcept;
  // Blocks until the run and all before it are done, or a signal ends the wait.
  absl::Status Wait(uint64_t number);
  // Bytes that runs in flight may have yet to obtain.
  int64_t BytesInFlight();
  // "SyncTensorsGraph.3 (train.cc:41) on cpu:0: step 12 of 40, fusion.7", a line for each device that
  // runs something.
  static std::string WhatRuns();

 private:
  friend class Executors;
  Executor(backend::Device device, uint64_t runs_before);
  [[noreturn]] void Loop();
  void Stop();  // lets what runs end, and nothing more begin
  static void Execute(Run& run);
  bool IsOwnThread() const { return std::this_thread::get_id() == thread_.get_id(); }

  const backend::Device device_;
  std::mutex mu_;
  std::condition_variable submitted_;
  std::condition_variable finished_;
  Entry queue_;
  Entry nested_;  // of its own thread alone
  int runs_in_flight_ = 0;
  int64_t bytes_in_flight_ = 0;
  // Written under the lock.
  std::atomic<uint64_t> submitted_count_;
  bool has_had_work_ = false;
  std::atomic<uint64_t> finished_count_;
  bool stopping_ = false;
  CachedProgramPtr running_;  // null: nothing runs
  SiteId running_site_ = ir::kNoSite;
  std::atomic<int32_t> step_{0};  // of it
  Executor* next_ = nullptr;      // of another device
  // Never joined: what libraries have of their own in it would look for what went at exit.
  std::thread thread_;
};

}  // namespace lazuli::lazy
