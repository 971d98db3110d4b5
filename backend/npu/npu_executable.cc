#include "backend/npu/npu_executable.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <map>
#include <optional>
#include <utility>

#include "backend/client/registry.h"
#include "backend/client/scratch_plan.h"
#include "backend/npu/compiler/compile.h"
#include "backend/npu/launch_spans.h"
#include "backend/npu/npu_buffer.h"
#include "backend/npu/views.h"
#include "backend/runtime/thunk.h"
#include "ir/evaluator/evaluator.h"
#include "ir/support/flags.h"
#include "ir/support/float_mode.h"
#include "ir/support/span.h"
#include "ir/support/status.h"
#include "ir/types/leaves.h"

namespace lazuli::npu {
namespace {

// A fault with the op that the failing instruction was made from, and the user's line.
absl::Status StatusOf(const Fault& fault, const Card& card, const DeviceProgram& program) {
  const absl::Status status = Prefixed(ToStatus(fault), Str(card.name(), ": "));
  const std::vector<DebugLine>& debug = program.program->program.debug;
  const auto pc = static_cast<std::size_t>(fault.pc);
  const std::size_t origin = fault.pc >= 0 && pc < debug.size() ? debug[pc].origin : 0;
  const hlo::Instruction* const i = program.origins[origin];
  return i != nullptr ? WithSite(status, ThunkInfo::Of("npu", *i)) : status;
}

// The arrays of one run.
struct RunArrays {
  std::shared_ptr<Card> card;
  Device device;
  std::vector<uint64_t> places;    // by value
  std::vector<DramBlock> blocks;   // by value; those of buffers own nothing
  DramBlock scalars, temporaries;  // all of the run's
};

class NpuExecutable final : public Executable, public backend::HasScratchPlan {
 public:
  NpuExecutable(Plan plan, std::shared_ptr<NpuDevices> devices, Device first)
      : plan_(std::move(plan)), devices_(std::move(devices)), first_(first) {
    CountStats();
    updated_by_.resize(plan_.partition.values.size(), -1);
    for (const PlanStep& step : plan_.steps) {
      if (const auto* device = std::get_if<DeviceProgram>(&step.program)) {
        for (const DeviceProgram::UpdatedParameter& update : device->updates)
          updated_by_[static_cast<std::size_t>(update.value)] = update.parameter;
      }
    }
  }

  absl::StatusOr<Buffers> Execute(const ExecuteArgs& args) override;
  const ExecutableStats& stats() const override { return stats_; }
  std::string ToString() const override;
  backend::ScratchPlan scratch_plan() const override;

 private:
  int64_t BytesOf(int32_t value) const {
    return plan_.partition.values[static_cast<std::size_t>(value)].byte_size();
  }
  void CountStats();
  bool TakesMemoryOf(int32_t parameter, const ExecuteArgs& args, const RunArrays& run) const;
  absl::StatusOr<RunArrays> Obtain(const ExecuteArgs& args);
  void TakeOver(const ExecuteArgs& args, RunArrays& run) const;
  absl::Status TakeArguments(const ExecuteArgs& args, RunArrays& run) const;
  absl::Status TakeScalars(const ExecuteArgs& args, RunArrays& run) const;
  absl::StatusOr<const std::vector<uint64_t>*> ConstantsOn(const std::shared_ptr<Card>& card);
  absl::Status RunOnDevice(std::size_t step, const DeviceProgram& program,
                           const std::vector<uint64_t>& constants, RunArrays& run) const;
  absl::Status RunTogether(const DeviceProgram& program, const std::vector<uint64_t>& places,
                           RunArrays& run) const;
  void Miss(std::size_t from, int device, const absl::Status& why) const;
  // next: the first step that has not begun.
  absl::StatusOr<Buffers> ExecuteSteps(const ExecuteArgs& args, std::size_t& next);
  absl::Status RunOnHost(const Region& region, const HostProgram& program, RunArrays& run) const;
  absl::Status RunByClient(const Region& region, Executable& executable, RunArrays& run) const;
  absl::Status RunByEvaluator(const Region& region, RunArrays& run) const;
  void TakeFromHost(const Region& region, std::size_t output, const void* data,
                    RunArrays& run) const;

