#include "tools/npu/workload.h"

#include <filesystem>
#include <map>
#include <optional>

#include "backend/client/client.h"
#include "backend/npu/compiler/compile.h"
#include "backend/npu/own_npu.h"
#include "backend/npu/sim/energy.h"
#include "backend/npu/sim/machine.h"
#include "ir/hlo/text/parser.h"
#include "ir/support/status.h"
#include "tools/load_module.h"
#include "tools/run_module.h"
#include "tools/tool.h"

namespace lazuli::tools {
namespace {

using ir::InvalidArgument;
using ir::Str;

// A product is a dot, everything else a convolution of one image, its channels innermost.
std::string LayerText(const npu::Layer& layer, std::string_view type) {
  const std::string_view sum = type == "s8" ? "s32" : type;
  if (layer.ifmap_width == layer.filter_width && layer.filter_height == 1 && layer.channels == 1)
    return Str("ENTRY layer { x = ", type, "[", layer.ifmap_height, ",", layer.filter_width,
               "] parameter(0) w = ", type, "[", layer.filter_width, ",", layer.filters,
               "] parameter(1) ROOT y = ", sum, "[", layer.ifmap_height, ",", layer.filters,
               "] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={0} }");
  return Str("ENTRY layer { x = ", type, "[1,", layer.ifmap_height, ",", layer.ifmap_width, ",",
             layer.channels, "] parameter(0) w = ", type, "[", layer.filter_height, ",",
             layer.filter_width, ",", layer.channels, ",", layer.filters,
             "] parameter(1) ROOT y = ", sum, "[1,", layer.ofmap_height(), ",", layer.ofmap_width(),
             ",", layer.filters, "] convolution(x, w), window={size=", layer.filter_height, "x",
             layer.filter_width, " stride=", layer.stride_height, "x", layer.stride_width,
             "}, dim_labels=b01f_01io->b01f }");
}

void Add(Measurement& sum, const npu::Counters& counters, int64_t times) {
  for (int64_t i = 0; i < times; ++i) sum.counters += counters;
}

double JoulesOf(const npu::Counters& counters, const npu::Config& config) {
  return npu::EnergyOf(npu::ActivityOf(counters), config).joules;
}

}  // namespace

absl::StatusOr<Workload> Workload::Load(const std::string& file, const WorkloadOptions& options) {
  if (options.type != "s8" && options.type != "bf16" && options.type != "f32")
    return InvalidArgument("--type=", options.type, ": it is s8, bf16 or f32");
  Workload workload;
  workload.options_ = options;
  const std::string name = std::filesystem::path(file).filename().string();
  if (!file.ends_with(".csv")) {
    if (options.estimate)
      return InvalidArgument("--estimate is for layers (FILE.csv), ", file, " is a program");
    LAZULI_ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> module, LoadModule(file));
    for (const ir::Shape& shape : InputShapes(*module))
      workload.inputs_.push_back(RandomInput(shape, options.seed, workload.inputs_.size()));
    workload.text_ = Str(name, " (", module->name(), ")");
    workload.program_ = std::move(module);
    return workload;
  }
  LAZULI_ASSIGN_OR_RETURN(const std::string text, ReadAll(file));
  LAZULI_ASSIGN_OR_RETURN(workload.layers_, npu::ParseTopology(text, file));
  std::map<std::string, std::size_t> known;
  for (const npu::Layer& layer : workload.layers_) {
    if (options.estimate) break;
    const std::string hlo = LayerText(layer, options.type);
    const auto [there, made] = known.emplace(hlo, workload.modules_.size());
    if (made) {
      auto module = hlo::ParseModule(hlo);
      if (!module.ok()) return ir::Prefixed(module.status(), Str(file, ": ", layer.name, ": "));
      workload.modules_.emplace_back(*std::move(module), 0);
    }
    ++workload.modules_[there->second].second;
  }
  workload.text_ = Str(workload.layers_.size(), " layers of ", name, " (",
                       options.estimate ? "closed forms, words of one byte" : options.type, ")");
  return workload;
}

absl::StatusOr<Measurement> Workload::Measure(const npu::Config& config) const {
  if (program_ != nullptr) return MeasureProgram(config);
  if (options_.estimate) return EstimateLayers(config);
  return MeasureLayers(config);
}

absl::StatusOr<Measurement> Workload::MeasureProgram(const npu::Config& config) const {
  npu::Config machine = config;
  machine.devices = 1;
  LAZULI_ASSIGN_OR_RETURN(const npu::OwnNpu npu, npu::MakeNpu(machine));
  const backend::Device device = npu.client->devices()[0];
  LAZULI_ASSIGN_OR_RETURN(backend::CompileOptions options, backend::CompileOptions::FromFlags());
  options.op_filter = false;  // or another machine would be measured on another part of the program
  LAZULI_ASSIGN_OR_RETURN(const backend::ExecutablePtr executable,
                          npu.client->Compile(program_->Clone(), options));
  backend::Buffers arguments;
  for (const ir::Literal& input : inputs_) {
    LAZULI_ASSIGN_OR_RETURN(backend::BufferPtr argument,
                            npu.client->FromHost({input.raw(), &input.shape()}, nullptr, device));
    arguments.push_back(std::move(argument));
  }
  const npu::Card& card = *npu.devices->cards[0];
  const npu::CardTotals before = card.totals();
  LAZULI_RETURN_IF_ERROR(
      executable->Execute({.buffers = arguments, .scalars = {}, .donated = {}}).status());
  const npu::CardTotals after = card.totals();
  Measurement result;
  result.counters = after.counters;
  result.counters -= before.counters;
  result.host_seconds = after.launch_seconds + after.transfer_seconds - before.launch_seconds -
                        before.transfer_seconds;
  for (const npu::HostOp& op : npu.devices->host_ops.All()) result.host_ops += op.count;
  result.energy_joules = JoulesOf(result.counters, config);
  return result;
}

absl::StatusOr<Measurement> Workload::MeasureLayers(const npu::Config& config) const {
  npu::Config machine_config = config;
  machine_config.devices = 1;
  machine_config.strict = false;  // for time: these are the compiler's programs
  Measurement sum;
  LAZULI_ASSIGN_OR_RETURN(const auto machine, npu::Machine::Create(machine_config));
  for (const auto& [module, times] : modules_) {
    LAZULI_ASSIGN_OR_RETURN(const npu::Program program, npu::Compile(*module, machine_config));
    if (const auto fault = machine->Load(program)) return npu::ToStatus(*fault);
    if (const auto fault = machine->Run({})) return npu::ToStatus(*fault);
    Add(sum, machine->counters(0), times);
  }
  sum.energy_joules = JoulesOf(sum.counters, config);
  return sum;
}

Measurement Workload::EstimateLayers(const npu::Config& config) const {
  Measurement sum;
  for (const npu::Layer& layer : layers_) {
    const npu::LayerReport report = npu::EstimateLayer(layer, config);
    sum.counters.cycles += report.cycles_incl_prefetch;
    sum.counters.macs_int += report.macs;
    sum.counters.dram_burst_bytes += report.dram_i + report.dram_f + report.dram_o;
    sum.energy_joules += npu::EnergyOf(npu::ActivityOf(report, config), config).joules;
  }
  return sum;
}

}  // namespace lazuli::tools
