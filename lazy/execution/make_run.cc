#include "lazy/execution/make_run.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/container/inlined_vector.h"

#include "ir/support/flags.h"
#include "lazy/execution/sync.h"
#include "lazy/tensor/site_span.h"

namespace lazuli::lazy {
namespace {

// Whose checks the program's are in this run.
void FillChecks(absl::Span<const Context::Checked> checked, const SyncState& state, Run& run) {
  const Trace& trace = state.trace;
  const std::vector<uint32_t>& nodes = run.program->check_nodes;
  run.checks.reserve(nodes.size());
  for (const uint32_t node : nodes) run.checks.push_back({trace.nodes[node]->site(), {}, 0});
  for (std::size_t order = 0; order < checked.size(); ++order) {
    const Context::Checked& recorded = checked[order];
    const uint32_t position = state.checked_at[order];
    if (position == SyncState::kNowhere || !(recorded.device == run.device)) continue;
    for (auto check = std::lower_bound(nodes.begin(), nodes.end(), position);
         check != nodes.end() && *check == position; ++check) {
      Run::Check& here = run.checks[static_cast<std::size_t>(check - nodes.begin())];
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
void FillUpdates(absl::Span<const RootOfRun> roots, bool may_fail, Run& run) {
  absl::flat_hash_map<const DataHandle*, int32_t> inputs;  // made where the program does not say
  run.updates.resize(roots.size());
  for (std::size_t o = 0; o < roots.size(); ++o) {
    if (!roots[o].is_wanted) continue;
    Run::Update& update = run.updates[o];
    update.of_view = roots[o].is_view;
    const DataHandle* const old = roots[o].replaced;
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
      update.kept = DataPtr(const_cast<DataHandle*>(old));
  }
}

// Of a result: whether a check may leave it without elements. An update that is not taken leaves what it
// is written over.
bool IsDoubtful(const Run& run, std::size_t output, const DoubtfulInputs& inputs) {
  const Run::Update& update = run.updates[output];
  if (update.input >= 0) return run.inputs[static_cast<std::size_t>(update.input)]->doubtful();
  if (update.kept) return update.kept->doubtful();
  const CachedProgram& program = *run.program;
  for (std::size_t check = 0; check < program.checks().size(); ++check) {
    if (program.dependence.OutputOnCheck(output, check)) return true;
  }
  if (!program.checks().empty() && program.after_guard[output] != 0) return true;
  return std::any_of(inputs.begin(), inputs.end(), [&](std::size_t leaf) {
    return program.dependence.OutputOnLeaf(output, leaf);
  });
}

int64_t NextRunNumber() {
  static std::atomic<int64_t> last{0};
  return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

absl::Status CheckMemory(const CachedProgram& program, const SyncState& state,
                         backend::Device device, int64_t& bytes) {
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
  return ir::AtSite(Prefixed(status, Str(program.name(), ": ")), CurrentSite());
}

void CompleteRun(absl::Span<const RootOfRun> roots,
                 absl::FunctionRef<const Shape&(std::size_t)> shape, Run& run) {
  run.number = NextRunNumber();
  const DoubtfulInputs doubtful = DoubtfulInputsOf(run);
  const bool may_fail = !run.program->checks().empty() || !doubtful.empty();
  FillUpdates(roots, may_fail, run);
  run.told = Fault::Told();
  run.outcome = run.context->outcome_or_null();
  run.outputs.reserve(roots.size());
  for (std::size_t o = 0; o < roots.size(); ++o)
    run.outputs.push_back(MakeIntrusive<DataHandle>(shape(o), run.device));
  for (std::size_t o = 0; o < roots.size(); ++o) {
    if (roots[o].before >= 0 && roots[o].is_wanted)
      run.updates[o].kept = run.outputs[static_cast<std::size_t>(roots[o].before)];
  }
  // Backwards: what an update is written over may be a result with a higher number.
  for (std::size_t o = may_fail ? run.outputs.size() : 0; o-- > 0;) {
    if (IsDoubtful(run, o, doubtful)) run.outputs[o]->SetDoubtful();
  }
}

Executor::Entry MakeRun(Context& context, absl::Span<const Context::Checked> checked,
                        backend::Device device, const SyncState& state, CachedProgramPtr program) {
  const Trace& trace = state.trace;
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
  FillChecks(checked, state, run);
  for (const lowering::EmittedNaN& value : run.program->nans)
    run.nans.push_back({trace.nodes[value.node]->site(), {}, trace.nodes[value.node]->order()});
  PooledVector<RootOfRun> roots;
  roots.reserve(state.roots.size());
  for (std::size_t o = 0; o < state.roots.size(); ++o) {
    const Storage* const root = state.roots[o];
    const int32_t before = o < state.before.size() ? state.before[o] : -1;
    roots.push_back(
        {state.replaced[o], before, root != nullptr, root != nullptr && root->view() != nullptr});
  }
  const auto shape = [&](std::size_t o) -> const Shape& { return trace.roots[o].shape(); };
  CompleteRun(roots, shape, run);
  return entry;
}

}  // namespace lazuli::lazy