  const Plan plan_;
  const std::shared_ptr<NpuDevices> devices_;
  const Device first_;
  ExecutableStats stats_;
  // Of each value: the parameter that a program of the device updates to it in place; -1: none.
  std::vector<int32_t> updated_by_;
  int64_t temporary_bytes_ = 0;  // the most that a program of the device asks for
  // Constants of the programs, on each card that has run them: blocks, and places by step.
  struct LoadedConstants {
    std::vector<DramBlock> blocks;
    std::vector<uint64_t> places;
  };
  ir::ForkMutex mutex_;
  std::map<const Card*, LoadedConstants> constants_;
};

void NpuExecutable::CountStats() {
  const Partition& partition = plan_.partition;
  int64_t host_temporary_bytes = 0;  // the most that a program of the host asks for
  for (const PlanStep& step : plan_.steps) {
    if (const auto* device = std::get_if<DeviceProgram>(&step.program)) {
      ++stats_.kernels;
      temporary_bytes_ = std::max(temporary_bytes_, static_cast<int64_t>(device->temporary_bytes));
      stats_.code_bytes += static_cast<int64_t>(device->constant_bytes +
                                                device->program->code.size() * sizeof(Word));
    } else if (const auto& host = std::get<HostProgram>(step.program); host.executable != nullptr) {
      const backend::ExecutableStats& stats = host.executable->stats();
      stats_.kernels += stats.kernels;
      stats_.library_calls += 1 + stats.library_calls;
      stats_.reorders += stats.reorders;
      stats_.evaluator_thunks += stats.evaluator_thunks;
      stats_.code_bytes += stats.code_bytes;
      host_temporary_bytes = std::max(host_temporary_bytes, stats.temp_bytes);
    } else {
      stats_.evaluator_thunks += static_cast<int64_t>(step.region->instructions.size());
    }
  }
  std::vector<bool> is_result(partition.values.size());
  for (const int32_t result : partition.results) is_result[static_cast<std::size_t>(result)] = true;
  stats_.temp_bytes = temporary_bytes_ + host_temporary_bytes;
  for (auto v = static_cast<std::size_t>(partition.parameters); v < is_result.size(); ++v)
    (is_result[v] ? stats_.output_bytes : stats_.temp_bytes) += partition.values[v].byte_size();
  stats_.live_temp_bytes = stats_.temp_bytes;
}

absl::Status NpuExecutable::TakeArguments(const ExecuteArgs& args, RunArrays& run) const {
  const Partition& partition = plan_.partition;
  if (static_cast<int64_t>(args.buffers.size() + args.scalars.size()) != partition.parameters)
    return InvalidArgument(plan_.module->name(), " takes ", partition.parameters,
                           " arguments, not ", args.buffers.size(), " buffers and ",
                           args.scalars.size(), " scalars");
  for (std::size_t i = 0; i < args.buffers.size(); ++i) {
    const Buffer& buffer = *args.buffers[i];
    if (buffer.device().client != first_.client)
      return InvalidArgument("a buffer of ", buffer.device(), " is not on the NPU");
    if (!(buffer.device() == run.device))
      return InvalidArgument(plan_.module->name(), ": argument ", i, " lies on ", buffer.device(),
                             ", others on ", run.device);
    if (!(buffer.shape() == partition.values[i]))
      return InvalidArgument(plan_.module->name(), ": argument ", i, " is ", buffer.shape(),
                             ", not ", partition.values[i]);
    const DramBlock& block = static_cast<const NpuBuffer&>(buffer).block();
    if (block.card() == nullptr)
      return FailedPrecondition("a buffer of ", buffer.shape(), " was donated to an earlier run");
    run.places[i] = block.place();
  }
  for (std::size_t i = args.buffers.size(); i < static_cast<std::size_t>(partition.parameters);
       ++i) {
    if (!partition.values[i].IsScalar())
      return InvalidArgument(plan_.module->name(), ": argument ", i, " is ", partition.values[i],
                             ", not a scalar");
  }
  return absl::OkStatus();
}

// All scalars are one transfer.
absl::Status NpuExecutable::TakeScalars(const ExecuteArgs& args, RunArrays& run) const {
  if (args.scalars.empty()) return absl::OkStatus();
  std::vector<std::byte> cells(args.scalars.size() * kDramUnit);
  LAZULI_ASSIGN_OR_RETURN(run.scalars, AllocateOn(run.card, static_cast<int64_t>(cells.size()),
                                                  "the scalars of a run"));
  for (std::size_t i = 0; i < args.scalars.size(); ++i) {
    std::memcpy(cells.data() + i * kDramUnit, &args.scalars[i], sizeof args.scalars[i]);
    run.places[args.buffers.size() + i] = run.scalars.place() + i * kDramUnit;
  }
  run.card->Write(run.scalars.place(), cells);
  return absl::OkStatus();
}

// Whether the caller gives the parameter's memory up, and no other argument lies there.
bool NpuExecutable::TakesMemoryOf(int32_t parameter, const ExecuteArgs& args,
                                  const RunArrays& run) const {
  const auto p = static_cast<std::size_t>(parameter);
  return p < args.donated.size() && args.donated[p] != 0 &&
         std::count(run.places.begin(),
                    run.places.begin() + static_cast<std::ptrdiff_t>(args.buffers.size()),
                    run.places[p]) == 1;
}

absl::StatusOr<RunArrays> NpuExecutable::Obtain(const ExecuteArgs& args) {
  const Partition& partition = plan_.partition;
  RunArrays run;
  run.device = DeviceOf(args, first_);
  run.places.resize(partition.values.size());
  run.blocks.resize(partition.values.size());
  if (run.device.client == first_.client)
    run.card = devices_->cards[static_cast<std::size_t>(run.device.ordinal)];
  LAZULI_RETURN_IF_ERROR(TakeArguments(args, run));
  for (auto v = static_cast<std::size_t>(partition.parameters); v < partition.values.size(); ++v) {
    const int32_t parameter = updated_by_[v];
    if (parameter >= 0 && TakesMemoryOf(parameter, args, run)) {
      run.places[v] = run.places[static_cast<std::size_t>(parameter)];
      continue;
    }
    LAZULI_ASSIGN_OR_RETURN(
        run.blocks[v], AllocateOn(run.card, partition.values[v].byte_size(), partition.names[v]));
    run.places[v] = run.blocks[v].place();
  }
  if (temporary_bytes_ > 0) {
    LAZULI_ASSIGN_OR_RETURN(run.temporaries, AllocateOn(run.card, temporary_bytes_, "temporaries"));
  }
  LAZULI_RETURN_IF_ERROR(TakeScalars(args, run));
  return run;
}

// From here on donated arguments are gone, even if the run fails: programs write where they lie. Of
// those that are kept a copy is updated.
void NpuExecutable::TakeOver(const ExecuteArgs& args, RunArrays& run) const {
  for (std::size_t v = 0; v < updated_by_.size(); ++v) {
    if (updated_by_[v] < 0) continue;
    const auto p = static_cast<std::size_t>(updated_by_[v]);
    if (run.blocks[v].card() != nullptr)
      run.card->Copy(run.places[p], run.places[v],
                     static_cast<uint64_t>(BytesOf(static_cast<int32_t>(v))));
    else
      run.blocks[v] = static_cast<NpuBuffer&>(*args.buffers[p]).Release();
  }
}

// Constants are loaded once, by the first run on a card.
absl::StatusOr<const std::vector<uint64_t>*> NpuExecutable::ConstantsOn(
    const std::shared_ptr<Card>& card) {
  const std::lock_guard lock(mutex_);
  if (const auto there = constants_.find(card.get()); there != constants_.end())
    return &there->second.places;
  LoadedConstants constants;
  constants.places.resize(plan_.steps.size());
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    const auto* device = std::get_if<DeviceProgram>(&plan_.steps[s].program);
    if (device == nullptr || device->constant_bytes == 0) continue;
    LAZULI_ASSIGN_OR_RETURN(
        DramBlock block,
        AllocateOn(card, static_cast<int64_t>(device->constant_bytes), "constants"));
    std::vector<std::byte> image(device->constant_bytes);
    const Program& program = device->program->program;
    std::size_t from = 0;
    for (std::size_t i = 0; i < program.symbols.size(); ++i) {
      if (program.symbols[i].kind != SymbolKind::kConst) continue;
      const auto bytes = static_cast<std::size_t>(program.symbols[i].bytes());
      if (bytes > 0)
        std::memcpy(image.data() + device->symbols[i].offset, program.constants.data() + from,
                    bytes);
      from += bytes;
    }
    card->Write(block.place(), image);
    constants.places[s] = block.place();
    constants.blocks.push_back(std::move(block));
  }
  return &constants_.emplace(card.get(), std::move(constants)).first->second.places;
}

absl::Status NpuExecutable::RunOnDevice(std::size_t step, const DeviceProgram& program,
                                        const std::vector<uint64_t>& constants,
                                        RunArrays& run) const {
  std::vector<uint64_t> places;
  for (const DeviceProgram::Where& where : program.symbols) {
    using Kind = DeviceProgram::Where::Kind;
    switch (where.kind) {
      case Kind::kValue:
        places.push_back(run.places[static_cast<std::size_t>(where.value)]);
        break;
      case Kind::kConstant:
        places.push_back(constants[step] + where.offset);
        break;
      case Kind::kTemporary:
        places.push_back(run.temporaries.place() + where.offset);
        break;
    }
  }
  const ir::TraceSpan span(ir::SpanKind::kLaunch, "npu.launch");
  if (!program.meetings.empty()) return RunTogether(program, places, run);
  std::optional<Views::LaunchObserver> watched;
  if (devices_->views != nullptr)
    watched.emplace(*devices_->views, program.program->program, *run.card, run.device.ordinal);
  Observer* observer = watched ? &*watched : nullptr;
  std::optional<LaunchSpans> spans;
  if (ir::IsTracing()) observer = &spans.emplace(program, observer);
  const std::optional<Fault> fault =
      run.card->Launch(program.program, places, {.observer = observer});
  return fault ? StatusOf(*fault, *run.card, program) : absl::OkStatus();
}

// A collective: with the devices that it is between.
absl::Status NpuExecutable::RunTogether(const DeviceProgram& program,
                                        const std::vector<uint64_t>& places, RunArrays& run) const {
  Fabric::CardPart part{program.meetings[static_cast<std::size_t>(run.device.ordinal)],
                        run.device.ordinal, program.program, places, program.what};
  if (devices_->views != nullptr)
    part.observe = [&] {
      return std::make_unique<Views::LaunchObserver>(*devices_->views, program.program->program,
                                                     *run.card, run.device.ordinal);
    };
  const std::optional<Fault> fault =
      devices_->fabric->Run(part, std::chrono::seconds(ir::flags().npu_link_timeout()));
  return fault ? StatusOf(*fault, *run.card, program) : absl::OkStatus();
}

// The others do not wait for a run that has failed before its step `from`.
void NpuExecutable::Miss(std::size_t from, int device, const absl::Status& why) const {
  for (std::size_t s = from; s < plan_.steps.size(); ++s) {
    const auto* program = std::get_if<DeviceProgram>(&plan_.steps[s].program);
    if (program == nullptr || program->meetings.empty()) continue;
    devices_->fabric->Miss(program->meetings[static_cast<std::size_t>(device)], device,
                           Message(why));
  }
}

void NpuExecutable::TakeFromHost(const Region& region, std::size_t output, const void* data,
                                 RunArrays& run) const {
  const int32_t value = region.outputs[output];
  run.card->Write(run.places[static_cast<std::size_t>(value)],
                  {static_cast<const std::byte*>(data), static_cast<std::size_t>(BytesOf(value))});
}

absl::Status NpuExecutable::RunByClient(const Region& region, Executable& executable,
                                        RunArrays& run) const {
  LAZULI_ASSIGN_OR_RETURN(ComputationClient* const client, HostClient());
  const Device device = client->devices()[0];
  Buffers inputs;
  for (const int32_t value : region.inputs) {
    const auto v = static_cast<std::size_t>(value);
    run.card->CountRead(static_cast<uint64_t>(BytesOf(value)));
    LAZULI_ASSIGN_OR_RETURN(
        BufferPtr input,
        client->FromHost({run.card->at(run.places[v]), &plan_.partition.values[v]}, [] {}, device));
    inputs.push_back(std::move(input));
  }
  LAZULI_ASSIGN_OR_RETURN(const Buffers outputs,
                          executable.Execute({.buffers = inputs, .scalars = {}, .donated = {}}));
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (const std::byte* const data = outputs[i]->host_data(); data != nullptr) {
      TakeFromHost(region, i, data, run);
    } else {
      LAZULI_ASSIGN_OR_RETURN(const Literal literal, client->ToHost(*outputs[i]));
      TakeFromHost(region, i, literal.raw(), run);
    }
  }
  return absl::OkStatus();
}

