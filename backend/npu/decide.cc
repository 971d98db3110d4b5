#include "backend/npu/decide.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "backend/npu/sim/cost.h"
#include "ir/support/str.h"

namespace lazuli::npu {
namespace {

constexpr double kReached = 0.5;  // of a unit's peak
constexpr double kHostOp = 1e-6;  // seconds to begin one
constexpr double kMicro = 1e-6, kMega = 1e6, kGiga = 1e9;

double Milliseconds(double seconds) { return seconds * 1e3; }

std::string Number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

double DeviceSeconds(const Config& config, const Work& work) {
  const double clock =
      static_cast<double>(config.clock_mhz) * kMega * static_cast<double>(config.cores);
  const auto multipliers = static_cast<double>(config.mxu.rows * config.mxu.cols);
  const auto clocks = static_cast<double>(ClocksPerRow(config, true, config.mxu.f32));
  const double products = work.product_flops / 2 / (multipliers / clocks);
  const double elements = (work.flops - work.product_flops) / static_cast<double>(config.vpu.lanes);
  return std::max((products + elements) / clock / kReached, work.bytes / (config.dram.gbs * kGiga));
}

double HostSeconds(const Config& config, const Region& region) {
  return std::max(region.work.flops / (config.host.gflops * kGiga),
                  region.work.bytes / (config.host.memory_gbs * kGiga)) +
         kHostOp * static_cast<double>(region.instructions.size());
}

double TransferSeconds(const Config& config, const Shape& shape) {
  return config.host.latency_us * kMicro +
         static_cast<double>(shape.byte_size()) / (config.host.gbs * kGiga);
}

}  // namespace

void RefuseTiny(const Config& config, Placement& placement) {
  Work work;
  for (const auto& i : placement.module().entry()->instructions()) work += WorkOf(*i);
  if (work.flops >= static_cast<double>(config.filter.min_flops)) return;
  placement.RefuseAll({"tiny", Str("the program has ", static_cast<int64_t>(work.flops),
                                   " operations, filter.min_flops is ", config.filter.min_flops)});
}

bool RefuseUnprofitable(const Config& config, const Partition& partition, Placement& placement) {
  std::vector<int> maker(partition.values.size(), -1);  // region; -1: the caller
  std::vector<bool> host_takes(partition.values.size(), false);
  for (std::size_t r = 0; r < partition.regions.size(); ++r) {
    const Region& region = partition.regions[r];
    for (const int32_t v : region.outputs) maker[static_cast<std::size_t>(v)] = static_cast<int>(r);
    for (const int32_t v : region.inputs) {
      if (!region.on_device) host_takes[static_cast<std::size_t>(v)] = true;
    }
  }
  bool refused = false;
  for (const Region& region : partition.regions) {
    if (!region.on_device || region.alone) continue;
    double device = DeviceSeconds(config, region.work) + config.host.launch_us * kMicro;
    double host = HostSeconds(config, region);
    for (const int32_t v : region.inputs) {
      const auto value = static_cast<std::size_t>(v);
      const int from = maker[value];
      const bool from_host =
          from >= 0 && !partition.regions[static_cast<std::size_t>(from)].on_device;
      (from_host ? device : host) += TransferSeconds(config, partition.values[value]);
    }
    for (const int32_t v : region.outputs) {
      const auto value = static_cast<std::size_t>(v);
      (host_takes[value] ? device : host) += TransferSeconds(config, partition.values[value]);
    }
    if (host >= config.filter.min_gain * device) continue;
    refused = true;
    const Refusal refusal{"cheaper-on-host",
                          Str("its region takes about ", Number(Milliseconds(device)),
                              " ms on the device, launch and transfers counted, and ",
                              Number(Milliseconds(host)), " ms on the host")};
    for (const hlo::Instruction* i : region.instructions) placement.Refuse(*i, refusal);
  }
  return refused;
}

}  // namespace lazuli::npu
