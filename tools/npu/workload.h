// What npu-explore measures on one machine after the other: a program of HLO, or a network's layers.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

#include "backend/npu/sim/config.h"
#include "backend/npu/sim/observer.h"
#include "ir/hlo/module.h"
#include "ir/types/literal.h"
#include "tools/npu/layers.h"

namespace lazuli::tools {

struct Measurement {
  npu::Counters counters;   // of all runs together
  double host_seconds = 0;  // launches, and transfers for what the host computes
  int64_t host_ops = 0;     // instructions that ran on the host
  double energy_joules = 0;
};

struct WorkloadOptions {
  std::string type = "s8";  // of layers: s8, bf16 or f32
  bool estimate = false;    // layers by closed forms (npu-layers) instead of programs
  uint64_t seed = 0;        // of the inputs of a program of HLO
};

// Made once, measured by many threads.
class Workload {
 public:
  // HLO, or layers if the file's name ends in .csv.
  static absl::StatusOr<Workload> Load(const std::string& file, const WorkloadOptions& options);
  // Compiles for this machine and runs there. Of HLO what the machine's compiler lacks runs on the host.
  absl::StatusOr<Measurement> Measure(const npu::Config& config) const;
  // "21 layers of resnet18.csv (s8)"
  const std::string& text() const { return text_; }

 private:
  absl::StatusOr<Measurement> MeasureProgram(const npu::Config& config) const;
  absl::StatusOr<Measurement> MeasureLayers(const npu::Config& config) const;
  Measurement EstimateLayers(const npu::Config& config) const;

  WorkloadOptions options_;
  std::string text_;
  // Of HLO.
  std::shared_ptr<const hlo::Module> program_;
  std::vector<ir::Literal> inputs_;
  // Of layers: each product or convolution as a module of its own, and how often it comes.
  std::vector<npu::Layer> layers_;
  std::vector<std::pair<std::shared_ptr<const hlo::Module>, int64_t>> modules_;
};

}  // namespace lazuli::tools