absl::Status NpuExecutable::RunByEvaluator(const Region& region, RunArrays& run) const {
  std::vector<Literal> leaves, arguments;
  for (const int32_t value : region.inputs) {
    const auto v = static_cast<std::size_t>(value);
    run.card->CountRead(static_cast<uint64_t>(BytesOf(value)));
    leaves.push_back(
        Literal::Foreign(plan_.partition.values[v], run.card->at(run.places[v]), [] {}));
  }
  std::size_t next = 0;
  for (const hlo::Instruction* parameter : region.module->entry()->parameters())
    arguments.push_back(FromLeaves(parameter->shape(), leaves, &next));
  std::vector<const Literal*> pointers;
  for (const Literal& argument : arguments) pointers.push_back(&argument);
  const ir::ScopedFloatMode mode;
  // Collectives stay on the devices, so the run meets nobody: it knows its device's number.
  const auto program = hlo::PeerProgram::Of(*region.module, {});
  std::optional<hlo::PeerRun> peers;
  if (program)
    peers.emplace(run.device.client->peers(), *program, run.device.ordinal,
                  hlo::Peers::Clock::now());
  LAZULI_ASSIGN_OR_RETURN(const Literal result,
                          hlo::Evaluate(*region.module, pointers,
                                        {.transfers = &run.device.client->transfers(run.device),
                                         .peers = peers ? &*peers : nullptr}));
  std::size_t output = 0;
  ForEachLeaf(result,
              [&](const Literal& leaf) { TakeFromHost(region, output++, leaf.raw(), run); });
  return absl::OkStatus();
}

