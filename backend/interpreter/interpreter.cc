#include "backend/interpreter/interpreter.h"

#include <atomic>

#include "backend/client/registry.h"
#include "backend/interpreter/evaluated_module.h"
#include "ir/hlo/dump/module_dump.h"
#include "ir/hlo/verifier.h"
#include "ir/support/flags.h"

namespace lazuli::interpreter {
namespace {

// Bytes that buffers of one client hold. Outlives the client's buffers.
class MemoryCounter {
 public:
  void Allocate(int64_t bytes) {
    const int64_t now = in_use_.fetch_add(bytes) + bytes;
    int64_t peak = peak_.load();
    while (now > peak && !peak_.compare_exchange_weak(peak, now)) {
    }
  }
  void Free(int64_t bytes) { in_use_.fetch_sub(bytes); }
  bool Fits(int64_t bytes) const {
    const int64_t limit = flags().memory_limit();
    return limit == 0 || in_use_.load() + bytes <= limit;
  }
  MemoryStats stats() const { return {.bytes_in_use = in_use_.load(), .peak_bytes = peak_.load()}; }

 private:
  std::atomic<int64_t> in_use_{0}, peak_{0};
};
using MemoryCounterPtr = std::shared_ptr<MemoryCounter>;

class InterpreterBuffer final : public Buffer {
 public:
  InterpreterBuffer(Literal literal, Device device, MemoryCounterPtr memory)
      : Buffer(literal.shape(), device), literal_(std::move(literal)), memory_(std::move(memory)) {
    memory_->Allocate(literal_.byte_size());
  }
  ~InterpreterBuffer() override { Release(); }
  // Gives the elements up: a donated buffer is empty, so that using it again fails here as on a
  // device that reuses the memory.
  void Release() {
    memory_->Free(literal_.byte_size());
    literal_ = Literal();
  }
  bool released() const { return !literal_.shape().IsArray(); }
  const std::byte* host_data() const override { return literal_.raw(); }
  const Literal& literal() const { return literal_; }

 private:
  Literal literal_;
  MemoryCounterPtr memory_;
};

absl::StatusOr<const Literal*> LiteralOf(const Buffer& buffer, const ComputationClient* client) {
  if (buffer.device().client != client)
    return InvalidArgument("a buffer of ", buffer.device(), " is not on the interpreter");
  const auto& own = static_cast<const InterpreterBuffer&>(buffer);
  if (own.released())
    return FailedPrecondition("a buffer of ", buffer.shape(), " was donated to an earlier run");
  return &own.literal();
}

// A donated buffer gives its elements up, whether or not a result would have taken them.
class InterpreterExecutable final : public EvaluatedModule {
 public:
  using EvaluatedModule::EvaluatedModule;
  absl::StatusOr<Buffers> Execute(const ExecuteArgs& args) override {
    LAZULI_ASSIGN_OR_RETURN(Buffers outputs, EvaluatedModule::Execute(args));
    for (std::size_t i = 0; i < args.donated.size(); ++i)
      if (args.donated[i] != 0) static_cast<InterpreterBuffer&>(*args.buffers[i]).Release();
    return outputs;
  }
};

class InterpreterClient final : public ComputationClient {
 public:
  explicit InterpreterClient(int num_devices) {
    for (int i = 0; i < num_devices; ++i) devices_.push_back({this, i});
  }
  std::string_view platform() const override { return "interpreter"; }
  absl::Span<const Device> devices() const override { return devices_; }

  absl::StatusOr<BufferPtr> FromHost(HostView view, Deleter deleter, Device device) override {
    if (device.client != this) return InvalidArgument(device, " is not an interpreter");
    if (!view.shape->IsArray()) return InvalidArgument("host memory of shape ", *view.shape);
    if (!memory_->Fits(view.shape->byte_size())) {
      if (deleter) deleter();
      return ResourceExhausted("out of memory: an array of ", view.shape->byte_size(),
                               " bytes does not fit within LAZULI_MEMORY_LIMIT");
    }
    const bool borrowed = static_cast<bool>(deleter);
    Literal literal = Literal::Foreign(*view.shape, view.data, std::move(deleter));
    if (!borrowed) literal = literal.byte_size() == 0 ? Literal(*view.shape) : literal.Clone();
    return std::make_shared<InterpreterBuffer>(std::move(literal), device, memory_);
  }
  absl::StatusOr<Literal> ToHost(const Buffer& buffer) override {
    LAZULI_ASSIGN_OR_RETURN(const Literal* literal, LiteralOf(buffer, this));
    return *literal;
  }
  absl::StatusOr<ExecutablePtr> Compile(std::unique_ptr<hlo::Module> module,
                                        const CompileOptions& options) override {
    if (options.flush_subnormals)
      return Unimplemented("the interpreter cannot flush subnormals (LAZULI_FLUSH_SUBNORMALS)");
    LAZULI_ASSIGN_OR_RETURN(const Device first, FirstDevice(options));
    hlo::ModuleDump dump(*module, platform());
    LAZULI_RETURN_IF_ERROR(hlo::Verify(*module));
    dump.After(*module);
    return std::make_shared<InterpreterExecutable>(std::move(module), options.device_assignment,
                                                   first);
  }
  absl::StatusOr<MemoryStats> memory_stats(Device) const override { return memory_->stats(); }
  std::vector<std::string> engines() const override { return {"the evaluator, on one thread"}; }

 private:
  std::vector<Device> devices_;
  MemoryCounterPtr memory_ = std::make_shared<MemoryCounter>();
};

}  // namespace

void RegisterInterpreter(int num_devices) {
  RegisterPlatform("interpreter",
                   [num_devices]() -> absl::StatusOr<std::unique_ptr<ComputationClient>> {
                     return std::make_unique<InterpreterClient>(num_devices);
                   });
}

}  // namespace lazuli::interpreter
