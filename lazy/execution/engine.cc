// The engine: what recording, sync() and reads of tensors ask of the execution.
#include <chrono>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <optional>
#include <string>

#include <unistd.h>

#include "ir/support/blocking.h"
#include "ir/support/flags.h"
#include "ir/support/fork.h"
#include "ir/support/metrics.h"
#include "ir/support/thread_local.h"
#include "lazy/execution/executor.h"
#include "lazy/execution/make_program.h"
#include "lazy/execution/sync.h"
#include "lazy/execution/sync_context.h"
#include "lazy/tensor/interruption.h"
#include "lazy/tensor/outside.h"
#include "lazy/tensor/site_span.h"
#include "lazy/tensor/watch.h"

namespace lazuli::lazy {
namespace {

class ExecutionEngine final : public Engine {
 public:
  using Engine::Sync;
  absl::Status Sync(Context& context, bool wait, SyncReason reason,
                    absl::FunctionRef<void()> then) override {
    if (Watch* const watch = Watch::Current()) [[unlikely]]
      watch->NoteSync(context);
    LAZULI_RETURN_IF_ERROR(ir::ForkError());
    LAZULI_RETURN_IF_ERROR(Context::CheckNotEnding());
    LAZULI_RETURN_IF_ERROR(CheckRuns(context));
    LAZULI_RETURN_IF_ERROR(FlagErrors());
    LAZULI_RETURN_IF_ERROR(context.TakeFailure());
    ir::EndRecorded();
    const SiteSpan span(ir::SpanKind::kSync, "sync");
    LAZULI_RETURN_IF_ERROR(WaitForDoubtful(context));
    SyncState& state = ir::PerThread<SyncState>::Get();
    absl::Status status;
    Context::LastRuns runs;
    {
      const auto syncing = ir::LockByWaiting(context.syncing);
      std::optional<Context::Lock> lock(context);
      status = SyncContext(context, lock, reason, state);
      runs = context.last_runs;
      if (!absl::IsResourceExhausted(status)) {  // the graph is not pending
        context.TakeOutcome();
        context.ForgetDoubts();
      }
      if (status.ok()) then();
    }
    state.trace.Clear();  // the nodes go after the lock
    state.forgotten.clear();
    if (!status.ok() || !wait) return status;
    LAZULI_RETURN_IF_ERROR(Executor::Wait(runs));
    return context.TakeFailure();
  }

  absl::Status CheckPlacement(const Node& node, backend::Device device) override {
    LAZULI_ASSIGN_OR_RETURN(const backend::CompileOptions options, CompileOptionsFor(device));
    LAZULI_ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> module,
                            lowering::EmitNode(node, NarrowingFromFlags()));
    return device.client->CheckPlacement(std::move(module), options);
  }

  absl::StatusOr<Literal> Read(Context& context, Storage& storage) override {
    NoteRead();
    ScopedTimer timer(Timer::kTransferFromDevice);
    LAZULI_ASSIGN_OR_RETURN(const Context::Contents contents, context.ContentsOf(storage));
    if (!contents.data) return ScalarLiteral(contents.leaf);
    LAZULI_ASSIGN_OR_RETURN(const backend::BufferPtr buffer, Wait(context, *contents.data));
    return buffer->device().client->ToHost(*buffer);
  }

  absl::StatusOr<backend::BufferPtr> ReadBuffer(Context& context, Storage& storage) override {
    NoteRead();
    LAZULI_ASSIGN_OR_RETURN(const Context::Contents contents, context.ContentsOf(storage));
    if (!contents.data) return NumberBuffer(*contents.leaf.node, storage);
    return Wait(context, *contents.data);
  }

  void WaitForRuns() override { Executor::WaitForAll(nullptr); }
  void RunNested() override { Executor::RunNested(); }

 private:
  static void NoteRead() {
    if (Watch* const watch = Watch::Current()) [[unlikely]]
      watch->NoteRead();
  }

  // A new tensor that is updated by what an earlier run's check decides has no old data that such an
  // update could leave, and programs are the same whether or not the check holds: it is waited for.
  static absl::Status WaitForDoubtful(Context& context) {
    PooledVector<DataPtr> doubtful;
    {
      const Context::Lock lock(context);
      context.DataToWaitFor(doubtful);
    }
    for (const DataPtr& data : doubtful) {
      const absl::Status status = data->Wait().status();
      if (!status.ok() && !data->has_failed()) return status;
    }
    if (!doubtful.empty()) LAZULI_RETURN_IF_ERROR(context.TakeFailure());
    return context.DropUpdatesByFailed();
  }

  // The buffer, once it is there; else the error, which is then told.
  static absl::StatusOr<backend::BufferPtr> Wait(Context& context, const DataHandle& data) {
    absl::StatusOr<backend::BufferPtr> buffer = data.Wait();
    if (!buffer.ok()) return data.has_failed() ? context.Tell(data.fault()) : buffer.status();
    LAZULI_RETURN_IF_ERROR(context.TakeFailure());
    return buffer;
  }

  static Literal ScalarLiteral(const Value& number) {
    Literal literal = Literal::Uninitialized(number.shape());
    const uint64_t cell = static_cast<const ScalarNode&>(*number.node).cell();
    std::memcpy(literal.mutable_raw(), &cell, static_cast<std::size_t>(literal.byte_size()));
    return literal;
  }
};

// Who waits at a terminal reads what for.
void SayWhatRuns(std::chrono::milliseconds waited) {
  const std::string runs = Executor::WhatRuns();
  if (runs.empty()) return;
  std::fputs(Str("lazuli: waiting for ", waited.count() / 1000, " s: ", runs).c_str(), stderr);
}
}  // namespace

void InitializeExecution() {
  static auto* engine = new ExecutionEngine;
  InstallEngine(engine);
  if (flags().progress() && flags().slow_run_ms() > 0 && isatty(STDERR_FILENO) != 0)
    SetWaitNotice(SayWhatRuns, std::chrono::milliseconds(flags().slow_run_ms()));
}

}  // namespace lazuli::lazy