absl::Status NpuExecutable::RunOnHost(const Region& region, const HostProgram& program,
                                      RunArrays& run) const {
  const ir::TraceSpan span(ir::SpanKind::kLaunch, "npu.host");
  if (program.executable == nullptr) return RunByEvaluator(region, run);
  return RunByClient(region, *program.executable, run);
}

absl::StatusOr<Buffers> NpuExecutable::Execute(const ExecuteArgs& args) {
  std::size_t next = 0;
  absl::StatusOr<Buffers> outputs = ExecuteSteps(args, next);
  const Device device = DeviceOf(args, first_);
  if (!outputs.ok() && device.client == first_.client) Miss(next, device.ordinal, outputs.status());
  return outputs;
}

absl::StatusOr<Buffers> NpuExecutable::ExecuteSteps(const ExecuteArgs& args, std::size_t& next) {
  const Partition& partition = plan_.partition;
  LAZULI_ASSIGN_OR_RETURN(RunArrays run, Obtain(args));
  LAZULI_ASSIGN_OR_RETURN(const std::vector<uint64_t>* constants, ConstantsOn(run.card));
  // A result that is a parameter, or another result, is a copy: buffers never share memory.
  Buffers outputs;
  std::vector<std::pair<std::size_t, std::size_t>> copies;  // output, value
  std::vector<bool> taken(partition.values.size());
  for (std::size_t o = 0; o < partition.results.size(); ++o) {
    const auto v = static_cast<std::size_t>(partition.results[o]);
    DramBlock block;
    if (partition.results[o] >= partition.parameters && !taken[v]) {
      taken[v] = true;
      outputs.push_back(nullptr);
      continue;
    }
    LAZULI_ASSIGN_OR_RETURN(
        block, AllocateOn(run.card, partition.values[v].byte_size(), partition.names[v]));
    copies.emplace_back(o, v);
    outputs.push_back(
        std::make_shared<NpuBuffer>(partition.values[v], run.device, std::move(block)));
  }
  TakeOver(args, run);
  while (next < plan_.steps.size()) {
    const std::size_t s = next++;
    const PlanStep& step = plan_.steps[s];
    if (const auto* device = std::get_if<DeviceProgram>(&step.program)) {
      LAZULI_RETURN_IF_ERROR(RunOnDevice(s, *device, *constants, run));
    } else {
      LAZULI_RETURN_IF_ERROR(RunOnHost(*step.region, std::get<HostProgram>(step.program), run));
    }
  }
  for (const auto& [o, v] : copies)
    run.card->Copy(run.places[v], static_cast<const NpuBuffer&>(*outputs[o]).block().place(),
                   static_cast<uint64_t>(partition.values[v].byte_size()));
  for (std::size_t o = 0; o < outputs.size(); ++o) {
    const auto v = static_cast<std::size_t>(partition.results[o]);
    if (outputs[o] == nullptr)
      outputs[o] =
          std::make_shared<NpuBuffer>(partition.values[v], run.device, std::move(run.blocks[v]));
  }
  for (std::size_t i = 0; i < args.donated.size(); ++i) {
    if (args.donated[i] != 0) (void)static_cast<NpuBuffer&>(*args.buffers[i]).Release();
  }
  devices_->host_ops.Add(plan_.host_ops);
  return outputs;
}

