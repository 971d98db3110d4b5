#include "lazy/execution/executor.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "backend/client/scratch_plan.h"
#include "ir/support/blocking.h"
#include "ir/support/data_memory.h"
#include "ir/support/error_place.h"
#include "ir/support/fork.h"
#include "ir/support/metrics.h"
#include "ir/support/run_step.h"
#include "ir/support/runtime.h"
#include "ir/support/spin.h"
#include "lazy/execution/failure.h"
#include "lazy/tensor/interruption.h"
#include "lazy/tensor/site_span.h"

namespace lazuli::lazy {
namespace {

// The fault of each input that has no elements because an earlier run failed; none if all have.
using Failed = PooledVector<FaultPtr>;
bool HasFailed(const Failed& failed, std::size_t i) { return !failed.empty() && failed[i]; }

// Waits for the inputs. One that failed gets zeros to compute with: what comes of them is thrown
// away.
absl::Status TakeInputs(const Run& run, backend::Buffers& inputs, Failed& failed) {
  inputs.reserve(run.inputs.size());
  for (std::size_t i = 0; i < run.inputs.size(); ++i) {
    absl::StatusOr<backend::BufferPtr> buffer = run.inputs[i]->Wait();
    if (!buffer.ok()) {
      if (!run.inputs[i]->has_failed()) return buffer.status();
      failed.resize(run.inputs.size());
      failed[i] = run.inputs[i]->fault();
      const Literal zeros(run.inputs[i]->shape());
      buffer = run.device.client->FromHost({zeros.raw(), &zeros.shape()}, nullptr, run.device);
      if (!buffer.ok()) return buffer.status();
    }
    inputs.push_back(*std::move(buffer));
  }
  return absl::OkStatus();
}

// The fault of an input that an update is computed from; null if there is none. The run then takes no
// updates: it is the rest of a step that failed, or is made from the rest.
FaultPtr FaultOfUpdates(const Run& run, const Failed& inputs) {
  for (std::size_t leaf = 0; leaf < inputs.size(); ++leaf) {
    if (!inputs[leaf]) continue;
    for (std::size_t o = 0; o < run.updates.size(); ++o) {
      const Run::Update& update = run.updates[o];
      if (!update.any() || !run.program->dependence.OutputOnLeaf(o, leaf)) continue;
      const bool over_failed = update.input >= 0
                                   ? HasFailed(inputs, static_cast<std::size_t>(update.input))
                                   : update.kept->has_failed();
      if (!over_failed) return inputs[leaf];
    }
  }
  return nullptr;
}

// The checks that failed, with their faults: the one that was recorded first comes first.
struct FailedCheck {
  std::size_t check;
  FaultPtr fault;
};
struct CheckResults {
  PooledVector<FailedCheck> failed;
  // Of a failed input, if only the zeros that stand for it failed a check. That is not a new error.
  FaultPtr of_zeros;
};

FaultPtr FaultOfCheckedInput(const Run& run, std::size_t check, const Failed& inputs) {
  for (std::size_t leaf = 0; leaf < inputs.size(); ++leaf) {
    if (inputs[leaf] && run.program->dependence.CheckOnLeaf(check, leaf)) return inputs[leaf];
  }
  return nullptr;
}

// A result that is computed through a check may get the fault itself, which is not to own it.
Fault::FailedOp CheckedOf(const Run& run, std::size_t check) {
  Fault::FailedOp checked{.site = run.checks[check].site};
  for (const int32_t integers : run.program->checked_integers[check]) {
    if (integers >= 0)
      checked.given.push_back(run.inputs[static_cast<std::size_t>(integers)]);
    else if (const auto& result = run.outputs[static_cast<std::size_t>(-1 - integers)];
             !result->doubtful())
      checked.given.push_back(result);
  }
  return checked;
}

absl::StatusOr<CheckResults> EvaluateChecks(const Run& run, const backend::Buffers& outputs,
                                            const Failed& inputs) {
  struct Found {
    std::size_t check;
    int64_t value;
  };
  PooledVector<Found> found;
  CheckResults results;
  const std::size_t first = run.outputs.size();
  for (std::size_t i = 0; i < run.program->checks().size(); ++i) {
    LAZULI_ASSIGN_OR_RETURN(const int64_t value, ReadNumber(*outputs[first + i]));
    if (value == lowering::RuntimeCheck::kNoOffender) continue;
    if (FaultPtr fault = FaultOfCheckedInput(run, i, inputs))
      results.of_zeros = std::move(fault);
    else
      found.push_back({i, value});
  }
  std::stable_sort(found.begin(), found.end(), [&](const Found& a, const Found& b) {
    return run.checks[a.check].order < run.checks[b.check].order;
  });
  for (const auto& [check, value] : found) {
    absl::Status error = ErrorOfCheck(run.program->checks()[check].message,
                                      run.checks[check].function, run.checks[check].site, value);
    results.failed.push_back(
        {check, results.failed.empty()
                    ? MakeIntrusive<Fault>(std::move(error), run.outcome)
                    : MakeIntrusive<Fault>(std::move(error), results.failed[0].fault)});
    results.failed.back().fault->SetChecked(CheckedOf(run, check));
  }
  return results;
}

// The inputs whose memory the run may overwrite: outputs update them, and nobody else holds them -
// no tensor, no graph of another context (the handle), no reader or export (the buffer). Asked when
// the run starts, since a run in flight before it may have been an owner; nobody can become one
// now.
PooledVector<uint8_t> TakenOver(const Run& run, const backend::Buffers& inputs,
                                const Failed& failed, bool takes_updates) {
  constexpr int64_t kHandleAndRun = 2;
  PooledVector<uint8_t> taken(inputs.size());
  if (!takes_updates) return taken;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (run.program->updated_by[i] < 0) continue;
    const Donation donation = HasFailed(failed, i)                     ? Donation::kFailed
                              : run.inputs[i]->use_count() != 1        ? Donation::kHeld
                              : inputs[i].use_count() != kHandleAndRun ? Donation::kRead
                                                                       : Donation::kTaken;
    run.program->donations[i].store(donation, std::memory_order_relaxed);
    taken[i] = donation == Donation::kTaken;
    if (taken[i] != 0) Add(Counter::kDonations);
  }
  return taken;
}

absl::StatusOr<backend::Buffers> RunProgram(const Run& run, const backend::Buffers& inputs,
                                            absl::Span<const uint8_t> donated) {
  run.program->runs.fetch_add(1, std::memory_order_relaxed);
  const ir::RunScope scope;
  absl::StatusOr<backend::Buffers> outputs = run.program->launcher.Run({.buffers = inputs,
                                                                        .scalars = run.scalars,
                                                                        .donated = donated,
                                                                        .device = run.device,
                                                                        .asked = run.asked});
  Executor::RunNested();  // what a function has submitted and not read
  // An op that fails names its own line; memory is obtained for all of them, before the first.
  if (absl::IsResourceExhausted(outputs.status())) {
    return ir::AtSite(Prefixed(outputs.status(), Str(run.program->name(), ": ")), run.site);
  }
  return outputs;
}

// The fault of an output: that of a failed input or check that it is computed from; else null.
FaultPtr FaultOfOutput(const Run& run, std::size_t output, const Failed& inputs,
                       const CheckResults& checks) {
  const Dependence& dependence = run.program->dependence;
  for (std::size_t leaf = 0; leaf < inputs.size(); ++leaf) {
    if (inputs[leaf] && dependence.OutputOnLeaf(output, leaf)) return inputs[leaf];
  }
  for (const FailedCheck& failed : checks.failed) {
    if (dependence.OutputOnCheck(output, failed.check)) return failed.fault;
  }
  // The program wrote nothing to what this is, or is computed from.
  if (run.program->updates[output] < 0 && run.program->after_guard[output] == 0) return nullptr;
  return checks.failed.empty() ? checks.of_zeros : checks.failed[0].fault;
}

// LAZULI_DEBUG_NANS: of the values that have a NaN though no operand has one, that of the op that was
// recorded first, as an error.
absl::Status FirstNaN(const Run& run, const backend::Buffers& outputs) {
  const std::vector<lowering::EmittedNaN>& values = run.program->nans;
  if (values.empty()) return absl::OkStatus();
  const std::size_t first = run.outputs.size() + run.program->checks().size();
  std::vector<bool> has_nan(values.size());
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < values.size(); ++i) {
    LAZULI_ASSIGN_OR_RETURN(const int64_t flag, ReadNumber(*outputs[first + i]));
    has_nan[i] = flag > 0;
    const bool made_here = has_nan[i] && !values[i].name.empty() &&
                           std::none_of(values[i].operands.begin(), values[i].operands.end(),
                                        [&](uint32_t operand) { return has_nan[operand]; });
    if (made_here && (!found || run.nans[i].order < run.nans[*found].order)) found = i;
  }
  if (!found) return absl::OkStatus();
  const absl::Status error = FailedPrecondition("the first NaN is in its result ",
                                                values[*found].shape, "; its operands have none");
  return ir::AtSite(ir::AddPlace(error, values[*found].name, ""), run.nans[*found].site);
}

