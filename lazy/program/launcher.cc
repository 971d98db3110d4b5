#include "lazy/program/launcher.h"

#include <cstring>
#include <thread>
#include <utility>

#include "backend/interpreter/evaluated_module.h"
#include "ir/support/float_mode.h"
#include "ir/support/process_end.h"
#include "ir/support/status.h"
#include "ir/types/literal.h"

namespace lazuli::lazy {

Launcher::Launcher(ProgramPtr program, backend::Device device, backend::CompileOptions options)
    : program_(std::move(program)), device_(device), options_(std::move(options)) {}

absl::Status Launcher::Compile() {
  const ir::EndWaits end_waits;
  if (!end_waits.may_begin())
    return FailedPrecondition("nothing can be compiled any more: the process is ending");
  const std::lock_guard lock(compiling_);
  if (state() == State::kCompiled || state() == State::kFailed) return failure_;
  state_.store(State::kCompiling, std::memory_order_release);
  const ir::ScopedFloatMode mode(options_.flush_subnormals);
  absl::StatusOr<backend::ExecutablePtr> made =
      device_.client->Compile(program_->module().Clone(), options_);
  if (!made.ok()) {
    failure_ = made.status();
    state_.store(State::kFailed, std::memory_order_release);
    return failure_;
  }
  compiled_ = *std::move(made);
  current_.store(compiled_.get(), std::memory_order_release);
  state_.store(State::kCompiled, std::memory_order_release);
  return absl::OkStatus();
}

backend::Executable& Launcher::Interpreted() const {
  std::call_once(interprets_, [this] {
    interpreted_ = std::make_shared<interpreter::EvaluatedModule>(
        program_->shared_module(), options_.device_assignment, device_);
  });
  return *interpreted_;
}

absl::StatusOr<backend::Buffers> Launcher::Run(const backend::ExecuteArgs& given) const {
  backend::ExecuteArgs args = given;
  if (args.device.client == nullptr) args.device = device_;
  backend::Executable* const compiled = executable();
  if (compiled == nullptr && state() == State::kFailed) return failure_;
  LAZULI_ASSIGN_OR_RETURN(backend::Buffers outputs,
                          (compiled != nullptr ? *compiled : Interpreted()).Execute(args));
  if (outputs.size() != program_->num_outputs()) {
    return Internal(program_->name(), ": gave ", outputs.size(), " results, ",
                    program_->num_outputs(), " were expected");
  }
  return outputs;
}

absl::StatusOr<backend::Buffers> Launcher::RunChecked(const backend::ExecuteArgs& args) const {
  LAZULI_ASSIGN_OR_RETURN(backend::Buffers outputs, Run(args));
  LAZULI_RETURN_IF_ERROR(CheckOutputs(*program_, outputs));
  outputs.resize(program_->results().size());
  return outputs;
}

std::vector<absl::StatusOr<backend::Buffers>> Launcher::RunTogether(
    absl::Span<const backend::ExecuteArgs> args) const {
  std::vector<absl::StatusOr<backend::Buffers>> outputs(args.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < args.size(); ++i)
    threads.emplace_back([&, i] { outputs[i] = Run(args[i]); });
  for (std::thread& thread : threads) thread.join();
  return outputs;
}

absl::StatusOr<int64_t> ReadNumber(const backend::Buffer& buffer) {
  int64_t value = 0;
  if (const std::byte* const data = buffer.host_data()) {
    std::memcpy(&value, data, sizeof value);
    return value;
  }
  LAZULI_ASSIGN_OR_RETURN(const Literal literal, buffer.device().client->ToHost(buffer));
  return literal.data<int64_t>()[0];
}

absl::Status CheckOutputs(const Program& program, absl::Span<const backend::BufferPtr> outputs) {
  const std::size_t first = program.results().size();
  for (std::size_t i = 0; i < program.checks().size(); ++i) {
    LAZULI_ASSIGN_OR_RETURN(const int64_t value, ReadNumber(*outputs[first + i]));
    if (value == lowering::RuntimeCheck::kNoOffender) continue;
    const ProgramCheck& check = program.checks()[i];
    return ErrorOfCheck(check.message, check.function, check.site, value);
  }
  return absl::OkStatus();
}

}  // namespace lazuli::lazy