// An array of this region's; with op and line if it is an instruction's.
backend::ScratchArray ArrayOf(const Region& region, std::string_view name, int64_t step,
                              int64_t bytes) {
  const auto last = std::find_if(region.instructions.rbegin(), region.instructions.rend(),
                                 [name](const auto* i) { return i->name() == name; });
  backend::ScratchArray array{
      .bytes = bytes, .first = step, .last = step, .name = Str(name), .op = {}, .source = {}};
  if (last == region.instructions.rend()) return array;
  const ThunkInfo info = ThunkInfo::Of("npu", **last);
  array.op = info.op;
  array.source = info.line();
  return array;
}

int64_t TemporaryBytes(const PlanStep& step) {
  if (const auto* device = std::get_if<DeviceProgram>(&step.program))
    return static_cast<int64_t>(device->temporary_bytes);
  const ExecutablePtr& host = std::get<HostProgram>(step.program).executable;
  return host == nullptr ? 0 : host->stats().temp_bytes;
}

// Values between the steps, and what each step needs for itself, by the name of the step.
backend::ScratchPlan NpuExecutable::scratch_plan() const {
  const Partition& partition = plan_.partition;
  backend::ScratchPlan plan;
  std::map<int32_t, std::size_t> numbers;  // of values' arrays
  for (const PlanStep& step : plan_.steps) {
    const Region& region = *step.region;
    const auto at = static_cast<int64_t>(plan.steps.size());
    const std::string last = region.outputs.empty()
                                 ? ""
                                 : partition.names[static_cast<std::size_t>(region.outputs.back())];
    plan.steps.push_back(Str(region.on_device ? "npu: " : "host: ", last));
    for (const int32_t value : region.inputs) {
      if (const auto number = numbers.find(value); number != numbers.end())
        plan.arrays[number->second].last = at;
    }
    for (const int32_t value : region.outputs) {
      if (std::find(partition.results.begin(), partition.results.end(), value) !=
          partition.results.end())
        continue;
      numbers.emplace(value, plan.arrays.size());
      plan.arrays.push_back(
          ArrayOf(region, partition.names[static_cast<std::size_t>(value)], at, BytesOf(value)));
    }
    if (const int64_t bytes = TemporaryBytes(step); bytes > 0)
      plan.arrays.push_back(ArrayOf(region, plan.steps.back(), at, bytes));
  }
  return plan;
}