// What an output that is not taken would have updated, for its handle.
struct Results {
  const backend::Buffers& inputs;
  const backend::Buffers& outputs;
  absl::Span<const uint8_t> donated;
};
void SetToOld(const Run& run, std::size_t output, const Results& results, const Failed& failed) {
  DataHandle& handle = *run.outputs[output];
  const auto& [input, kept, of_view] = run.updates[output];
  if (input < 0) {
    absl::StatusOr<backend::BufferPtr> old = kept->Wait();
    if (old.ok()) return handle.Set(*std::move(old));
    return handle.Set(kept->has_failed() ? kept->fault() : MakeIntrusive<Fault>(old.status()));
  }
  const auto i = static_cast<std::size_t>(input);
  if (HasFailed(failed, i)) return handle.Set(failed[i]);
  if (results.donated[i] == 0) return handle.Set(results.inputs[i]);
  handle.Set(results.outputs[static_cast<std::size_t>(run.program->updated_by[i])]);
}

void SetOutputs(const Run& run, const Results& results, const Failed& failed,
                const CheckResults& checks, bool takes_updates) {
  // Backwards: SetToOld() waits for the old value, which may be an output with a higher number.
  for (std::size_t o = run.outputs.size(); o-- > 0;) {
    if (!takes_updates && run.updates[o].any()) {
      SetToOld(run, o, results, failed);
      continue;
    }
    if (!takes_updates && run.updates[o].of_view) run.outputs[o]->Undo();
    FaultPtr fault = FaultOfOutput(run, o, failed, checks);
    if (fault)
      run.outputs[o]->Set(std::move(fault));
    else
      run.outputs[o]->Set(results.outputs[o]);
  }
}

