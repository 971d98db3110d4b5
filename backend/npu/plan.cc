#include "backend/npu/plan.h"

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <map>
#include <unordered_set>
#include <utility>

#include "backend/client/registry.h"
#include "backend/npu/compiler/compile.h"
#include "backend/npu/compiler/lower_collective.h"
#include "backend/npu/compiler/supported.h"
#include "backend/npu/decide.h"
#include "backend/runtime/thunk.h"
#include "ir/evaluator/dynamic_sizes.h"
#include "ir/support/flags.h"
#include "ir/support/status.h"
#include "ir/types/leaves.h"
#include "lowering/passes/pass.h"
#include "lowering/passes/pipelines.h"

namespace lazuli::npu {
namespace {

// A program of fewer elements than this in all its arrays is run by the evaluator in the time that
// compiling it would take many times over.
constexpr int64_t kScalarProgram = 64;

bool HasToken(const Shape& shape) {
  if (!shape.IsTuple()) return shape.IsToken();
  return std::any_of(shape.tuple().begin(), shape.tuple().end(), HasToken);
}

// Why the module cannot be cut, or runs on the host as a whole.
std::optional<Refusal> WhyWhole(const hlo::Module& module, const backend::CompileOptions& options) {
  if (options.flush_subnormals)
    return Refusal{"unsupported-option",
                   "the NPU computes with subnormals (LAZULI_FLUSH_SUBNORMALS)"};
  if (hlo::HasDynamicSizes(module))
    return Refusal{"unsupported-shape", "a dimension gets its size when the program runs"};
  for (const auto& i : module.entry()->instructions()) {
    if (HasToken(i->shape()))
      return Refusal{"unsupported-op", Str(hlo::OpcodeText(i->opcode()),
                                           " talks to the host while the program runs")};
  }
  return std::nullopt;
}

// Whether the program asks for the NPU's transfers or for its number, which the host's client does not
// have.
bool DependsOnDevice(const hlo::Module& module) {
  for (const auto& computation : module.computations()) {
    for (const auto& i : computation->instructions()) {
      switch (i->opcode()) {
        case hlo::Opcode::kInfeed:
        case hlo::Opcode::kOutfeed:
        case hlo::Opcode::kReplicaId:
        case hlo::Opcode::kPartitionId:
          return true;
        default:
          break;
      }
    }
  }
  return false;
}

bool IsScalarProgram(const hlo::Module& module) {
  int64_t elements = 0;
  for (const auto& computation : module.computations()) {
    for (const auto& i : computation->instructions()) {
      if (!i->called().empty()) return false;
      ForEachLeaf(i->shape(), [&](const Shape& leaf) { elements += leaf.num_elements(); });
      if (elements > kScalarProgram) return false;
    }
  }
  return true;
}

absl::StatusOr<HostProgram> MakeHostProgram(const Region& region, backend::CompileOptions options) {
  if (IsScalarProgram(*region.module) || DependsOnDevice(*region.module)) return HostProgram{};
  LAZULI_ASSIGN_OR_RETURN(ComputationClient* const client, HostClient());
  options.denied_ops.clear();
  options.allowed_ops.clear();
  LAZULI_ASSIGN_OR_RETURN(ExecutablePtr executable,
                          client->Compile(region.module->Clone(), options));
  return HostProgram{std::move(executable)};
}

// "p12" is 12 of 'p'; -1: it is none.
int64_t NumberOf(std::string_view name, char letter) {
  int64_t number = -1;
  if (name.size() < 2 || name[0] != letter) return -1;
  const auto end = std::from_chars(name.data() + 1, name.data() + name.size(), number);
  return end.ec == std::errc() && end.ptr == name.data() + name.size() ? number : -1;
}

std::optional<int64_t> LeafOf(const Shape& shape, absl::Span<const int64_t> index) {
  if (index.empty()) return shape.IsArray() ? std::optional<int64_t>(0) : std::nullopt;
  if (!shape.IsTuple() || index.size() > 1) return std::nullopt;
  const Shape& part = shape.tuple()[static_cast<std::size_t>(index[0])];
  return part.IsArray() ? std::optional(LeavesBefore(shape, index[0])) : std::nullopt;
}

// Which of the region's outputs may take the memory of an argument that the module says they
// replace: nobody else reads that argument then or later.
std::vector<MayReplace> UpdatesOf(const Plan& plan, const Region& region) {
  std::vector<MayReplace> updates;
  if (region.alone) return updates;
  const Partition& partition = plan.partition;
  const auto place_in = [](const std::vector<int32_t>& values, int32_t value) {
    const auto at = std::find(values.begin(), values.end(), value);
    return at == values.end() ? -1 : static_cast<int32_t>(at - values.begin());
  };
  const hlo::Computation& entry = *plan.module->entry();
  for (const hlo::Alias& alias : plan.module->aliases()) {
    const std::optional<int64_t> output = LeafOf(entry.root()->shape(), alias.output_index);
    int64_t before = 0;
    for (int64_t p = 0; p < alias.parameter_number; ++p)
      before += LeafCount(entry.parameters()[static_cast<std::size_t>(p)]->shape());
    const std::optional<int64_t> leaf =
        LeafOf(entry.parameters()[static_cast<std::size_t>(alias.parameter_number)]->shape(),
               alias.parameter_index);
    if (!output || !leaf) continue;
    const auto parameter = static_cast<int32_t>(before + *leaf);
    const int32_t value = partition.results[static_cast<std::size_t>(*output)];
    const int32_t result = place_in(region.outputs, value),
                  argument = place_in(region.inputs, parameter);
    const bool read_later =
        std::any_of(partition.regions.begin(), partition.regions.end(), [&](const Region& other) {
          return &other > &region && place_in(other.inputs, parameter) >= 0;
        });
    if (result >= 0 && argument >= 0 && !read_later && place_in(partition.results, parameter) < 0)
      updates.push_back({result, argument});
  }
  return updates;
}

// The value that takes the memory of this one.
int32_t ResultInPlaceOf(int32_t parameter,
                        const std::vector<DeviceProgram::UpdatedParameter>& updates) {
  return std::find_if(updates.begin(), updates.end(),
                      [&](const DeviceProgram::UpdatedParameter& update) {
                        return update.parameter == parameter;
                      })
      ->value;
}

absl::StatusOr<DeviceProgram> MakeDeviceProgram(const Plan& plan, const Region& region,
                                                const Config& config) {
  CompileReport report;
  Meetings meetings;
  meetings.one_group = false;
  if (region.alone) {
    LAZULI_ASSIGN_OR_RETURN(meetings, MeetingsOf(*region.instructions[0], config));
  }
  LAZULI_ASSIGN_OR_RETURN(const Program program, Compile(*region.module, config, &report,
                                                         {.one_group = meetings.one_group,
                                                          .updates = UpdatesOf(plan, region)}));
  auto checked = std::make_shared<CheckedProgram>();
  if (const auto fault = CheckProgram(program, config, *checked)) return ToStatus(*fault);
  for (const CheckedProgram::Reference& reference : checked->references) {
    if (reference.symbol < 0)
      return Internal("the NPU's program names a place where no array begins, pc ", reference.pc);
  }
  DeviceProgram result;
  result.origins = std::move(report.origins);
  for (const MayReplace& pair : report.updated)
    result.updates.push_back({region.outputs[static_cast<std::size_t>(pair.result)],
                              region.inputs[static_cast<std::size_t>(pair.parameter)]});
  for (const Symbol& symbol : program.symbols) {
    using Kind = DeviceProgram::Where::Kind;
    const auto bytes = RoundedToDramUnit(static_cast<uint64_t>(symbol.bytes()));
    if (symbol.kind == SymbolKind::kConst) {
      result.symbols.push_back({Kind::kConstant, 0, result.constant_bytes});
      result.constant_bytes += bytes;
    } else if (symbol.kind == SymbolKind::kBss) {
      result.symbols.push_back({Kind::kTemporary, 0, result.temporary_bytes});
      result.temporary_bytes += bytes;
    } else {
      const bool in = symbol.kind != SymbolKind::kOut;
      const std::vector<int32_t>& values = in ? region.inputs : region.outputs;
      const int64_t number = NumberOf(symbol.name, in ? 'p' : 'r');
      if (number < 0 || number >= static_cast<int64_t>(values.size()))
        return Internal("the NPU's program has an array ", symbol.name,
                        " that is neither parameter nor result");
      int32_t value = values[static_cast<std::size_t>(number)];
      if (symbol.kind == SymbolKind::kInOut) value = ResultInPlaceOf(value, result.updates);
      result.symbols.push_back({Kind::kValue, value, 0});
    }
  }
  result.program = std::move(checked);
  if (region.alone) {
    result.meetings = std::move(meetings.of_device);
    result.what = OriginOf(*region.instructions[0]);
  }
  return result;
}

// The compiler gives up on what does not fit the scratchpad, or on what it only found out about on
// the way.
bool GivesUp(const absl::Status& status) {
  return absl::IsUnimplemented(status) || absl::IsResourceExhausted(status) ||
         absl::IsOutOfRange(status);
}

void CountHostOps(const Placement& placement, Plan& plan) {
  std::map<std::pair<std::string, std::string>, HostOp> counts;
  for (const PlanStep& step : plan.steps) {
    if (step.region->on_device) continue;
    for (const hlo::Instruction* i : step.region->instructions) {
      const Refusal* const refusal = placement.RefusalOf(*i);
      if (refusal == nullptr) continue;
      const std::string op(hlo::OpcodeText(i->opcode()));
      ++counts.try_emplace({op, refusal->code}, HostOp{op, refusal->code, refusal->sentence, 0})
            .first->second.count;
    }
  }
  for (const auto& [key, op] : counts) plan.host_ops.push_back(op);
}

void Report(const Placement& placement, const Plan& plan) {
  const std::string& name = plan.module->name();
  if (flags().log_placement())
    std::fprintf(stderr, "lazuli: placement of %s\n%s", name.c_str(), plan.placement.c_str());
  if (!flags().npu_explain()) return;
  const std::string reasons = placement.ReasonsText();
  if (reasons.empty())
    std::fprintf(stderr, "npu: all of %s runs on the device\n", name.c_str());
  else
    std::fprintf(stderr, "npu: what of %s runs on the host\n%s", name.c_str(), reasons.c_str());
}

// A program for each region; false: a region of the device has none, and has been refused.
absl::StatusOr<bool> CompileRegions(const Config& config, const backend::CompileOptions& options,
                                    Placement& placement, Plan& plan) {
  plan.steps.clear();
  // The device's first: what it gives up makes other regions.
  for (const bool device : {true, false}) {
    for (const Region& region : plan.partition.regions) {
      if (region.on_device != device) continue;
      PlanStep step{&region, HostProgram{}};
      if (device) {
        absl::StatusOr<DeviceProgram> program = MakeDeviceProgram(plan, region, config);
        if (!program.ok() && GivesUp(program.status())) {
          const Refusal refusal{"does-not-compile", std::string(Message(program.status()))};
          for (const hlo::Instruction* i : region.instructions) placement.Refuse(*i, refusal);
          return false;
        }
        LAZULI_RETURN_IF_ERROR(program.status());
        step.program = *std::move(program);
      } else {
        LAZULI_ASSIGN_OR_RETURN(step.program, MakeHostProgram(region, options));
      }
      plan.steps.push_back(std::move(step));
    }
  }
  std::sort(plan.steps.begin(), plan.steps.end(),
            [](const PlanStep& a, const PlanStep& b) { return a.region < b.region; });
  return true;
}

// What devices have to run together: collectives, and loops and branches with collectives inside. An error if there are not so many
// devices, or if they cannot.
absl::StatusOr<std::unordered_set<const hlo::Instruction*>> MeetingPoints(const hlo::Module& module,
                                                                          const Config& config) {
  std::unordered_set<const hlo::Instruction*> points;
  for (const auto& i : module.entry()->instructions()) {
    const auto collectives = CollectivesIn(*i);
    if (collectives.empty()) continue;
    const auto site = backend::ThunkInfo::Of("npu", *collectives[0]);
    const auto meetings = MeetingsOf(*i, config);
    if (!meetings.ok()) return WithSite(meetings.status(), site);
    if (!meetings->any()) continue;
    if (const std::optional<Refusal> refusal = WhyNot(*i, config))
      return WithSite(Unimplemented("npu does not run ", hlo::OpcodeText(i->opcode()),
                                    " between devices: ", refusal->sentence),
                      site);
    points.insert(i.get());
  }
  return points;
}

absl::Status Simplify(hlo::Module& module, const backend::CompileOptions& options) {
  lowering::PassPipeline pipeline("npu", 1,
                                  {.disabled_passes = options.disabled_passes,
                                   .disabled_rules = options.disabled_rules,
                                   .program_passes = options.program_passes,
                                   .jitter = options.jitter,
                                   .jitter_seed = options.jitter_seed});
  lowering::AddSimplificationPipeline(pipeline);
  return pipeline.Run(module).status();
}

absl::StatusOr<OpFilter> FilterOf(const Config& config, const backend::CompileOptions& options) {
  OpFilter filter;
  LAZULI_RETURN_IF_ERROR(filter.Add(options));
  if (options.op_filter) LAZULI_RETURN_IF_ERROR(filter.Deny(config.filter.deny, "filter.deny"));
  return filter;
}

// What the NPU lacks, and what it may not run.
Placement PlacementOf(const hlo::Module& module, const OpFilter& filter, const Config& config,
                      const backend::CompileOptions& options) {
  Placement placement(module, filter, [&](const hlo::Instruction& i) { return WhyNot(i, config); });
  if (const std::optional<Refusal> whole = WhyWhole(module, options)) placement.RefuseAll(*whole);
  return placement;
}

bool AnyOnDevice(const Placement& placement) {
  const auto& instructions = placement.module().entry()->instructions();
  return std::any_of(instructions.begin(), instructions.end(), [&](const auto& i) {
    return !GoesWithItsUsers(*i) && placement.OnDevice(*i);
  });
}

}  // namespace

absl::StatusOr<ComputationClient*> HostClient() {
  absl::StatusOr<ComputationClient*> cpu = FindClient("cpu");
  return cpu.ok() ? cpu : FindClient("interpreter");
}

absl::Status CheckPlacement(std::unique_ptr<hlo::Module> module, const Config& config,
                            const backend::CompileOptions& options) {
  LAZULI_RETURN_IF_ERROR(Simplify(*module, options));
  LAZULI_ASSIGN_OR_RETURN(const OpFilter filter, FilterOf(config, options));
  return PlacementOf(*module, filter, config, options).CheckAllOnDevice("npu");
}

absl::StatusOr<Plan> MakePlan(std::unique_ptr<hlo::Module> module, const Config& config,
                              const backend::CompileOptions& options) {
  Plan plan;
  plan.module = std::move(module);
  LAZULI_RETURN_IF_ERROR(Simplify(*plan.module, options));
  LAZULI_ASSIGN_OR_RETURN(const auto meeting_points, MeetingPoints(*plan.module, config));
  const auto alone = [&](const hlo::Instruction& i) { return meeting_points.contains(&i); };
  LAZULI_ASSIGN_OR_RETURN(const OpFilter filter, FilterOf(config, options));
  Placement placement = PlacementOf(*plan.module, filter, config, options);
  if (!options.soft_placement) LAZULI_RETURN_IF_ERROR(placement.CheckAllOnDevice("npu"));
  for (const hlo::Instruction* point : meeting_points) {
    if (const Refusal* const refusal = placement.RefusalOf(*point))
      return WithSite(FailedPrecondition(hlo::OpcodeText(point->opcode()),
                                         " between devices has to run on them: ", refusal->code,
                                         ": ", refusal->sentence),
                      backend::ThunkInfo::Of("npu", *point));
    placement.Keep(*point);
  }
  if (options.op_filter) RefuseTiny(config, placement);
  for (bool settled = false; !settled;) {
    plan.partition =
        AnyOnDevice(placement) ? MakePartition(placement, alone) : WholeOnHost(*plan.module);
    if (options.op_filter && RefuseUnprofitable(config, plan.partition, placement)) continue;
    LAZULI_ASSIGN_OR_RETURN(settled, CompileRegions(config, options, placement, plan));
    if (!settled && !options.soft_placement)
      LAZULI_RETURN_IF_ERROR(placement.CheckAllOnDevice("npu"));
  }
  CountHostOps(placement, plan);
  plan.placement = PlacementText(placement, plan.partition, "npu");
  Report(placement, plan);
  return plan;
}

}  // namespace lazuli::npu