std::string NpuExecutable::ToString() const {
  std::string text = Str(plan_.module->ToString(), "\n");
  for (std::size_t s = 0; s < plan_.steps.size(); ++s) {
    const PlanStep& step = plan_.steps[s];
    const auto values = [&](const std::vector<int32_t>& numbers) {
      std::string list;
      for (const int32_t v : numbers) list += Str(list.empty() ? "v" : ", v", v);
      return list;
    };
    text += Str(s == 0 ? "steps:\n" : "", "  ", s, " ", step.region->on_device ? "npu" : "host",
                " (", values(step.region->inputs), ") -> (", values(step.region->outputs), ") of ",
                step.region->instructions.size(), " ops");
    if (const auto* device = std::get_if<DeviceProgram>(&step.program))
      text += Str(", ", device->program->code.size(), " instructions, ", device->constant_bytes,
                  " bytes of constants, ", device->temporary_bytes, " of temporaries");
    else if (std::get<HostProgram>(step.program).executable == nullptr)
      text += ", in the evaluator";
    text += "\n";
  }
  return Str(text, "placement:\n", plan_.placement);
}

}  // namespace

NpuDevices::NpuDevices() = default;
NpuDevices::~NpuDevices() = default;

void HostOpCounts::Add(const std::vector<HostOp>& ops) {
  if (ops.empty()) return;
  const std::lock_guard lock(mutex_);
  for (const HostOp& op : ops) {
    const auto there = std::find_if(ops_.begin(), ops_.end(), [&](const HostOp& known) {
      return known.op == op.op && known.code == op.code;
    });
    if (there == ops_.end())
      ops_.push_back(op);
    else
      there->count += op.count;
  }
}

