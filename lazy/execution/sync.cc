#include "lazy/execution/sync.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <mutex>
#include <utility>

#include "ir/support/flags.h"
#include "ir/support/float_mode.h"
#include "ir/support/fork.h"
#include "ir/support/hash_map.h"
#include "ir/support/metrics.h"
#include "ir/support/parallel_for.h"
#include "ir/support/slow_notice.h"
#include "ir/support/span.h"
#include "ir/support/thread_local.h"
#include "lazy/execution/executor.h"
#include "lazy/tensor/site_scope.h"

namespace lazuli::lazy {
namespace {

ir::ForkMutex observer_mu;
SyncObserver observer;
CompileObserver compile_observer;
std::atomic<uint64_t> next_program{1};

// What a thread keeps from sync to sync: the trace and key, so that a steady step does not allocate
// for them, and its last program.
struct ThreadState {
  ProgramPtr last_program;
  Trace trace;
  KeyWriter key;
  std::vector<backend::Device> devices;
  std::vector<Storage*> pending, here;      // of a device
  std::vector<Storage*> roots;              // of the device being synced
  std::vector<const DataHandle*> replaced;  // by root: what it held before
};

backend::CompileOptions OptionsNow() {
  return {.num_threads = NumThreads(), .flush_subnormals = flags().ftz(), .dump_name = ""};
}

void AppendEnvironment(backend::Device device, const backend::CompileOptions& options,
                       KeyWriter& key) {
  key.Long(reinterpret_cast<uintptr_t>(device.client));
  key.Word(static_cast<uint32_t>(device.ordinal));
  key.Word(static_cast<uint32_t>(options.num_threads));
  key.Word(options.flush_subnormals ? 1 : 0);
}

// Output i updates data leaf j: `replaced` has what the root storages held, in the order of roots.
// A leaf that two storages shared is the first one's. The first graph of a key decides; whether a
// run gives the memory up is decided run by run.
std::vector<hlo::Alias> UpdatedLeaves(const Trace& trace,
                                      const std::vector<const DataHandle*>& replaced) {
  HashMap<const DataHandle*, int64_t> leaves;
  for (std::size_t j = 0; j < trace.data.size(); ++j)
    leaves.try_emplace(static_cast<const DataNode*>(trace.data[j])->data().get(),
                       static_cast<int64_t>(j));
  std::vector<hlo::Alias> aliases;
  for (std::size_t i = 0; i < replaced.size(); ++i) {
    const auto leaf = leaves.find(replaced[i]);
    if (leaf == leaves.end()) continue;
    const int64_t j = std::exchange(leaf->second, -1);
    if (j < 0 || !(trace.data[static_cast<std::size_t>(j)]->shape() == trace.roots[i].shape()))
      continue;
    aliases.push_back(
        {.output_index = {static_cast<int64_t>(i)}, .parameter_number = j, .parameter_index = {}});
  }
  return aliases;
}

absl::StatusOr<ProgramPtr> CompileProgram(const Trace& trace,
                                          const std::vector<hlo::Alias>& aliases,
                                          backend::Device device,
                                          const backend::CompileOptions& options,
                                          const KeyWriter& key, uint64_t hash, std::string name) {
  TraceSpan span("compile");
  const auto text = [&] {
    return Str("compiling ", trace.nodes.size(), " nodes", ir::InParentheses(CurrentSite()),
               " takes long; mark_step() makes graphs shorter");
  };
  const ir::SlowNotice notice(std::chrono::milliseconds(flags().slow_compile_ms()), text);
  const auto start = std::chrono::steady_clock::now();
  const ir::ScopedFloatMode mode(options.flush_subnormals);
  auto program = std::make_shared<Program>();
  program->key = key.words();
  program->hash = hash;
  program->name = std::move(name);
  program->updated.resize(trace.data.size());
  for (const hlo::Alias& alias : aliases)
    program->updated[static_cast<std::size_t>(alias.parameter_number)] = 1;
  LAZULI_ASSIGN_OR_RETURN(lowering::EmittedModule emitted,
                          EmitTrace(trace, program->name, aliases));
  program->checks = std::move(emitted.checks);
  program->dependence = Dependence(trace, program->checks);
  program->hlo = emitted.module->ToString();
  LAZULI_ASSIGN_OR_RETURN(program->executable,
                          device.client->Compile(std::move(emitted.module), options));
  program->memory = PlanMemory(trace, program->updated, aliases, program->executable->stats());
  const auto time = std::chrono::steady_clock::now() - start;
  AddSample(Timer::kCompileTime, std::chrono::nanoseconds(time).count());
  {
    std::lock_guard lock(observer_mu);
    if (compile_observer) compile_observer({*program, device, CurrentSite(), time});
  }
  return GetProgramCache().Insert(std::move(program));
}

// Traces the graph of the roots and looks its program up; null if there is none yet.
ProgramPtr FindProgram(Trace& trace, backend::Device device, const backend::CompileOptions& options,
                       KeyWriter& key, uint64_t& hash) {
  TraceSpan span("trace");
  ScopedTimer timer(Timer::kTracing);
  TraceGraph(trace);
  key.Clear();
  AppendEnvironment(device, options, key);
  AppendGraphKey(trace, key);
  hash = key.Hash();
  return GetProgramCache().Find(key.words(), hash);
}

absl::StatusOr<ProgramPtr> ProgramFor(Trace& trace, const std::vector<const DataHandle*>& replaced,
                                      backend::Device device, SyncReason reason, KeyWriter& key) {
  const backend::CompileOptions options = OptionsNow();
  uint64_t hash = 0;
  ProgramPtr program = FindProgram(trace, device, options, key, hash);
  const bool cached = program != nullptr;
  std::string new_name;
  if (!cached) new_name = Str("SyncTensorsGraph.", next_program.fetch_add(1));
  const std::string& name = cached ? program->name : new_name;
  {
    std::lock_guard lock(observer_mu);
    if (observer) observer({trace, device, reason, CurrentSite(), hash, cached, name});
  }
  Add(cached ? Counter::kCachedCompile : Counter::kUncachedCompile);
  if (cached) return program;
  return CompileProgram(trace, UpdatedLeaves(trace, replaced), device, options, key, hash, name);
}

// A number in memory of the device.
absl::StatusOr<backend::BufferPtr> NumberBuffer(const Node& number, const Storage& storage) {
  LAZULI_CHECK(number.kind() == NodeKind::kScalar, "what is read without data is a number");
  const uint64_t cell = static_cast<const ScalarNode&>(number).cell();
  return storage.device().client->FromHost({&cell, &storage.shape()}, nullptr, storage.device());
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

// Before anything changes: whether there is memory for the run, of which `bytes` are to be
// obtained.
absl::Status CheckMemory(const Program& program, const Trace& trace, backend::Device device,
                         int64_t& bytes) {
  if (flags().memory_limit() == 0) return absl::OkStatus();
  Executor& executor = Executor::Get();
  absl::Status status;
  for (const bool idle : {false, true}) {
    // What runs in flight will free or give up is known when they are done.
    if (idle) executor.WaitForAll();
    bytes = BytesToObtain(program.memory, trace);
    status = CheckMemoryLimit(program.memory, bytes, executor.BytesInFlight(device), device);
    if (status.ok()) return status;
  }
  return ResourceExhausted(program.name, ": ", Message(status), ir::InParentheses(CurrentSite()));
}

// Whose checks the program's are in this run.
void FillChecks(const Context& context, const Trace& trace, Run& run) {
  const std::vector<lowering::EmittedCheck>& checks = run.program->checks;
  run.checks.reserve(checks.size());
  for (const lowering::EmittedCheck& check : checks)
    run.checks.push_back({trace.nodes[check.node]->site(), {}, 0});
  // By the positions of their nodes, which grow.
  for (std::size_t order = 0; order < context.checked().size(); ++order) {
    const Context::Checked& recorded = context.checked()[order];
    if (!(recorded.device == run.device)) continue;
    const uint32_t position = recorded.node->mark_index;
    auto check =
        std::lower_bound(checks.begin(), checks.end(), position,
                         [](const lowering::EmittedCheck& c, uint32_t p) { return c.node < p; });
    for (; check != checks.end() && check->node == position; ++check) {
      Run::Check& here = run.checks[static_cast<std::size_t>(check - checks.begin())];
      here.order = static_cast<uint32_t>(order);
      here.function = recorded.function;
    }
  }
}

// The run of a program, with a handle for each root: all the memory that a sync asks for.
Executor::Entry MakeRun(Context& context, backend::Device device, const Trace& trace,
                        ProgramPtr program) {
  Executor::Entry entry;
  Run& run = entry.emplace_back();
  run.program = std::move(program);
  run.device = device;
  run.context = IntrusivePtr<Context>(&context);
  run.site = CurrentSite();
  run.inputs.reserve(trace.data.size());
  for (const Node* leaf : trace.data)
    run.inputs.push_back(static_cast<const DataNode*>(leaf)->data());
  run.scalars.reserve(trace.scalars.size());
  for (const Node* leaf : trace.scalars)
    run.scalars.push_back(static_cast<const ScalarNode*>(leaf)->cell());
  FillChecks(context, trace, run);
  run.outputs.reserve(trace.roots.size());
  for (const Value& root : trace.roots)
    run.outputs.push_back(MakeIntrusive<DataHandle>(root.shape(), device));
  return entry;
}

// Syncs the pending storages of one device, given in order of creation.
absl::StatusOr<uint64_t> SyncDevice(Context& context, backend::Device device,
                                    const std::vector<Storage*>& storages, SyncReason reason,
                                    ThreadState& state) {
  auto& [last_program, trace, key, devices, pending, here, roots, replaced] = state;
  trace.Clear();
  roots.clear();
  replaced.clear();
  for (Storage* storage : storages) {
    const Value& value = context.PendingValue(*storage);
    if (value.node->kind() != NodeKind::kOp) {
      const NodePtr leaf = value.node;
      LAZULI_RETURN_IF_ERROR(ResolveLeaf(context, *storage, *leaf));
      continue;
    }
    roots.push_back(storage);
    replaced.push_back(context.Replaced(*storage));
    trace.roots.push_back(value);
  }
  for (const Context::Checked& checked : context.checked()) {
    if (checked.device == device) trace.checked.push_back(checked.node);
  }
  if (roots.empty() && trace.checked.empty()) return 0;

  absl::StatusOr<ProgramPtr> program = ProgramFor(trace, replaced, device, reason, key);
  if (!program.ok()) {
    // A graph that does not compile will not compile next time either: its tensors carry the error
    // from now on.
    for (Storage* storage : roots) {
      auto failed = MakeIntrusive<DataHandle>(storage->shape(), device);
      failed->Set(program.status());
      context.Resolve(*storage, std::move(failed));
    }
    context.ForgetChecked(device);
    return program.status();
  }
  last_program = *program;
  int64_t bytes = 0;
  LAZULI_RETURN_IF_ERROR(CheckMemory(**program, trace, device, bytes));
  Executor::Entry run = MakeRun(context, device, trace, *std::move(program));
  run.front().bytes = bytes;
  Executor::Get().Admit(device);
  // From here on nothing fails: a storage with a handle has a run that will set it.
  for (std::size_t i = 0; i < roots.size(); ++i) context.Resolve(*roots[i], run.front().outputs[i]);
  context.ForgetChecked(device);
  trace.Clear();  // the graph's own references to its leaves go: what are left are owners
  // Under the context's lock: whoever sees a handle knows that its run was submitted.
  return Executor::Get().Submit(std::move(run));
}

class ExecutionEngine final : public Engine {
 public:
  using Engine::Sync;
  absl::Status Sync(Context& context, bool wait, SyncReason reason,
                    absl::FunctionRef<void()> then) override {
    LAZULI_RETURN_IF_ERROR(ir::ForkError());
    LAZULI_RETURN_IF_ERROR(FlagErrors());
    LAZULI_RETURN_IF_ERROR(context.TakeFailure());
    ThreadState& state = ir::PerThread<ThreadState>::Get();
    absl::Status status;
    uint64_t number = 0;
    {
      Context::Lock lock(context);
      status = SyncLocked(context, reason, state);
      number = context.last_run;
      if (status.ok()) then();
    }
    state.trace.Clear();  // the nodes go after the lock
    if (!status.ok() || !wait) return status;
    LAZULI_RETURN_IF_ERROR(Executor::Get().Wait(number));
    return context.TakeFailure();
  }

  absl::StatusOr<Literal> Read(Context& context, Storage& storage) override {
    ScopedTimer timer(Timer::kTransferFromDevice);
    LAZULI_ASSIGN_OR_RETURN(const Context::Contents contents, context.ContentsOf(storage));
    if (!contents.data) return ScalarLiteral(contents.leaf);
    LAZULI_ASSIGN_OR_RETURN(const backend::BufferPtr buffer, Wait(context, *contents.data));
    return buffer->device().client->ToHost(*buffer);
  }

  absl::StatusOr<backend::BufferPtr> ReadBuffer(Context& context, Storage& storage) override {
    LAZULI_ASSIGN_OR_RETURN(const Context::Contents contents, context.ContentsOf(storage));
    if (!contents.data) return NumberBuffer(*contents.leaf.node, storage);
    return Wait(context, *contents.data);
  }

 private:
  // The buffer, once it is there; else the error, which is then the context's no longer.
  static absl::StatusOr<backend::BufferPtr> Wait(Context& context, const DataHandle& data) {
    absl::StatusOr<backend::BufferPtr> buffer = data.Wait();
    if (!buffer.ok()) {
      context.ForgetFailure(buffer.status());
      return buffer.status();
    }
    LAZULI_RETURN_IF_ERROR(context.TakeFailure());
    return buffer;
  }

  static absl::Status SyncLocked(Context& context, SyncReason reason, ThreadState& state) {
    context.history.Clear();
    context.ForgetForeignLeaves();
    context.PendingStorages(state.pending);
    // Those with something to do, in order of creation.
    state.devices.clear();
    const auto add = [&](backend::Device device) {
      if (std::find(state.devices.begin(), state.devices.end(), device) == state.devices.end())
        state.devices.push_back(device);
    };
    for (const Storage* s : state.pending) add(s->device());
    for (const Context::Checked& checked : context.checked()) add(checked.device);
    absl::Status first_error;
    for (const backend::Device device : state.devices) {
      state.here.clear();
      for (Storage* s : state.pending) {
        if (s->device() == device) state.here.push_back(s);
      }
      absl::StatusOr<uint64_t> run = SyncDevice(context, device, state.here, reason, state);
      if (run.ok())
        context.last_run = std::max(context.last_run, *run);
      else if (first_error.ok())
        first_error = run.status();
    }
    return first_error;
  }

  static Literal ScalarLiteral(const Value& number) {
    Literal literal = Literal::Uninitialized(number.shape());
    const uint64_t cell = static_cast<const ScalarNode&>(*number.node).cell();
    std::memcpy(literal.mutable_raw(), &cell, static_cast<std::size_t>(literal.byte_size()));
    return literal;
  }
};

}  // namespace

void InitializeExecution() {
  static auto* engine = new ExecutionEngine;
  InstallEngine(engine);
}

void SetSyncObserver(SyncObserver o) {
  std::lock_guard lock(observer_mu);
  observer = std::move(o);
}

void SetCompileObserver(CompileObserver o) {
  std::lock_guard lock(observer_mu);
  compile_observer = std::move(o);
}

absl::StatusOr<lowering::EmittedModule> EmitTrace(const Trace& trace, std::string name,
                                                  std::vector<hlo::Alias> aliases) {
  lowering::EmitOptions options;
  options.name = std::move(name);
  options.aliases = std::move(aliases);
  for (const Node* leaf : trace.data)
    options.parameter_names.emplace_back(static_cast<const DataNode*>(leaf)->label());
  return lowering::EmitModule(trace, options);
}

ProgramPtr LastProgram() { return ir::PerThread<ThreadState>::Get().last_program; }

ProgramCache& GetProgramCache() {
  // Outlives static tensors.
  static auto* cache = new ProgramCache(flags().compilation_cache_bytes());
  return *cache;
}

}  // namespace lazuli::lazy
