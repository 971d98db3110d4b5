#include "backend/npu/sim/machine.h"

#include <cstring>

#include "backend/npu/sim/assembler.h"
#include "backend/npu/sim/engine.h"
#include "ir/support/status.h"

namespace lazuli::npu {

Machine::Machine(const Config& config) : engine_(std::make_unique<Engine>(config)) {}
Machine::~Machine() = default;

absl::StatusOr<std::unique_ptr<Machine>> Machine::Create(const Config& config) {
  LAZULI_RETURN_IF_ERROR(Check(config));
  std::unique_ptr<Machine> machine(new Machine(config));  // the constructor is private
  LAZULI_RETURN_IF_ERROR(machine->engine_->Build());
  return machine;
}

const Config& Machine::config() const { return engine_->config_; }
std::optional<Fault> Machine::Load(const Program& program) { return engine_->Load(program); }
const Program& Machine::program() const { return engine_->program(); }
std::optional<Fault> Machine::Run(const RunOptions& options) { return engine_->Run(options); }
bool Machine::done() const { return engine_->finished_; }
int64_t Machine::cycles() const { return engine_->finished_ ? engine_->last_ : engine_->now_; }

const Counters& Machine::counters(int device) const {
  return engine_->devices_[static_cast<std::size_t>(device)]->counters;
}

absl::StatusOr<const Symbol*> Machine::ArrayOf(int device, std::string_view name) const {
  if (device < 0 || device >= config().devices)
    return InvalidArgument("there is no device ", device);
  const Symbol* symbol = program().Find(name);
  if (symbol == nullptr) return NotFound("the program has no array ", name);
  if (symbol->offset + static_cast<uint64_t>(symbol->bytes()) > dram(device).size())
    return FailedPrecondition(name, " does not fit the DRAM");
  return symbol;
}

absl::Status Machine::WriteSymbol(int device, std::string_view name,
                                  std::span<const std::byte> bytes) {
  LAZULI_ASSIGN_OR_RETURN(const Symbol* symbol, ArrayOf(device, name));
  if (static_cast<int64_t>(bytes.size()) != symbol->bytes())
    return InvalidArgument(name, " has ", symbol->bytes(), " bytes, not ", bytes.size());
  Memory& dram = engine_->devices_[static_cast<std::size_t>(device)]->dram;
  if (!bytes.empty()) std::memcpy(dram.data() + symbol->offset, bytes.data(), bytes.size());
  if (engine_->strict_ != nullptr) Strict::WrittenByHost(dram, symbol->offset, bytes.size());
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::byte>> Machine::ReadSymbol(int device,
                                                           std::string_view name) const {
  LAZULI_ASSIGN_OR_RETURN(const Symbol* symbol, ArrayOf(device, name));
  const std::byte* const at = dram(device).data() + symbol->offset;
  return std::vector<std::byte>(at, at + symbol->bytes());
}

int64_t Machine::reg(int device, int core, int number) const {
  return engine_->CoreOf(device, core).regs[number];
}
int Machine::semaphore(int device, int core, int number) const {
  return engine_->CoreOf(device, core).semaphores[number];
}
uint32_t Machine::pc(int device, int core) const { return engine_->CoreOf(device, core).pc; }
std::span<const std::byte> Machine::spm(int device, int core) const {
  const Memory& memory = engine_->CoreOf(device, core).spm;
  return {memory.data(), memory.size()};
}
std::span<const std::byte> Machine::acc(int device, int core) const {
  const Memory& memory = engine_->CoreOf(device, core).acc;
  return {memory.data(), memory.size()};
}
std::span<const std::byte> Machine::dram(int device) const {
  const Memory& memory = engine_->devices_[static_cast<std::size_t>(device)]->dram;
  return {memory.data(), memory.size()};
}

std::string Machine::StateText() const {
  constexpr std::string_view kStates[] = {"runs", "waits for room in a queue", "waits at a fence",
                                          "waits for a semaphore", "has halted"};
  std::string text;
  for (const auto& device : engine_->devices_) {
    for (const auto& core : device->cores) {
      text += Str("device ", core->device, " core ", core->index, ": ",
                  kStates[static_cast<std::size_t>(core->state)], " at pc ", core->pc, ", cycle ",
                  core->time);
      for (int q = 0; q < kQueues; ++q) {
        const UnitQueue& queue = core->queues[q];
        if (queue.entries.empty()) continue;
        text += Str("; ", QueueName(static_cast<Queue>(q)), " ", queue.entries.size(), " (pc ",
                    queue.entries.front().pc, ")");
      }
      text += "\n";
    }
  }
  return text;
}

}  // namespace lazuli::npu
