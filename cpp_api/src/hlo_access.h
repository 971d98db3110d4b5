// What public HLO handles hold.
#pragma once

#include <memory>
#include <utility>

#include "backend/client/client.h"
#include "cpp_api/src/facade.h"
#include "ir/evaluator/custom_calls.h"
#include "ir/hlo/module.h"
#include "lazuli/hlo.h"
#include "lazy/program/launcher.h"

namespace lazuli {

// Runs a call that has no line of its own; an internal error becomes Error.
template <class F>
decltype(auto) Guarded(F&& f) {
  Initialize();
  return Call(SourceLocation(), std::forward<F>(f));
}

// The text of a custom call, without quotes.
std::string BackendConfig(const hlo::Instruction& i);
// The device whose run calls a function on this thread; the default device on other threads.
Device DeviceOfRun();
// As the evaluator calls it. `with_done`: the last result only shows that the call is done.
hlo::CustomCall HostCall(CustomCall call, bool with_done);

struct HloModule::Impl {
  lazy::ProgramPtr program;
  // This module with another body: what passes made of it, or what was written in its place.
  void Replace(std::shared_ptr<const hlo::Module> module);
};

struct HloExecutable::Impl {
  Impl(lazy::ProgramPtr program, backend::Device device, backend::CompileOptions options)
      : launcher(std::move(program), device, std::move(options)) {}
  const lazy::Program& program() const { return launcher.program(); }

  lazy::Launcher launcher;
};

struct HloAccess {
  // HloModule::compile. keeps_copies: as in CompileOptions.
  static HloExecutable Compile(const HloModule& module, const Device& device, int num_threads,
                               bool keeps_copies = true);
  static HloModule Wrap(std::shared_ptr<const hlo::Module> module) {
    return Wrap(std::make_shared<lazy::Program>(std::move(module)));
  }
  static HloModule Wrap(lazy::ProgramPtr program) {
    return HloModule(
        std::make_unique<HloModule::Impl>(HloModule::Impl{.program = std::move(program)}));
  }
  static const hlo::Module& Unwrap(const HloModule& module) {
    return module.impl_->program->module();
  }
  static const lazy::ProgramPtr& ProgramOf(const HloModule& module) {
    return module.impl_->program;
  }
  static const HloExecutable::Impl& Unwrap(const HloExecutable& program) { return *program.impl_; }
};

}  // namespace lazuli
