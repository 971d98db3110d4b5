#include "lazy/execution/sync.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <unordered_set>
#include <utility>
#include <vector>

#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "ir/support/runtime.h"
#include "ir/support/thread_local.h"
#include "lazy/execution/executor.h"
#include "lazy/execution/make_program.h"
#include "lazy/execution/make_run.h"
#include "lazy/execution/observers.h"
#include "lazy/execution/sync_context.h"
#include "lazy/execution/sync_state.h"
#include "lazy/tensor/site_span.h"

namespace lazuli::lazy {

absl::StatusOr<backend::BufferPtr> NumberBuffer(const Node& number, const Storage& storage) {
  LAZULI_CHECK(number.kind() == NodeKind::kScalar, "what is read without data is a number");
  const uint64_t cell = static_cast<const ScalarNode&>(number).cell();
  return storage.device().client->FromHost({&cell, &storage.shape()}, nullptr, storage.device());
}

namespace {

// SyncTensorsGraph.7
std::string NewProgramName() {
  struct Last {
    std::atomic<uint64_t> number{0};
  };
  return Str("SyncTensorsGraph.", ir::Runtime::Get().Of<Last>().number.fetch_add(1) + 1);
}

// A storage whose value is a leaf needs no program: it takes the leaf's data, or a number's bytes.
absl::Status ResolveLeaf(Context& context, Storage& storage, const Node& leaf) {
  if (leaf.kind() == NodeKind::kData) {
    context.Resolve(storage, static_cast<const DataNode&>(leaf).data());
    return absl::OkStatus();
  }
  LAZULI_ASSIGN_OR_RETURN(backend::BufferPtr buffer, NumberBuffer(leaf, storage));
  context.Resolve(storage, MakeIntrusive<DataHandle>(std::move(buffer)));
  return absl::OkStatus();
}

// One sync of a context, which nobody else syncs meanwhile.
class ContextSync {
 public:
  ContextSync(Context& context, std::optional<Context::Lock>& lock, SyncReason reason,
              SyncState& state)
      : context_(context), lock_(lock), reason_(reason), state_(state) {}

  // Under the lock, which is given up while a program compiles: what others record then is synced,
  // too, until nothing is pending.
  absl::Status Run() {
    absl::Status first_error;
    for (bool again = true; again;) {
      again = false;
      CollectDevices();
      for (const backend::Device device : state_.devices) {
        const int compiles = compiles_;
        const absl::Status status = SyncDevice(device);
        if (first_error.ok()) first_error = status;
        // A graph that got no memory to be compiled in stays pending; it is not tried again here.
        again = compiles_ != compiles && !absl::IsResourceExhausted(status);
        if (again) break;  // the storages may be others by now
      }
    }
    return first_error;
  }

 private:
  // Compiles of one sync that others may record during. A thread that never stops recording does not
  // keep it from ending.
  static constexpr int kMaxUnlocked = 4;

  // Those with something to do, in order of creation.
  void CollectDevices() {
    context_.history.Clear();
    context_.ForgetGraphLeaves();
    context_.PendingStorages(state_.pending);
    state_.devices.clear();
    const auto add = [&](backend::Device device) {
      if (std::find(state_.devices.begin(), state_.devices.end(), device) == state_.devices.end())
        state_.devices.push_back(device);
    };
    for (const Storage* s : state_.pending) add(s->device());
    for (const Context::Checked& checked : context_.checked()) {
      if (!checked.was_told) add(checked.device);
    }
  }

  absl::Status CollectRoots(backend::Device device);
  absl::StatusOr<CachedProgramPtr> ProgramFor(backend::Device device);
  void AddBefore();
  void LocateChecks();
  void ForgetChangedRoots();
  void ResolveHidden();
  void Admit(Executor& executor);
  absl::Status SyncDevice(backend::Device device);
  absl::Span<const Context::Checked> checked() const {
    return context_.checked().first(num_checked_);
  }