// Tells the context, of which nobody knows yet that this run took no updates. What an earlier run's
// fault keeps from being taken is told with that one, unless it was told before this run was made.
void TellContext(const Run& run, const CheckResults& checks, const FaultPtr& input) {
  run.context->NoteNotTaken(run.outcome);
  if (!checks.failed.empty()) {
    run.context->SetFailure(checks.failed[0].fault, run.told);
  } else if (input->WasToldBefore(run.told)) {
    run.context->SetFailure(MakeIntrusive<Fault>(input->status(), run.outcome));
  } else if (!input->told()) {
    run.context->SetFailure(input);  // of another context's run, perhaps
  }
}

void CountBytes(backend::Device device) {
  const absl::StatusOr<backend::MemoryStats> stats = device.client->memory_stats(device);
  if (stats.ok()) ir::TraceCounter("bytes in use", stats->bytes_in_use);
}

// Runs the program and sets the outputs. What it returns is a failure of the whole run, and then
// none is set.
absl::Status RunAndSet(const Run& run) try {
  backend::Buffers inputs;
  Failed failed_inputs;
  LAZULI_RETURN_IF_ERROR(TakeInputs(run, inputs, failed_inputs));
  FaultPtr input_fault = FaultOfUpdates(run, failed_inputs);
  const PooledVector<uint8_t> donated =
      TakenOver(run, inputs, failed_inputs, /*takes_updates=*/!input_fault);
  LAZULI_ASSIGN_OR_RETURN(const backend::Buffers outputs, RunProgram(run, inputs, donated));
  LAZULI_ASSIGN_OR_RETURN(CheckResults checks, EvaluateChecks(run, outputs, failed_inputs));
  const absl::Status nan = FirstNaN(run, outputs);
  if (!input_fault) input_fault = checks.of_zeros;
  const bool takes_updates = checks.failed.empty() && !input_fault;
  if (run.outcome) takes_updates ? run.outcome->SetTaken() : run.outcome->SetNotTaken();
  if (!nan.ok() && takes_updates) run.context->SetFailure(MakeIntrusive<Fault>(nan));
  if (takes_updates && failed_inputs.empty()) {
    for (std::size_t o = 0; o < run.outputs.size(); ++o) run.outputs[o]->Set(outputs[o]);
    return absl::OkStatus();
  }
  // A context already has the error of an earlier run.
  if (!takes_updates) TellContext(run, checks, input_fault);
  SetOutputs(run, {inputs, outputs, donated}, failed_inputs, checks, takes_updates);
  return absl::OkStatus();
} catch (const ir::NoDataMemory& error) {
  return ir::AtSite(ResourceExhausted(run.program->name(), ": ", error.what()), run.site);
} catch (const std::bad_alloc&) {
  const ir::Site& site = ir::GetSite(run.site);
  ir::EndWithoutMemory("running a program", site.file, site.line);
}

}  // namespace

