#include "lazy/execution/executor.h"

#include <cstdlib>
#include <new>
#include <utility>

#include "ir/support/metrics.h"
#include "ir/support/span.h"
#include "ir/support/spin.h"
#include "lazy/tensor/interruption.h"

namespace lazuli::lazy {
namespace {

std::pair<void*, int32_t> DeviceKey(backend::Device device) {
  return {device.client, device.ordinal};
}

// "cross_entropy: label 12 is out of range [0, 10) (train.cc:41)", or OK.
absl::Status EvaluateChecks(const Run& run, const backend::Buffers& outputs) {
  const std::size_t first = run.outputs.size();
  for (std::size_t i = 0; i < run.program->checks.size(); ++i) {
    absl::StatusOr<Literal> offender = run.device.client->ToHost(*outputs[first + i]);
    if (!offender.ok()) return offender.status();
    const int64_t value = offender->data<int64_t>()[0];
    if (value == lowering::RuntimeCheck::kNoOffender) continue;
    const lowering::EmittedCheck& check = run.program->checks[i];
    return OutOfRange(check.before, value, check.after, ir::InParentheses(run.check_sites[i]));
  }
  return absl::OkStatus();
}

// The inputs whose memory the run may overwrite: outputs update them, and nobody else holds them -
// no tensor, no graph of another context (the handle), no reader or export (the buffer). Asked when
// the run starts, since a run in flight before it may have been an owner; nobody can become one
// now.
PooledVector<uint8_t> TakenOver(const Run& run, const backend::Buffers& inputs) {
  constexpr int64_t kHandleAndRun = 2;
  PooledVector<uint8_t> taken(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    taken[i] = run.program->updated[i] != 0 && run.inputs[i]->use_count() == 1 &&
               inputs[i].use_count() == kHandleAndRun;
    if (taken[i] != 0) Add(Counter::kDonations);
  }
  return taken;
}

absl::StatusOr<backend::Buffers> RunProgram(const Run& run) try {
  backend::Buffers inputs;
  inputs.reserve(run.inputs.size());
  for (const DataPtr& input : run.inputs) {
    absl::StatusOr<backend::BufferPtr> buffer = input->Wait();
    if (!buffer.ok()) return buffer.status();
    inputs.push_back(*std::move(buffer));
  }
  const PooledVector<uint8_t> donated = TakenOver(run, inputs);
  absl::StatusOr<backend::Buffers> outputs = run.program->executable->Execute(
      {.buffers = inputs, .scalars = run.scalars, .donated = donated});
  // An op that fails names its own line; memory is obtained for all of them, before the first.
  if (absl::IsResourceExhausted(outputs.status())) {
    return ResourceExhausted(run.program->name, ": ", Message(outputs.status()),
                             ir::InParentheses(run.site));
  }
  if (!outputs.ok()) return outputs.status();
  const std::size_t expected = run.outputs.size() + run.program->checks.size();
  if (outputs->size() != expected) {
    return Internal(run.program->name, ": gave ", outputs->size(), " results, ", expected,
                    " were expected");
  }
  if (absl::Status failed = EvaluateChecks(run, *outputs); !failed.ok()) return failed;
  return outputs;
} catch (const std::bad_alloc&) {
  // On this thread nobody could catch it; the run fails, its tensors say why, and the process goes
  // on.
  return ResourceExhausted(run.program->name, ": out of memory", ir::InParentheses(run.site));
}

bool AnyInputFailed(const Run& run) {
  for (const DataPtr& input : run.inputs) {
    if (input->ready() && !input->error().ok()) return true;
  }
  return false;
}

}  // namespace

Executor& Executor::Get() {
  // Stopped at exit, never destroyed: other threads may still wait on it.
  static auto* executor = new Executor;
  return *executor;
}

Executor::Executor() : thread_([this] { Loop(); }) { StopAtExit(); }

// Exit handlers run in reverse order of registration, and what a program uses (JIT code, kernels of
// libraries) may be made by its first run: registered again after each first run, the thread stops
// before any of that is destroyed.
void Executor::StopAtExit() {
  std::atexit([] { Get().Stop(); });
}

void Executor::Admit(backend::Device device) {
  std::unique_lock lock(mu_);
  const auto key = DeviceKey(device);
  finished_.wait(lock, [&] { return in_flight_[key].runs < kMaxInFlight || stopping_; });
  ++in_flight_[key].runs;
}

uint64_t Executor::Submit(Entry run) noexcept {
  std::unique_lock lock(mu_);
  in_flight_.find(DeviceKey(run.front().device))->second.bytes += run.front().bytes;
  queue_.splice(queue_.end(), run);
  const uint64_t number = ++submitted_count_;
  lock.unlock();
  submitted_.notify_one();
  return number;
}

absl::Status Executor::Wait(uint64_t number) {
  if (ir::SpinUntil([&] { return finished_count_ >= number; })) return absl::OkStatus();
  std::unique_lock lock(mu_);
  return InterruptibleWait(finished_, lock, [&] { return finished_count_ >= number || stopping_; });
}

int64_t Executor::BytesInFlight(backend::Device device) {
  std::lock_guard lock(mu_);
  return in_flight_[DeviceKey(device)].bytes;
}

void Executor::WaitForAll() {
  std::unique_lock lock(mu_);
  finished_.wait(lock, [&] { return finished_count_ == submitted_count_ || stopping_; });
}

void Executor::Loop() {
  // A loop that reads its loss records the next step in less time than waking takes.
  constexpr int kIdleSpins = 4 * ir::kWakeSpins;
  while (true) {
    Entry entry;
    ir::SpinUntil([this] { return submitted_count_ != finished_count_; }, kIdleSpins);
    {
      std::unique_lock lock(mu_);
      submitted_.wait(lock, [this] { return !queue_.empty() || stopping_; });
      if (stopping_) return;
      entry.splice(entry.begin(), queue_, queue_.begin());
    }
    Run& run = entry.front();
    Execute(run);
    if (!run.program->ran.exchange(true)) StopAtExit();
    const auto key = DeviceKey(run.device);
    const int64_t bytes = run.bytes;
    entry.clear();  // buffers go before the next run allocates
    {
      std::lock_guard lock(mu_);
      --in_flight_[key].runs;
      in_flight_[key].bytes -= bytes;
      ++finished_count_;
    }
    finished_.notify_all();
  }
}

void Executor::Execute(Run& run) {
  TraceSpan span("execute");
  ScopedTimer timer(Timer::kExecuteTime);
  absl::StatusOr<backend::Buffers> outputs = RunProgram(run);
  if (!outputs.ok()) {
    // A run that was handed failed data fails with it; the context already has that error.
    if (!AnyInputFailed(run)) run.context->SetFailure(outputs.status());
    for (const DataPtr& output : run.outputs) output->Set(outputs.status());
    return;
  }
  for (std::size_t i = 0; i < run.outputs.size(); ++i) run.outputs[i]->Set((*outputs)[i]);
}

void Executor::Stop() {
  {
    std::lock_guard lock(mu_);
    if (stopping_) return;
    stopping_ = true;
  }
  submitted_.notify_all();
  finished_.notify_all();
  thread_.join();
}

}  // namespace lazuli::lazy
