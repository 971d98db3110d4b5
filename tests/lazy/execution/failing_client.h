// A device that works until it is told to fail.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <mutex>

#include "backend/client/client.h"
#include "ir/evaluator/evaluator.h"
#include "ir/support/data_memory.h"
#include "ir/support/status.h"

namespace lazuli::backend {

class FailingClient final : public ComputationClient {
 public:
  std::atomic<bool> fail_import{false}, fail_compile{false}, fail_run{false}, lose_outputs{false},
      out_of_memory{false};
  std::atomic<int> running{0}, runs{0}, compiling{0};

  Device device(std::size_t ordinal = 0) const { return devices_[ordinal]; }
  std::string_view platform() const override { return name_; }
  absl::Span<const Device> devices() const override { return devices_; }

  absl::StatusOr<BufferPtr> FromHost(HostView view, Deleter deleter, Device device) override {
    if (fail_import) return ir::ResourceExhausted("no room");
    Literal literal = Literal::Foreign(*view.shape, view.data, {}).Clone();
    if (deleter) deleter();
    return Make(std::move(literal), device);
  }
  absl::StatusOr<Literal> ToHost(const Buffer& buffer) override {
    return static_cast<const Memory&>(buffer).literal;
  }
  absl::StatusOr<ExecutablePtr> Compile(std::unique_ptr<hlo::Module> module,
                                        const CompileOptions& options) override {
    WaitUntilReleased(compiling, compiles_held_);
    if (fail_compile) return ir::Internal("the compiler gave up");
    LAZULI_ASSIGN_OR_RETURN(const Device first, FirstDevice(options));
    return std::make_shared<Evaluated>(this, first, std::move(module));
  }
  absl::StatusOr<MemoryStats> memory_stats(Device) const override { return MemoryStats(); }

  // Runs block until released.
  void Hold() {
    std::lock_guard lock(mu_);
    held_ = true;
  }
  void HoldCompiles() {
    std::lock_guard lock(mu_);
    compiles_held_ = true;
  }
  void Release() {
    {
      std::lock_guard lock(mu_);
      held_ = compiles_held_ = false;
    }
    released_.notify_all();
  }

 private:
  struct Memory final : Buffer {
    Memory(Literal l, Device device) : Buffer(l.shape(), device), literal(std::move(l)) {}
    Literal literal;
  };

  class Evaluated final : public Executable {
   public:
    Evaluated(FailingClient* client, Device first, std::unique_ptr<hlo::Module> module)
        : client_(client), first_(first), module_(std::move(module)) {}
    absl::StatusOr<Buffers> Execute(const ExecuteArgs& args) override {
      ++client_->runs;
      client_->WaitUntilReleased(client_->running, client_->held_);
      if (client_->out_of_memory) throw ir::NoDataMemory(1 << 30);  // NOLINT
      if (client_->fail_run) return ir::Internal("the device caught fire");
      std::vector<Literal> values;
      for (const BufferPtr& buffer : args.buffers)
        values.push_back(static_cast<const Memory&>(*buffer).literal);
      for (const uint64_t cell : args.scalars) {
        values.push_back(Literal(module_->entry()->parameters()[values.size()]->shape()));
        std::memcpy(values.back().mutable_raw(), &cell,
                    static_cast<std::size_t>(values.back().byte_size()));
      }
      std::vector<const Literal*> arguments;
      for (const Literal& value : values) arguments.push_back(&value);
      LAZULI_ASSIGN_OR_RETURN(const Literal result, hlo::Evaluate(*module_, arguments));
      Buffers buffers;
      for (const Literal& output : result.tuple())
        buffers.push_back(client_->Make(output, DeviceOf(args, first_)));
      if (client_->lose_outputs) buffers.pop_back();
      return buffers;
    }
    const ExecutableStats& stats() const override { return stats_; }
    std::string ToString() const override { return module_->ToString(); }

   private:
    FailingClient* client_;
    Device first_;
    std::unique_ptr<hlo::Module> module_;
    ExecutableStats stats_;
  };

  BufferPtr Make(Literal literal, Device device) {
    return std::make_shared<Memory>(std::move(literal), device);
  }
  void WaitUntilReleased(std::atomic<int>& waiting, const bool& held) {
    ++waiting;
    std::unique_lock lock(mu_);
    released_.wait(lock, [&] { return !held; });
    --waiting;
  }
  static std::string NewName() {
    static std::atomic<int> made{0};
    const int number = ++made;
    return number == 1 ? "failing" : ir::Str("failing", number);
  }

  const std::string name_ = NewName();
  std::vector<Device> devices_{{this, 0}, {this, 1}};
  std::mutex mu_;
  std::condition_variable released_;
  bool held_ = false, compiles_held_ = false;
};

}  // namespace lazuli::backend