// Those of all devices. A process forks while nothing runs and nothing is queued; the child makes
// executors of its own.
class Executors final : private ir::ForkParticipant {
 public:
  static Executors& Get() { return ir::Runtime::Get().Of<Executors>(); }
  Executors() { Join(); }
  // Of threads that make the first one together all but one are dropped.
  ~Executors() override { Leave(); }

  Executor& Of(backend::Device device) {
    if (Executor* const executor = Find(device)) return *executor;
    const std::lock_guard lock(making_);
    if (Executor* const executor = Find(device)) return *executor;
    // Stopped at exit, never destroyed: other threads may still wait on it.
    auto* const made = std::unique_ptr<Executor>(new Executor(device, runs_before_fork_)).release();
    made->next_ = first_;
    first_.store(made, std::memory_order_release);
    return *made;
  }
  template <class F>
  void ForEach(F&& f) const {
    for (Executor* e = first_.load(std::memory_order_acquire); e != nullptr; e = e->next_) f(*e);
  }

  static void StopAtExit() {
    std::atexit([] {
      Context::EndProcess();
      Get().ForEach([](Executor& e) { e.Stop(); });
    });
  }
  // Exit handlers run in reverse order of registration: what libraries made while they planned or
  // ran goes before StopAtExit's turn comes. What the thread that exits has of its own goes before
  // all of them.
  struct WaitsAtItsEnd {
    WaitsAtItsEnd() = default;
    WaitsAtItsEnd(const WaitsAtItsEnd&) = delete;
    WaitsAtItsEnd& operator=(const WaitsAtItsEnd&) = delete;
    ~WaitsAtItsEnd() { Executor::WaitForAll(nullptr); }
  };

