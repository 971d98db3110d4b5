#include "lazy/execution/sync.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <unordered_set>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include <unistd.h>

#include "ir/support/flags.h"
#include "ir/support/float_mode.h"
#include "ir/support/fork.h"
#include "ir/support/metrics.h"
#include "ir/support/runtime.h"
#include "ir/support/slow_notice.h"
#include "ir/support/thread_local.h"
#include "lazy/execution/executor.h"
#include "lazy/execution/failure.h"
#include "lazy/tensor/interruption.h"
#include "lazy/tensor/site_span.h"
#include "lowering/passes/registry.h"

namespace lazuli::lazy {
namespace {

// Who watches, and what programs are called.
struct Observers {
  static Observers& Get() { return ir::Runtime::Get().Of<Observers>(); }
  ir::ForkMutex mutex;
  SyncObserver sync;
  CompileObserver compile;
  std::vector<SyncObserver> all_syncs;
  std::vector<CompileObserver> all_compiles;
  std::atomic<uint64_t> next_program{1};
};

// What a thread keeps from sync to sync: the trace and key, so that a steady step does not allocate
// for them, and its last program.
struct ThreadState {
  ProgramPtr last_program;
  std::optional<Recompile> last_recompile;
  Trace trace;
  KeyWriter key;
  std::vector<backend::Device> devices;
  std::vector<Storage*> pending, here;      // of a device
  std::vector<const Storage*> hidden;       // bases that are not computed beside their views
  std::vector<Value> forgotten;             // of stale views; released after the lock
  std::vector<Storage*> roots;              // of the device being synced
  std::vector<const DataHandle*> replaced;  // by root: what it is written over
  // By root: if it is written over a pending value, the number of the root with that value, else -1.
  std::vector<int32_t> before;
};

// What XLA_USE_32BIT_LONG, XLA_USE_BF16 and XLA_DOWNCAST_BF16 ask for.
lowering::Narrowing NarrowingFromFlags() {
  using enum lowering::Narrowing::Floats;
  return {.longs = flags().use_32bit_long(),
          .floats = flags().use_bf16()        ? kAllBf16
                    : flags().downcast_bf16() ? kDowncast
                                              : kKept};
}

// Calls visit(name, value) for all that a program depends on besides its graph and platform.
template <class F>
void VisitEnvironment(const backend::CompileOptions& options, F&& visit) {
  options.VisitAttrs(visit);
  visit("use_32bit_long", flags().use_32bit_long());
  visit("use_bf16", flags().use_bf16());
  visit("downcast_bf16", flags().downcast_bf16());
  visit("param_aliasing", flags().param_aliasing());
  visit("debug_nans", flags().debug_nans());
}

void AppendEnvironment(backend::Device device, const backend::CompileOptions& options,
                       KeyWriter& key) {
  key.Text(device.client->platform());
  VisitEnvironment(options, [&](std::string_view, const auto& value) { key.Append(value); });
}

// The same as text, for people: what differs names itself.
std::string EnvironmentText(backend::Device device, const backend::CompileOptions& options) {
  std::string text = Str(", platform=", device.client->platform());
  VisitEnvironment(options, [&]<class T>(std::string_view name, const T& value) {
    if constexpr (std::is_same_v<T, Dims>)
      text += Str(", ", name, "=", Join(value, ":"));
    else if constexpr (std::is_enum_v<T>)
      text += Str(", ", name, "=", static_cast<int>(value));
    else
      text += Str(", ", name, "=", value);
  });
  return text;
}

// Output i updates data leaf j: `replaced` has what the root storages held, in the order of roots.
// A leaf that two storages shared is the first one's. The first graph of a key decides; whether a
// run gives the memory up is decided run by run.
std::vector<hlo::Alias> UpdatedLeaves(const Trace& trace,
                                      const std::vector<const DataHandle*>& replaced) {
  absl::flat_hash_map<const DataHandle*, int64_t> leaves;
  for (std::size_t j = 0; j < trace.data.size(); ++j)
    leaves.try_emplace(static_cast<const DataNode*>(trace.data[j])->data().get(),
                       static_cast<int64_t>(j));
  std::vector<hlo::Alias> aliases;
  if (!flags().param_aliasing()) return aliases;
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

// Says why a loop compiles in every iteration, once for its line: after so many programs in a row,
// each compiled because of a difference that a loop makes.
void WarnOfRecompiles(const Program& program) {
  struct Row {
    int64_t compiles = 0, cached_runs = 0;
    bool said = false;
  };
  struct Rows {
    ir::ForkMutex mutex;
    absl::flat_hash_map<SiteId, Row> of_site;
  };
  // A step may have a few syncs of which one compiles each time.
  constexpr int64_t kCachedBetween = 2;
  const int64_t limit = flags().recompile_warning();
  Rows& rows = ir::Runtime::Get().Of<Rows>();
  const std::lock_guard lock(rows.mutex);
  Row& row = rows.of_site[program.site];
  if (row.said || limit <= 0) return;
  const int64_t cached = ir::Get(Counter::kCachedCompile);
  const RecompileCause cause = program.recompile.cause;
  // What a line differs in that reads any graph, as a helper that prints does, is not a loop's.
  const bool loops = cause == RecompileCause::kEvicted || cause == RecompileCause::kBatch ||
                     cause == RecompileCause::kShape || cause == RecompileCause::kDType ||
                     cause == RecompileCause::kAttribute || cause == RecompileCause::kMoreNodes ||
                     cause == RecompileCause::kFewerNodes;
  if (!loops || cached - row.cached_runs > kCachedBetween) row.compiles = 0;
  row.cached_runs = cached;
  if (!loops || ++row.compiles < limit) return;
  row.said = true;
  const std::string text = Str(
      "lazuli: ", limit, " recompiles in a row", ir::InParentheses(program.site),
      ", the last: ", program.recompile.Sentence(),
      " (said once; LAZULI_DEBUG=2 explains each compile, LAZULI_RECOMPILE_WARNING=0 is silent)\n");
  std::fputs(text.c_str(), stderr);
}

// Program::checked_integers of a check. Others than leaves and results are nowhere after the run.
std::vector<int32_t> IntegersGivenTo(const Node& node, const Trace& trace) {
  std::vector<int32_t> integers;
  for (const Value& operand : node.operands()) {
    if (!ir::IsIntegral(operand.shape().dtype())) continue;
    for (std::size_t j = 0; j < trace.data.size(); ++j) {
      if (trace.data[j] == operand.node.get()) integers.push_back(static_cast<int32_t>(j));
    }
    for (std::size_t i = 0; i < trace.roots.size(); ++i) {
      const Value& root = trace.roots[i];
      if (root.node == operand.node && root.index == operand.index)
        integers.push_back(-1 - static_cast<int32_t>(i));
    }
  }
  return integers;
}

// A program without its executable, and the module to compile for it.
struct UncompiledProgram {
  std::shared_ptr<Program> program;
  std::unique_ptr<hlo::Module> module;
  std::vector<hlo::Alias> aliases;
};
absl::StatusOr<UncompiledProgram> Emit(const Trace& trace, std::vector<hlo::Alias> aliases,
                                       backend::Device device,
                                       const backend::CompileOptions& options, const KeyWriter& key,
                                       uint64_t hash, std::string name) {
  const ir::TraceSpan span(ir::SpanKind::kEmit, "emit");
  const ir::ScopedFloatMode mode(options.flush_subnormals);
  auto program = std::make_shared<Program>();
  program->key = key.words();
  program->hash = hash;
  program->name = std::move(name);
  program->site = CurrentSite();
  program->options = EnvironmentText(device, options);
  program->outline = GraphOutline(trace);
  program->recompile = GetProgramCache().WhyMissing(*program);
  WarnOfRecompiles(*program);
  program->device = device;
  program->updated_by.resize(trace.data.size(), -1);
  program->updates.resize(trace.roots.size(), -1);
  program->donations = std::make_unique<std::atomic<Donation>[]>(trace.data.size());
  for (const hlo::Alias& alias : aliases) {
    const int64_t output = alias.output_index[0], leaf = alias.parameter_number;
    program->updated_by[static_cast<std::size_t>(leaf)] = static_cast<int32_t>(output);
    program->updates[static_cast<std::size_t>(output)] = static_cast<int32_t>(leaf);
  }
  LAZULI_ASSIGN_OR_RETURN(lowering::EmittedModule emitted,
                          EmitTrace(trace, program->name, aliases));
  program->checks = std::move(emitted.checks);
  program->after_guard = std::move(emitted.after_guard);
  program->nans = std::move(emitted.nans);
  program->dependence = Dependence(trace, program->checks);
  for (const lowering::EmittedCheck& check : program->checks)
    program->checked_integers.push_back(IntegersGivenTo(*trace.nodes[check.node], trace));
  program->hlo = emitted.module->ToString();
  return UncompiledProgram{std::move(program), std::move(emitted.module), std::move(aliases)};
}

// Compiles without the context's lock, which is taken again: others record into the context, read
// and drop its tensors meanwhile. Nobody else syncs it.
absl::StatusOr<ProgramPtr> Compile(absl::StatusOr<UncompiledProgram> emitted, Trace& trace,
                                   Context& context, std::optional<Context::Lock>& lock,
                                   backend::Device device, const backend::CompileOptions& options,
                                   bool keeps_lock) {
  LAZULI_RETURN_IF_ERROR(emitted.status());
  auto& [program, module, aliases] = *emitted;
  const SiteSpan span(ir::SpanKind::kCompile, "compile");
  const auto text = [nodes = trace.nodes.size(), site = CurrentSite()] {
    return Str("compiling ", nodes, " nodes", ir::InParentheses(site),
               " takes long; mark_step() makes graphs shorter");
  };
  const ir::SlowNotice notice(std::chrono::milliseconds(flags().slow_compile_ms()), text);
  const auto start = std::chrono::steady_clock::now();
  if (!keeps_lock) lock.reset();
  absl::StatusOr<backend::ExecutablePtr> executable;
  {
    const ir::ScopedFloatMode mode(options.flush_subnormals);
    executable = device.client->Compile(std::move(module), options);
  }
  if (!keeps_lock) lock.emplace(context);
  if (!executable.ok())
    return ReportFailure(executable.status(), *program, "compile", CurrentSite());
  program->executable = *std::move(executable);
  program->memory = PlanMemory(trace, program->updated_by, aliases, program->executable->stats());
  const auto time = std::chrono::steady_clock::now() - start;
  AddSample(Timer::kCompileTime, std::chrono::nanoseconds(time).count());
  {
    Observers& observers = Observers::Get();
    std::lock_guard watching(observers.mutex);
    const CompileEvent event{*program, device, CurrentSite(), time};
    for (const CompileObserver& observer : observers.all_compiles) observer(event);
    if (observers.compile) observers.compile(event);
  }
  return GetProgramCache().Insert(std::move(program));
}

// Traces the graph of the roots and looks its program up; null if there is none yet.
ProgramPtr FindProgram(Trace& trace, backend::Device device, const backend::CompileOptions& options,
                       KeyWriter& key, uint64_t& hash) {
  ScopedTimer timer(Timer::kTracing);
  {
    const ir::TraceSpan span(ir::SpanKind::kTrace, "trace");
    TraceGraph(trace);
  }
  {
    const ir::TraceSpan span(ir::SpanKind::kKey, "key");
    key.Clear();
    AppendEnvironment(device, options, key);
    AppendGraphKey(trace, key);
    hash = key.Hash();
  }
  const ir::TraceSpan span(ir::SpanKind::kLookup, "lookup");
  return GetProgramCache().Find(key.words(), hash);
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
absl::Status CheckMemory(const Program& program, const ThreadState& state, backend::Device device,
                         int64_t& bytes) {
  if (flags().memory_limit() == 0) return absl::OkStatus();
  Executor& executor = Executor::Of(device);
  absl::Status status;
  for (const bool idle : {false, true}) {
    // What runs in flight will free or give up is known when they are done.
    if (idle) Executor::WaitForAll(device.client);
    bytes = BytesToObtain(program.memory, state.trace, program.updated_by, state.replaced);
    status = CheckMemoryLimit(program.memory, bytes, executor.BytesInFlight(), device);
    if (status.ok()) return status;
  }
  return ir::AtSite(Prefixed(status, Str(program.name, ": ")), CurrentSite());
}

// Whose checks the program's are in this run.
void FillChecks(absl::Span<const Context::Checked> checked, const Trace& trace, Run& run) {
  const std::vector<lowering::EmittedCheck>& checks = run.program->checks;
  run.checks.reserve(checks.size());
  for (const lowering::EmittedCheck& check : checks)
    run.checks.push_back({trace.nodes[check.node]->site(), {}, 0});
  // By the positions of their nodes, which grow.
  for (std::size_t order = 0; order < checked.size(); ++order) {
    const Context::Checked& recorded = checked[order];
    if (!(recorded.device == run.device)) continue;
    const uint32_t position = recorded.node->mark_index;
    if (position >= trace.nodes.size() || trace.nodes[position] != recorded.node.get()) continue;
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

// The inputs that an earlier run's check may leave without elements, or has.
using DoubtfulInputs = absl::InlinedVector<std::size_t, 8>;
DoubtfulInputs DoubtfulInputsOf(const Run& run) {
  DoubtfulInputs doubtful;
  for (std::size_t i = 0; i < run.inputs.size(); ++i) {
    if (run.inputs[i]->doubtful()) doubtful.push_back(i);
  }
  return doubtful;
}

// What the outputs are written over, for a run that does not take them. An array that the program does
// not read is kept for that only where a check of this run or of an earlier one may fail.
void FillUpdates(const Context& context, const ThreadState& state, bool may_fail, Run& run) {
  absl::flat_hash_map<const DataHandle*, int32_t> inputs;  // made where the program does not say
  run.updates.resize(state.roots.size());
  for (std::size_t o = 0; o < state.roots.size(); ++o) {
    if (state.roots[o] == nullptr) continue;  // nobody wants it
    Run::Update& update = run.updates[o];
    update.of_view = state.roots[o]->view() != nullptr;
    const DataHandle* const old = state.replaced[o];
    if (old == nullptr) continue;
    const int32_t leaf = run.program->updates[o];
    if (leaf >= 0 && run.inputs[static_cast<std::size_t>(leaf)].get() == old) {
      update.input = leaf;
      continue;
    }
    if (inputs.empty()) {
      for (std::size_t i = 0; i < run.inputs.size(); ++i)
        inputs.try_emplace(run.inputs[i].get(), static_cast<int32_t>(i));
    }
    if (const auto input = inputs.find(old); input != inputs.end())
      update.input = input->second;
    else if (may_fail)
      update.kept = context.Replaced(*state.roots[o]);
  }
}

// Of a result: whether a check may leave it without elements. An update that is not taken leaves what it
// is written over.
bool IsDoubtful(const Run& run, std::size_t output, const DoubtfulInputs& inputs) {
  const Run::Update& update = run.updates[output];
  if (update.input >= 0) return run.inputs[static_cast<std::size_t>(update.input)]->doubtful();
  if (update.kept) return update.kept->doubtful();
  const Program& program = *run.program;
  for (std::size_t check = 0; check < program.checks.size(); ++check) {
    if (program.dependence.OutputOnCheck(output, check)) return true;
  }
  if (!program.checks.empty() && program.after_guard[output] != 0) return true;
  return std::any_of(inputs.begin(), inputs.end(), [&](std::size_t leaf) {
    return program.dependence.OutputOnLeaf(output, leaf);
  });
}

int64_t NextRunNumber() {
  static std::atomic<int64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

// The run of a program, with a handle for each root: all the memory that a sync asks for.
Executor::Entry MakeRun(Context& context, absl::Span<const Context::Checked> checked,
                        backend::Device device, const ThreadState& state, ProgramPtr program) {
  const Trace& trace = state.trace;
  Executor::Entry entry;
  Run& run = entry.emplace_back();
  run.program = std::move(program);
  run.device = device;
  run.context = IntrusivePtr<Context>(&context);
  run.site = CurrentSite();
  run.number = NextRunNumber();
  run.inputs.reserve(trace.data.size());
  for (const Node* leaf : trace.data)
    run.inputs.push_back(static_cast<const DataNode*>(leaf)->data());
  run.scalars.reserve(trace.scalars.size());
  for (const Node* leaf : trace.scalars)
    run.scalars.push_back(static_cast<const ScalarNode*>(leaf)->cell());
  FillChecks(checked, trace, run);
  const DoubtfulInputs doubtful = DoubtfulInputsOf(run);
  const bool may_fail = !run.program->checks.empty() || !doubtful.empty();
  FillUpdates(context, state, may_fail, run);
  for (const lowering::EmittedNaN& value : run.program->nans)
    run.nans.push_back({trace.nodes[value.node]->site(), {}, trace.nodes[value.node]->order()});
  run.told = Fault::Told();
  run.outcome = context.outcome_or_null();
  run.outputs.reserve(trace.roots.size());
  for (const Value& root : trace.roots)
    run.outputs.push_back(MakeIntrusive<DataHandle>(root.shape(), device));
  for (std::size_t o = 0; o < state.before.size(); ++o) {
    if (state.before[o] >= 0 && state.roots[o] != nullptr)
      run.updates[o].kept = run.outputs[static_cast<std::size_t>(state.before[o])];
  }
  // Backwards: what an update is written over may be a result with a higher number.
  for (std::size_t o = may_fail ? run.outputs.size() : 0; o-- > 0;) {
    if (IsDoubtful(run, o, doubtful)) run.outputs[o]->SetDoubtful();
  }
  return entry;
}

// One sync of a context, which nobody else syncs meanwhile.
class ContextSync {
 public:
  ContextSync(Context& context, std::optional<Context::Lock>& lock, SyncReason reason,
              ThreadState& state)
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
  absl::StatusOr<ProgramPtr> ProgramFor(backend::Device device);
  void AddBefore();
  void ForgetChangedRoots();
  void ResolveHidden();
  absl::Status SyncDevice(backend::Device device);
  absl::Span<const Context::Checked> checked() const {
    return context_.checked().first(num_checked_);
  }

  Context& context_;
  std::optional<Context::Lock>& lock_;
  const SyncReason reason_;
  ThreadState& state_;
  std::size_t num_checked_ = 0;  // that the trace has
  int compiles_ = 0;             // during which the lock was free
};

// The pending values of the device that need a program become the roots of the trace.
absl::Status ContextSync::CollectRoots(backend::Device device) {
  auto& [last_program, last_recompile, trace, key, devices, pending, here, hidden, forgotten, roots,
         replaced, before] = state_;
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
    if (recorded.device == device && !recorded.was_told) trace.checked.push_back(recorded.node);
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

absl::StatusOr<ProgramPtr> ContextSync::ProgramFor(backend::Device device) {
  Trace& trace = state_.trace;
  LAZULI_ASSIGN_OR_RETURN(const backend::CompileOptions options, CompileOptionsFor(device));
  uint64_t hash = 0;
  ProgramPtr program = FindProgram(trace, device, options, state_.key, hash);
  const bool cached = program != nullptr;
  Observers& observers = Observers::Get();
  std::string new_name;
  if (!cached) new_name = Str("SyncTensorsGraph.", observers.next_program.fetch_add(1));
  const std::string& name = cached ? program->name : new_name;
  {
    std::lock_guard watching(observers.mutex);
    const SyncEvent event{trace, device, reason_, CurrentSite(), hash, cached, name};
    for (const SyncObserver& observer : observers.all_syncs) observer(event);
    if (observers.sync) observers.sync(event);
  }
  Add(cached ? Counter::kCachedCompile : Counter::kUncachedCompile);
  if (cached) return program;
  auto emitted =
      Emit(trace, UpdatedLeaves(trace, state_.replaced), device, options, state_.key, hash, name);
  if (emitted.ok()) {
    const Recompile& why = emitted->program->recompile;
    std::optional<Recompile>& last = state_.last_recompile;
    if (!last || why.cause != RecompileCause::kFirst || last->cause == RecompileCause::kFirst)
      last = why;
  }
  const bool keeps_lock = compiles_ >= kMaxUnlocked;
  absl::StatusOr<ProgramPtr> compiled =
      Compile(std::move(emitted), trace, context_, lock_, device, options, keeps_lock);
  if (!keeps_lock) {
    ++compiles_;
    // Numbers its nodes again: others may have looked at them.
    trace.nodes.clear();
    trace.data.clear();
    trace.scalars.clear();
    TraceGraph(trace);
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

absl::Status ContextSync::SyncDevice(backend::Device device) {
  LAZULI_RETURN_IF_ERROR(CollectRoots(device));
  auto& [last_program, last_recompile, trace, key, devices, pending, here, hidden, forgotten, roots,
         replaced, before] = state_;
  if (roots.empty() && trace.checked.empty()) return absl::OkStatus();
  absl::StatusOr<ProgramPtr> program = ProgramFor(device);
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
  LAZULI_RETURN_IF_ERROR(CheckMemory(**program, state_, device, bytes));
  Executor::Entry run = MakeRun(context_, checked(), device, state_, *std::move(program));
  run.front().bytes = bytes;
  Executor& executor = Executor::Of(device);
  {
    const ir::TraceSpan span(ir::SpanKind::kQueue, "queue", run.front().number);
    executor.Admit();
  }
  // From here on nothing fails: a storage with a handle has a run that will set it.
  for (std::size_t i = 0; i < roots.size(); ++i) {
    if (roots[i] != nullptr) context_.Resolve(*roots[i], run.front().outputs[i]);
  }
  context_.ForgetChecked(device, num_checked_);
  ResolveHidden();
  trace.Clear();  // the graph's own references to its leaves go: what are left are owners
  forgotten.clear();
  // Under the context's lock: whoever sees a handle knows that its run was submitted.
  const uint64_t number = executor.Submit(std::move(run));
  Context::RunOn(device, context_.last_runs) = number;
  return absl::OkStatus();
}

class ExecutionEngine final : public Engine {
 public:
  using Engine::Sync;
  absl::Status Sync(Context& context, bool wait, SyncReason reason,
                    absl::FunctionRef<void()> then) override {
    LAZULI_RETURN_IF_ERROR(ir::ForkError());
    LAZULI_RETURN_IF_ERROR(Context::CheckNotEnding());
    LAZULI_RETURN_IF_ERROR(FlagErrors());
    LAZULI_RETURN_IF_ERROR(context.TakeFailure());
    ir::EndRecorded();
    const SiteSpan span(ir::SpanKind::kSync, "sync");
    LAZULI_RETURN_IF_ERROR(WaitForDoubtful(context));
    ThreadState& state = ir::PerThread<ThreadState>::Get();
    absl::Status status;
    Context::LastRuns runs;
    {
      const std::lock_guard syncing(context.syncing);
      std::optional<Context::Lock> lock(context);
      status = ContextSync(context, lock, reason, state).Run();
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

  void WaitForRuns() override { Executor::WaitForAll(nullptr); }

 private:
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

}  // namespace

namespace {
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

void SetSyncObserver(SyncObserver o) {
  std::lock_guard lock(Observers::Get().mutex);
  Observers::Get().sync = std::move(o);
}

void SetCompileObserver(CompileObserver o) {
  std::lock_guard lock(Observers::Get().mutex);
  Observers::Get().compile = std::move(o);
}

void AddSyncObserver(SyncObserver o) {
  std::lock_guard lock(Observers::Get().mutex);
  Observers::Get().all_syncs.push_back(std::move(o));
}

void AddCompileObserver(CompileObserver o) {
  std::lock_guard lock(Observers::Get().mutex);
  Observers::Get().all_compiles.push_back(std::move(o));
}

absl::StatusOr<backend::CompileOptions> CompileOptionsFor(backend::Device device) {
  LAZULI_ASSIGN_OR_RETURN(backend::CompileOptions options, backend::CompileOptions::FromFlags());
  if (device.client->compiles_for_one_device()) options.device_assignment = {device.ordinal};
  options.program_passes = lowering::ProgramPasses();
  return options;
}

absl::StatusOr<lowering::EmittedModule> EmitTrace(
    const Trace& trace, std::string name, std::vector<hlo::Alias> aliases,
    std::optional<lowering::EmitSignature> signature) {
  lowering::EmitOptions options;
  options.name = std::move(name);
  options.aliases = std::move(aliases);
  options.narrowing = NarrowingFromFlags();
  options.find_nans = !signature && flags().debug_nans();
  options.signature = std::move(signature);
  for (const Node* leaf : trace.data)
    options.parameter_names.emplace_back(static_cast<const DataNode*>(leaf)->label());
  return lowering::EmitModule(trace, options);
}

const Recompile* LastRecompile() {
  const std::optional<Recompile>& last = ir::PerThread<ThreadState>::Get().last_recompile;
  return last ? &*last : nullptr;
}

ProgramPtr LastProgram() { return ir::PerThread<ThreadState>::Get().last_program; }

ProgramCache& GetProgramCache() {
  struct Cache {
    ProgramCache programs{flags().compilation_cache_bytes(), flags().compilation_cache_size()};
  };
  return ir::Runtime::Get().Of<Cache>().programs;
}

}  // namespace lazuli::lazy
