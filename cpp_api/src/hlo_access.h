// What public HLO handles hold.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/client/client.h"
#include "ir/hlo/module.h"
#include "lazuli/hlo.h"
#include "lazy/execution/capture.h"

namespace lazuli {

struct HloModule::Impl {
  std::unique_ptr<hlo::Module> module;
  std::vector<lazy::CapturedProgram::Check> checks = {};  // the last results
};

struct HloExecutable::Impl {
  std::string name;
  backend::ExecutablePtr executable;
  backend::Device device;
  std::vector<lazy::CapturedProgram::Check> checks;
  std::vector<ir::Shape> parameters;
  // Throws what the first check that failed says: their values are the last outputs.
  void ThrowIfFailed(absl::Span<const backend::BufferPtr> outputs) const;
  // The data of the arguments, which lie on the device.
  std::vector<backend::BufferPtr> BuffersOf(const std::vector<Tensor>& arguments) const;
  // The results without those of the checks, which throw. given_up: as in ExecuteArgs.
  backend::Buffers Run(absl::Span<const backend::BufferPtr> arguments,
                       absl::Span<const uint8_t> given_up = {}) const;
};

struct HloAccess {
  using Program = HloExecutable::Impl;
  // HloModule::compile. keeps_copies: as in CompileOptions.
  static HloExecutable Compile(const HloModule& module, const Device& device, int num_threads,
                               bool keeps_copies = true);
  static HloModule Wrap(std::unique_ptr<hlo::Module> module) {
    return Wrap(HloModule::Impl{std::move(module)});
  }
  static HloModule Wrap(HloModule::Impl impl) {
    return HloModule(std::make_unique<HloModule::Impl>(std::move(impl)));
  }
  static const hlo::Module& Unwrap(const HloModule& module) { return *module.impl_->module; }
  static HloExecutable Wrap(HloExecutable::Impl impl) {
    return HloExecutable(std::make_shared<const HloExecutable::Impl>(std::move(impl)));
  }
  static const HloExecutable::Impl& Unwrap(const HloExecutable& program) { return *program.impl_; }
};

}  // namespace lazuli