 private:
  Executor* Find(backend::Device device) const {
    for (Executor* e = first_.load(std::memory_order_acquire); e != nullptr; e = e->next_) {
      if (e->device_ == device) return e;
    }
    return nullptr;
  }

  bool TryHold() override {
    const Executor* busy = nullptr;
    ForEach([&](Executor& e) {
      if (busy != nullptr) return;
      if (!e.mu_.try_lock()) {
        busy = &e;
      } else if (e.finished_count_ != e.submitted_count_) {
        e.mu_.unlock();
        busy = &e;
      }
    });
    if (busy != nullptr) ReleaseUpTo(busy);
    return busy == nullptr;
  }
  void Release() override { ReleaseUpTo(nullptr); }
  void ReleaseUpTo(const Executor* end) const {
    for (Executor* e = first_; e != end; e = e->next_) e->mu_.unlock();
  }
  void StartAnew(bool) override {
    // Tensors of this process count the runs of the one before.
    ForEach([this](Executor& e) {
      runs_before_fork_ = std::max<uint64_t>(runs_before_fork_, e.submitted_count_);
    });
    first_ = nullptr;
  }

  ir::ForkMutex making_;
  std::atomic<Executor*> first_{nullptr};
  uint64_t runs_before_fork_ = 0;
};

Executor& Executor::Of(backend::Device device) { return Executors::Get().Of(device); }

void Executor::WaitForAll(const backend::ComputationClient* client) {
  RunNested();
  Executors::Get().ForEach([client](Executor& e) {
    if (client != nullptr && e.device_.client != client) return;
    if (e.IsOwnThread()) return;  // in a function that its run calls
    std::unique_lock lock(e.mu_);
    e.finished_.wait(lock, [&] { return e.finished_count_ == e.submitted_count_ || e.stopping_; });
  });
}

absl::Status Executor::Wait(const Context::LastRuns& runs) {
  RunNested();
  for (const auto& [device, number] : runs) LAZULI_RETURN_IF_ERROR(Of(device).Wait(number));
  return absl::OkStatus();
}

Executor::Executor(backend::Device device, uint64_t runs_before)
    : device_(device),
      submitted_count_(runs_before),
      finished_count_(runs_before),
      thread_([this] { Loop(); }) {}

bool Executor::TryAdmit() {
  if (IsOwnThread()) return true;
  const std::lock_guard lock(mu_);
  if (runs_in_flight_ >= kMaxInFlight && !stopping_) return false;
  ++runs_in_flight_;
  return true;
}

void Executor::Admit() {
  if (TryAdmit()) return;
  const ir::WaitScope waits;
  std::unique_lock lock(mu_);
  finished_.wait(lock, [&] { return runs_in_flight_ < kMaxInFlight || stopping_; });
  ++runs_in_flight_;
}

void Executor::Dismiss() {
  if (IsOwnThread()) return;
  {
    const std::lock_guard lock(mu_);
    --runs_in_flight_;
  }
  finished_.notify_all();
}

uint64_t Executor::Submit(Entry run) noexcept {
  if (IsOwnThread()) {
    nested_.splice(nested_.end(), run);
    return 0;
  }
  thread_local const Executors::WaitsAtItsEnd waits;
  std::unique_lock lock(mu_);
  bytes_in_flight_ += run.front().bytes;
  queue_.splice(queue_.end(), run);
  const uint64_t number = ++submitted_count_;
  const bool first = !std::exchange(has_had_work_, true);
  lock.unlock();
  if (first) Executors::StopAtExit();
  submitted_.notify_one();
  return number;
}

void Executor::RunNested() {
  if (!ir::RunScope::IsActive()) return;
  Executors::Get().ForEach([](Executor& e) {
    if (!e.IsOwnThread()) return;
    while (!e.nested_.empty()) {
      Entry entry;
      entry.splice(entry.begin(), e.nested_, e.nested_.begin());
      Execute(entry.front());
    }
  });
}

