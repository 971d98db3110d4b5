#include "lazy/execution/make_program.h"

#include <chrono>
#include <type_traits>
#include <utility>

#include "absl/container/flat_hash_map.h"

#include "ir/support/flags.h"
#include "ir/support/float_mode.h"
#include "ir/support/metrics.h"
#include "ir/support/slow_notice.h"
#include "lazy/execution/executor.h"
#include "lazy/execution/failure.h"
#include "lazy/execution/recompile_warning.h"
#include "lazy/tensor/leaves.h"
#include "lazy/tensor/site_span.h"
#include "lowering/passes/registry.h"

namespace lazuli::lazy {
namespace {

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

// CachedProgram::checked_integers of a check. Others than leaves and results are nowhere after the run.
std::vector<int32_t> IntegersGivenTo(const Node& node, const Trace& trace) {
  std::vector<int32_t> places;
  VisitIntegers(node, [&](const Value& integers) {
    for (std::size_t j = 0; j < trace.data.size(); ++j) {
      if (trace.data[j] == integers.node.get()) places.push_back(static_cast<int32_t>(j));
    }
    for (std::size_t i = 0; i < trace.roots.size(); ++i) {
      const Value& root = trace.roots[i];
      if (root.node == integers.node && root.index == integers.index)
        places.push_back(-1 - static_cast<int32_t>(i));
    }
  });
  return places;
}

// Of a compiled program: code, module, key and outline.
int64_t BytesOf(const CachedProgram& program) {
  const auto instructions =
      static_cast<std::size_t>(program.program().module().instruction_count());
  return program.launcher.executable()->stats().code_bytes +
         static_cast<int64_t>(program.key.size() * sizeof(uint32_t) +
                              instructions * sizeof(hlo::Instruction)) +
         program.outline.bytes();
}

std::vector<ProgramCheck> ChecksOf(const lowering::EmittedModule& emitted, const Trace& trace) {
  std::vector<ProgramCheck> checks;
  for (const lowering::EmittedCheck& check : emitted.checks)
    checks.push_back({check.message, {}, trace.nodes[check.node]->site()});
  return checks;
}

}  // namespace

lowering::Narrowing NarrowingFromFlags() {
  using enum lowering::Narrowing::Floats;
  return {.longs = flags().use_32bit_long(),
          .floats = flags().use_bf16()        ? kAllBf16
                    : flags().downcast_bf16() ? kDowncast
                                              : kKept};
}

CachedProgramPtr FindProgram(Trace& trace, backend::Device device,
                             const backend::CompileOptions& options, KeyWriter& key,
                             uint64_t& hash) {
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

absl::StatusOr<std::shared_ptr<CachedProgram>> Emit(
    const Trace& trace, const std::vector<const DataHandle*>& replaced, backend::Device device,
    const backend::CompileOptions& options, const KeyWriter& key, uint64_t hash, std::string name) {
  const ir::TraceSpan span(ir::SpanKind::kEmit, "emit");
  const ir::ScopedFloatMode mode(options.flush_subnormals);
  LAZULI_ASSIGN_OR_RETURN(lowering::EmittedModule emitted,
                          EmitTrace(trace, std::move(name), UpdatedLeaves(trace, replaced)));
  auto program = std::make_shared<CachedProgram>(
      std::make_shared<Program>(std::move(emitted.module), ChecksOf(emitted, trace),
                                emitted.nans.size()),
      device, options);
  program->key = key.words();
  program->hash = hash;
  program->site = CurrentSite();
  program->options = EnvironmentText(device, options);
  program->outline = GraphOutline(trace);
  program->recompile = GetProgramCache().WhyMissing(*program);
  WarnOfRecompiles(*program);
  program->updated_by.resize(trace.data.size(), -1);
  program->updates.resize(trace.roots.size(), -1);
  program->donations = std::make_unique<std::atomic<Donation>[]>(trace.data.size());
  for (const hlo::Alias& alias : program->program().module().aliases()) {
    const int64_t output = alias.output_index[0], leaf = alias.parameter_number;
    program->updated_by[static_cast<std::size_t>(leaf)] = static_cast<int32_t>(output);
    program->updates[static_cast<std::size_t>(output)] = static_cast<int32_t>(leaf);
  }
  program->after_guard = std::move(emitted.after_guard);
  program->nans = std::move(emitted.nans);
  for (const lowering::EmittedCheck& check : emitted.checks) {
    program->check_nodes.push_back(check.node);
    program->checked_integers.push_back(IntegersGivenTo(*trace.nodes[check.node], trace));
  }
  program->dependence = Dependence(trace, program->check_nodes);
  return program;
}

absl::StatusOr<CachedProgramPtr> Compile(
    std::shared_ptr<CachedProgram> program, const Trace& trace, backend::Device device,
    absl::FunctionRef<void(absl::FunctionRef<void()>)> unlocked) {
  const SiteSpan span(ir::SpanKind::kCompile, "compile");
  const auto text = [nodes = trace.nodes.size(), site = CurrentSite()] {
    return Str("compiling ", nodes, " nodes", ir::InParentheses(site),
               " takes long; mark_step() makes graphs shorter");
  };
  const ir::SlowNotice notice(std::chrono::milliseconds(flags().slow_compile_ms()), text);
  const auto start = std::chrono::steady_clock::now();
  absl::Status status;
  unlocked([&] { status = program->launcher.Compile(); });
  if (!status.ok()) return ReportFailure(status, *program, device, "compile", CurrentSite());
  program->memory = PlanMemory(trace, program->updated_by, program->program().module().aliases(),
                               program->launcher.executable()->stats());
  program->bytes = BytesOf(*program);
  const auto time = std::chrono::steady_clock::now() - start;
  AddSample(Timer::kCompileTime, std::chrono::nanoseconds(time).count());
  Notify(CompileEvent{*program, device, CurrentSite(), time});
  return GetProgramCache().Insert(std::move(program));
}

absl::StatusOr<backend::CompileOptions> CompileOptionsFor(backend::Device device) {
  LAZULI_ASSIGN_OR_RETURN(backend::CompileOptions options, backend::CompileOptions::FromFlags());
  if (device.client->compiles_for_one_device()) options.device_assignment = {device.ordinal};
  options.program_passes = lowering::ProgramPasses();
  options.interpreted_ops = flags().interpret_ops();
  return options;
}

absl::StatusOr<backend::CompileOptions> SyncOptionsFor(backend::Device device) {
  LAZULI_ASSIGN_OR_RETURN(backend::CompileOptions options, CompileOptionsFor(device));
  options.is_part = true;
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

}  // namespace lazuli::lazy