  Context& context_;
  std::optional<Context::Lock>& lock_;
  const SyncReason reason_;
  SyncState& state_;
  const hlo::Peers::Clock::time_point asked_ = hlo::Peers::Clock::now();
  std::size_t num_checked_ = 0;  // that the trace has
  int compiles_ = 0;             // during which the lock was free
};

// The pending values of the device that need a program become the roots of the trace.
absl::Status ContextSync::CollectRoots(backend::Device device) {
  auto& [last_program, last_recompile, trace, key, devices, pending, here, hidden, forgotten, roots,
         replaced, before, checked_at, listener] = state_;
  trace.Clear();
  roots.clear();
  replaced.clear();
  here.clear();
  hidden.clear();
  for (Storage* s : pending) {
    if (!(s->device() == device)) continue;
    if (!Context::IsCurrent(*s)) {
      forgotten.push_back(context_.Forget(*s));
      continue;
    }
    here.push_back(s);
    if (Context::IsHidden(s->written(), *s)) hidden.push_back(&s->written());
  }
  std::sort(hidden.begin(), hidden.end());
  for (Storage* storage : here) {
    if (std::binary_search(hidden.begin(), hidden.end(), storage)) continue;
    const Value& value = context_.PendingValue(*storage);
    if (value.node->kind() != NodeKind::kOp) {
      const NodePtr leaf = value.node;
      LAZULI_RETURN_IF_ERROR(ResolveLeaf(context_, *storage, *leaf));
      continue;
    }
    roots.push_back(storage);
    replaced.push_back(context_.Replaced(*storage).get());
    trace.roots.push_back(value);
  }
  num_checked_ = context_.checked().size();
  for (const Context::Checked& recorded : checked()) {
    if (recorded.device == device && !recorded.was_told)
      (recorded.is_effect ? trace.effects : trace.checked).push_back(recorded.node);
  }
  AddBefore();
  return absl::OkStatus();
}

// A failed check undoes updates. The pending values that they are written over become roots, too, so
// that the run computes them; no storage belongs to such a root.
void ContextSync::AddBefore() {
  const std::size_t count = state_.roots.size();
  state_.before.assign(count, -1);
  if (state_.trace.checked.empty()) return;
  for (std::size_t i = 0; i < count; ++i) {
    const Value& value = context_.Before(*state_.roots[i]);
    if (!value || state_.replaced[i] != nullptr) continue;
    state_.before[i] = static_cast<int32_t>(state_.roots.size());
    state_.roots.push_back(nullptr);
    state_.replaced.push_back(nullptr);
    state_.trace.roots.push_back(value);
  }
}

// While the nodes have the trace's numbers: others may number them while a program compiles.
void ContextSync::LocateChecks() {
  const std::vector<const Node*>& nodes = state_.trace.nodes;
  state_.checked_at.clear();
  for (const Context::Checked& recorded : checked()) {
    const uint32_t position = recorded.node->mark_index;
    const bool here = position < nodes.size() && nodes[position] == recorded.node.get();
    state_.checked_at.push_back(here ? position : SyncState::kNowhere);
  }
}

absl::StatusOr<CachedProgramPtr> ContextSync::ProgramFor(backend::Device device) {
  Trace& trace = state_.trace;
  LAZULI_ASSIGN_OR_RETURN(const backend::CompileOptions options, SyncOptionsFor(device));
  uint64_t hash = 0;
  CachedProgramPtr program = FindProgram(trace, device, options, state_.key, hash);
  LocateChecks();
  const bool cached = program != nullptr;
  std::string new_name;
  if (!cached) new_name = NewProgramName();
  const std::string& name = cached ? program->name() : new_name;
  Notify(SyncEvent{trace, device, reason_, CurrentSite(), hash, cached, name});
  Add(cached ? Counter::kCachedCompile : Counter::kUncachedCompile);
  if (cached) return program;
  auto emitted = Emit(trace, state_.replaced, device, options, state_.key, hash, name);
  LAZULI_RETURN_IF_ERROR(emitted.status());
  {
    const Recompile& why = (*emitted)->recompile;
    std::optional<Recompile>& last = state_.last_recompile;
    if (!last || why.cause != RecompileCause::kFirst || last->cause == RecompileCause::kFirst)
      last = why;
  }
  const bool keeps_lock = compiles_ >= kMaxUnlocked;
  // Others record into the context, read and drop its tensors meanwhile. Nobody else syncs it.
  const auto unlocked = [&](absl::FunctionRef<void()> compile) {
    if (!keeps_lock) lock_.reset();
    compile();
    if (!keeps_lock) lock_.emplace(context_);
  };
  absl::StatusOr<CachedProgramPtr> compiled = Compile(*std::move(emitted), trace, device, unlocked);
  if (!keeps_lock) {
    ++compiles_;
    ForgetChangedRoots();
  }
  return compiled;
}

// After the lock was free: a storage that is gone or has another value wants no result.
void ContextSync::ForgetChangedRoots() {
  context_.PendingStorages(state_.pending);
  const std::unordered_set<const Storage*> pending(state_.pending.begin(), state_.pending.end());
  for (std::size_t i = 0; i < state_.roots.size(); ++i) {
    Storage*& root = state_.roots[i];
    const Value& traced = state_.trace.roots[i];
    if (!pending.contains(root) || context_.PendingValue(*root).node != traced.node ||
        context_.PendingValue(*root).index != traced.index)
      root = nullptr;
  }
}

// The bases of the views that are resolved now, if they are not.
void ContextSync::ResolveHidden() {
  for (Storage* root : state_.roots) {
    if (root != nullptr && Context::IsHidden(root->written(), *root) && Context::IsCurrent(*root))
      context_.ResolveHidden(*root);
  }
}

// Waits without the context's lock: what runs may call a function that uses tensors of the context.
void ContextSync::Admit(Executor& executor) {
  if (executor.TryAdmit()) return;
  const ir::TraceSpan span(ir::SpanKind::kWait, "wait");
  lock_.reset();
  executor.Admit();
  lock_.emplace(context_);
  ForgetChangedRoots();
}

absl::Status ContextSync::SyncDevice(backend::Device device) {
  LAZULI_RETURN_IF_ERROR(CollectRoots(device));
  auto& [last_program, last_recompile, trace, key, devices, pending, here, hidden, forgotten, roots,
         replaced, before, checked_at, listener] = state_;
  if (roots.empty() && trace.checked.empty() && trace.effects.empty()) return absl::OkStatus();
  absl::StatusOr<CachedProgramPtr> program = ProgramFor(device);
  if (absl::IsResourceExhausted(program.status())) {  // all is as it was
    return ir::AtSite(Prefixed(program.status(), "compiling: "), CurrentSite());
  }
  if (!program.ok()) {
    // A graph that does not compile will not compile next time either: its tensors carry the error
    // from now on.
    const auto fault = MakeIntrusive<Fault>(program.status());
    fault->Tell();
    for (Storage* storage : roots) {
      if (storage == nullptr) continue;
      auto failed = MakeIntrusive<DataHandle>(storage->shape(), device);
      failed->Set(fault);
      context_.Resolve(*storage, std::move(failed));
    }
    ResolveHidden();
    context_.ForgetChecked(device, num_checked_);
    return program.status();
  }
  last_program = *program;
  int64_t bytes = 0;
  Executor& executor = Executor::Of(device);
  Admit(executor);
  if (absl::Status fits = CheckMemory(**program, state_, device, bytes); !fits.ok()) {
    executor.Dismiss();
    return fits;
  }
  Executor::Entry run = MakeRun(context_, checked(), device, state_, *std::move(program));
  run.front().bytes = bytes;
  run.front().asked = asked_;
  if (state_.listener != nullptr) [[unlikely]]
    state_.listener->Runs(context_, state_, run.front());
  // From here on nothing fails: a storage with a handle has a run that will set it.
  for (std::size_t i = 0; i < roots.size(); ++i) {
    if (roots[i] != nullptr) context_.Resolve(*roots[i], run.front().outputs[i]);
  }
  context_.ForgetChecked(device, num_checked_);
  ResolveHidden();
  trace.Clear();  // the graph's own references to its leaves go: what are left are owners
  forgotten.clear();
  // Under the context's lock: whoever sees a handle knows that its run was submitted.
  const ir::TraceSpan span(ir::SpanKind::kQueue, "queue", run.front().number);
  const uint64_t number = executor.Submit(std::move(run));
  Context::RunOn(device, context_.last_runs) = number;
  return absl::OkStatus();
}

}  // namespace

absl::Status SyncContext(Context& context, std::optional<Context::Lock>& lock, SyncReason reason,
                         SyncState& state) {
  return ContextSync(context, lock, reason, state).Run();
}

const Recompile* LastRecompile() {
  const std::optional<Recompile>& last = ir::PerThread<SyncState>::Get().last_recompile;
  return last ? &*last : nullptr;
}

CachedProgramPtr LastProgram() { return ir::PerThread<SyncState>::Get().last_program; }

ProgramCache& GetProgramCache() {
  struct Cache {
    ProgramCache programs{flags().compilation_cache_bytes(), flags().compilation_cache_size()};
  };
  return ir::Runtime::Get().Of<Cache>().programs;
}

}  // namespace lazuli::lazy