absl::Status Executor::Wait(uint64_t number) {
  if (finished_count_ >= number) return absl::OkStatus();
  const SiteSpan span(ir::SpanKind::kWait, "wait");
  if (ir::SpinUntil([&] { return finished_count_ >= number; })) return absl::OkStatus();
  const ir::WaitScope waits;
  std::unique_lock lock(mu_);
  return InterruptibleWait(finished_, lock, [&] { return finished_count_ >= number || stopping_; });
}

int64_t Executor::BytesInFlight() {
  std::lock_guard lock(mu_);
  return bytes_in_flight_;
}

std::string Executor::WhatRuns() {
  std::string text;
  Executors::Get().ForEach([&](Executor& e) {
    CachedProgramPtr program;
    SiteId site = ir::kNoSite;
    {
      std::lock_guard lock(e.mu_);
      program = e.running_;
      site = e.running_site_;
    }
    if (program == nullptr) return;
    text += Str(program->name(), ir::InParentheses(site), " on ", e.device_);
    const auto* const plan =
        dynamic_cast<const backend::HasScratchPlan*>(program->launcher.executable());
    const std::vector<std::string> steps =
        plan == nullptr ? std::vector<std::string>() : plan->scratch_plan().steps;
    const auto step = static_cast<std::size_t>(e.step_.load(std::memory_order_relaxed));
    if (step < steps.size())
      text += Str(": step ", step + 1, " of ", steps.size(), ", ", steps[step]);
    text += "\n";
  });
  return text;
}

backend::Device Executor::DeviceOfThread() {
  backend::Device device;
  Executors::Get().ForEach([&device](const Executor& e) {
    if (e.IsOwnThread()) device = e.device_;
  });
  return device;
}

void Executor::Loop() {
  ir::StepOfRun().Set(&step_);
  // A loop that reads its loss records the next step in less time than waking takes.
  constexpr int kIdleSpins = 4 * ir::kWakeSpins;
  bool has_track = false;
  while (true) {
    Entry entry;
    ir::SpinUntil([this] { return submitted_count_ != finished_count_; }, kIdleSpins);
    {
      std::unique_lock lock(mu_);
      submitted_.wait(lock, [this] { return !queue_.empty() && !stopping_; });
      entry.splice(entry.begin(), queue_, queue_.begin());
      running_ = entry.front().program;
      running_site_ = entry.front().site;
      step_ = 0;
    }
    Run& run = entry.front();
    if (ir::IsTracing() && !std::exchange(has_track, true))
      ir::NameTrack(device_.ToString(), /*device=*/true);
    Execute(run);
    const int64_t bytes = run.bytes;
    {
      std::lock_guard lock(mu_);
      running_.reset();  // the run has it, too
    }
    entry.clear();  // buffers go before the next run allocates
    {
      std::lock_guard lock(mu_);
      --runs_in_flight_;
      bytes_in_flight_ -= bytes;
      ++finished_count_;
    }
    finished_.notify_all();
  }
}

void Executor::Execute(Run& run) {
  const SiteSpan span(ir::SpanKind::kRun, run.program->name(), run.site, run.number);
  ScopedTimer timer(Timer::kExecuteTime);
  absl::Status failed = RunAndSet(run);
  if (ir::IsTracing()) CountBytes(run.device);
  if (failed.ok()) return;
  failed = ReportFailure(failed, *run.program, run.device, "run", run.site);
  if (run.outcome) run.outcome->SetNotTaken();
  const auto fault = MakeIntrusive<Fault>(std::move(failed), run.outcome);
  run.context->SetFailure(fault);
  for (const DataPtr& output : run.outputs) output->Set(fault);
}

void Executor::Stop() {
  if (std::this_thread::get_id() == thread_.get_id()) return;  // what it runs ends the process
  std::unique_lock lock(mu_);
  stopping_ = true;
  finished_.notify_all();
  finished_.wait(lock, [this] { return running_ == nullptr; });
}

}  // namespace lazuli::lazy
