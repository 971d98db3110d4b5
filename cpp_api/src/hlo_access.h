// What public HLO handles hold.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "backend/client/client.h"
#include "ir/hlo/module.h"
#include "lazuli/hlo.h"

namespace lazuli {

struct HloModule::Impl {
  std::unique_ptr<hlo::Module> module;
};

struct HloExecutable::Impl {
  std::string name;
  backend::ExecutablePtr executable;
  backend::Device device;
};

struct HloAccess {
  static HloModule Wrap(std::unique_ptr<hlo::Module> module) {
    return HloModule(std::make_unique<HloModule::Impl>(HloModule::Impl{std::move(module)}));
  }
  static const hlo::Module& Unwrap(const HloModule& module) { return *module.impl_->module; }
  static HloExecutable Wrap(HloExecutable::Impl impl) {
    return HloExecutable(std::make_shared<const HloExecutable::Impl>(std::move(impl)));
  }
};

}  // namespace lazuli