std::vector<HostOp> HostOpCounts::All() const {
  std::vector<HostOp> ops;
  {
    const std::lock_guard lock(mutex_);
    ops = ops_;
  }
  std::stable_sort(ops.begin(), ops.end(),
                   [](const HostOp& a, const HostOp& b) { return a.count > b.count; });
  return ops;
}

absl::StatusOr<DramBlock> AllocateOn(const std::shared_ptr<Card>& card, int64_t bytes,
                                     std::string_view what) {
  const auto limit = static_cast<uint64_t>(std::max<int64_t>(0, ir::flags().memory_limit()));
  if (limit > 0 && card->bytes_in_use() + RoundedToDramUnit(static_cast<uint64_t>(bytes)) > limit)
    return ResourceExhausted("out of memory: ", bytes, " bytes for ", what,
                             " do not fit within LAZULI_MEMORY_LIMIT");
  LAZULI_ASSIGN_OR_RETURN(const uint64_t place, card->Allocate(static_cast<uint64_t>(bytes), what));
  return DramBlock(card, place);
}

ExecutablePtr MakeNpuExecutable(Plan plan, std::shared_ptr<NpuDevices> devices, Device first) {
  return std::make_shared<NpuExecutable>(std::move(plan), std::move(devices), first);
}

}  // namespace lazuli::npu
