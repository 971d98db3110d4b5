// Launches a program on the devices of a platform: the one way from a Program to a run.
//
// A launcher is ready at once: until Compile() has made an executable, runs are interpreted, by
// definition and slowly. Any thread may compile while others run.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

#include "backend/client/client.h"
#include "lazy/program/program.h"

namespace lazuli::lazy {

class Launcher {
 public:
  enum class State : uint8_t { kInterpreting, kCompiling, kCompiled, kFailed };

  // For the platform of the device, which is where runs without a device of their own take place.
  Launcher(ProgramPtr program, backend::Device device, backend::CompileOptions options);

  const Program& program() const { return *program_; }
  backend::Device device() const { return device_; }
  State state() const { return state_.load(std::memory_order_acquire); }

  // Compiles the program, unless that was done: then gives what came of it.
  absl::Status Compile();
  // What Compile() made; null before and where it failed.
  backend::Executable* executable() const { return current_.load(std::memory_order_acquire); }

  // All outputs of a run: the results, values of checks and flags.
  absl::StatusOr<backend::Buffers> Run(const backend::ExecuteArgs& args) const;
  // The results of a run. A check that failed is an error, the first one's.
  absl::StatusOr<backend::Buffers> RunChecked(const backend::ExecuteArgs& args) const;
  // Run() on several devices that exchange values, in a thread per device.
  std::vector<absl::StatusOr<backend::Buffers>> RunTogether(
      absl::Span<const backend::ExecuteArgs> args) const;

 private:
  backend::Executable& Interpreted() const;

  const ProgramPtr program_;
  const backend::Device device_;
  const backend::CompileOptions options_;
  std::atomic<State> state_{State::kInterpreting};
  std::atomic<backend::Executable*> current_{nullptr};
  std::mutex compiling_;
  absl::Status failure_;
  backend::ExecutablePtr compiled_;
  mutable std::once_flag interprets_;
  mutable backend::ExecutablePtr interpreted_;  // made when it first runs
};

// The value of an s64[] of a device; where its memory is the host's, without asking for any.
absl::StatusOr<int64_t> ReadNumber(const backend::Buffer& buffer);

// The error of the first check of the program that failed in a run with these outputs.
absl::Status CheckOutputs(const Program& program, absl::Span<const backend::BufferPtr> outputs);

}  // namespace lazuli::lazy
