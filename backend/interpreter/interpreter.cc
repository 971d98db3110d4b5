#include "backend/interpreter/interpreter.h"

#include <atomic>
#include <cstring>
#include <optional>

#include "backend/client/registry.h"
#include "ir/evaluator/evaluator.h"
#include "ir/hlo/dump/module_dump.h"
#include "ir/hlo/verifier.h"
#include "ir/support/flags.h"
#include "ir/support/float_mode.h"
#include "ir/types/leaves.h"

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

class InterpreterExecutable final : public Executable {
 public:
  InterpreterExecutable(std::unique_ptr<hlo::Module> module, absl::Span<const int64_t> assignment,
                        Device first, MemoryCounterPtr memory)
      : module_(std::move(module)),
        peers_(hlo::PeerProgram::Of(*module_, assignment)),
        first_(first),
        memory_(std::move(memory)) {
    for (const auto& computation : module_->computations()) {
      for (const auto& i : computation->instructions()) {
        stats_.code_bytes += static_cast<int64_t>(sizeof(hlo::Instruction));
        if (i->IsConstant()) stats_.code_bytes += i->literal().byte_size();
      }
    }
    for (const hlo::Instruction* parameter : module_->entry()->parameters()) {
      ForEachLeaf(parameter->shape(),
                  [this, parameter](const Shape& leaf) { leaves_.push_back({parameter, leaf}); });
    }
    stats_.output_bytes = module_->entry()->root()->shape().byte_size();
    stats_.evaluator_thunks = module_->entry()->instruction_count() -
                              static_cast<int64_t>(module_->entry()->parameters().size());
  }

  absl::StatusOr<Buffers> Execute(const ExecuteArgs& args) override {
    const Device device = DeviceOf(args, first_);
    if (!peers_) return ExecuteOn(device, args, nullptr);
    hlo::PeerRun run(device.client->peers(), *peers_, device.ordinal, args.asked);
    absl::StatusOr<Buffers> outputs = ExecuteOn(device, args, &run);
    if (!outputs.ok()) run.Fail(outputs.status());
    return outputs;
  }
  const ExecutableStats& stats() const override { return stats_; }
  std::string ToString() const override { return module_->ToString(); }

 private:
  absl::StatusOr<Buffers> ExecuteOn(Device device, const ExecuteArgs& args,
                                    hlo::PeerRun* peers) const {
    LAZULI_ASSIGN_OR_RETURN(const std::vector<Literal> arguments, Arguments(args));
    std::vector<const Literal*> pointers;
    for (const Literal& argument : arguments) pointers.push_back(&argument);
    const ir::ScopedFloatMode mode;
    LAZULI_ASSIGN_OR_RETURN(
        const Literal result,
        hlo::Evaluate(*module_, pointers,
                      {.transfers = &device.client->transfers(device), .peers = peers}));
    for (std::size_t i = 0; i < args.donated.size(); ++i)
      if (args.donated[i] != 0) static_cast<InterpreterBuffer&>(*args.buffers[i]).Release();
    Buffers leaves;
    ForEachLeaf(result, [&](const Literal& leaf) {
      leaves.push_back(std::make_shared<InterpreterBuffer>(leaf, device, memory_));
    });
    return leaves;
  }

  // A value for each parameter.
  absl::StatusOr<std::vector<Literal>> Arguments(const ExecuteArgs& args) const {
    LAZULI_ASSIGN_OR_RETURN(const std::vector<Literal> leaves, LeafValues(args));
    std::vector<Literal> arguments;
    std::size_t next = 0;
    for (const hlo::Instruction* parameter : module_->entry()->parameters())
      arguments.push_back(FromLeaves(parameter->shape(), leaves, &next));
    return arguments;
  }

  // Buffers first, then scalars.
  absl::StatusOr<std::vector<Literal>> LeafValues(const ExecuteArgs& args) const {
    if (args.buffers.size() + args.scalars.size() != leaves_.size()) {
      return InvalidArgument(module_->name(), " takes ", leaves_.size(), " arguments, not ",
                             args.buffers.size(), " buffers and ", args.scalars.size(), " scalars");
    }
    std::vector<Literal> arguments;
    for (std::size_t i = 0; i < leaves_.size(); ++i) {
      const Shape& shape = leaves_[i].shape;
      if (i < args.buffers.size()) {
        LAZULI_ASSIGN_OR_RETURN(const Literal* literal, LiteralOf(*args.buffers[i], first_.client));
        if (!Compatible(literal->shape(), shape)) return WrongArgument(i, literal->shape());
        arguments.push_back(*literal);
        continue;
      }
      if (!shape.IsScalar() || ByteWidth(shape.dtype()) > 8)
        return InvalidArgument(module_->name(), ": argument ", i, " is ", shape, ", not a scalar");
      Literal scalar = Literal::Uninitialized(shape);
      std::memcpy(scalar.mutable_raw(), &args.scalars[i - args.buffers.size()],
                  static_cast<std::size_t>(ByteWidth(shape.dtype())));
      arguments.push_back(std::move(scalar));
    }
    return arguments;
  }

  absl::Status WrongArgument(std::size_t i, const Shape& given) const {
    const std::string& name = leaves_[i].parameter->metadata().op_name;
    return InvalidArgument(module_->name(), ": argument ", i, name.empty() ? "" : " (", name,
                           name.empty() ? "" : ")", " is ", given, ", not ", leaves_[i].shape);
  }

  struct Leaf {
    const hlo::Instruction* parameter;
    Shape shape;
  };

  std::unique_ptr<hlo::Module> module_;
  std::vector<Leaf> leaves_;  // of all parameters
  std::optional<hlo::PeerProgram> peers_;
  Device first_;
  MemoryCounterPtr memory_;
  ExecutableStats stats_;
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
                                                   first, memory_);
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
