// What a machine is made of, and a program's beginning.

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "backend/npu/sim/address.h"
#include "backend/npu/sim/engine.h"
#include "ir/support/status.h"

namespace lazuli::npu {

bool Engine::Map(Memory& memory, MemoryKind kind, int device, int core, uint64_t bytes) const {
  memory.kind = kind;
  memory.device = device;
  memory.core = core;
  memory.bytes = Mapping(bytes);
  if (config_.strict && kind != MemoryKind::kHost)
    memory.shadow = Mapping(bytes * sizeof(Memory::Known));
  return memory.bytes.ok() && memory.shadow.ok();
}

// Null: memory of its own.
bool Engine::MapDevice(int number, const Memory* dram) {
  auto device = std::make_unique<SimulatedDevice>();
  device->index = number;
  bool ok =
      Map(device->dram, MemoryKind::kDram, number, 0, static_cast<uint64_t>(config_.dram_bytes()));
  if (dram != nullptr) device->dram.bytes = Mapping::Of(dram->bytes);
  ok = ok && Map(device->host, MemoryKind::kHost, number, 0, kHostBytes);
  devices_.push_back(std::move(device));
  return ok;
}

absl::Status Engine::Build() {
  const std::vector<const Memory*> own(static_cast<std::size_t>(config_.devices), nullptr);
  return BuildOver(own);
}

absl::Status Engine::BuildOver(std::span<const Memory* const> drams) {
  devices_.clear();
  strict_.reset();
  bool ok = true;
  for (std::size_t d = 0; d < drams.size(); ++d)
    ok = MapDevice(static_cast<int>(d), drams[d]) && ok;
  if (!ok) return ResourceExhausted("the machine's memories cannot be mapped");
  return BuildCores();
}

absl::Status Engine::BuildCores() {
  bool ok = true;
  for (auto& device : devices_) {
    device->cores.clear();
    for (int c = 0; c < config_.cores; ++c) {
      auto core = std::make_unique<Core>();
      core->device = device->index;
      core->index = c;
      ok = ok && Map(core->spm, MemoryKind::kSpm, device->index, c,
                     static_cast<uint64_t>(config_.spm_bytes()));
      ok = ok && Map(core->acc, MemoryKind::kAcc, device->index, c,
                     static_cast<uint64_t>(config_.acc_bytes()));
      device->cores.push_back(std::move(core));
    }
    device->counters = {};
    device->requests.clear();
    device->channel = std::make_unique<Dram>(config_);
    device->granting = false;
    device->last_served = -1;
    std::fill(std::begin(device->links_free), std::end(device->links_free), 0);
  }
  if (!ok) return ResourceExhausted("the machine's memories cannot be mapped");
  return absl::OkStatus();
}

std::optional<Fault> Engine::Load(const Program& program) {
  if (loaded_ && !Build().ok())
    return Fault{
        ErrorCode::kSimBug, -1, -1, -1, -1, 0, "", "", "the machine's memories cannot be mapped"};
  auto checked = std::make_shared<CheckedProgram>();
  fault_ = CheckProgram(program, config_, *checked);
  checked_ = std::move(checked);
  loaded_ = true;
  finished_ = false;
  if (fault_) return fault_;
  for (auto& device : devices_) {
    device->runs = true;
    device->code = checked_->code;
  }
  Start();
  for (auto& device : devices_) {
    std::size_t at = 0;
    for (const Symbol& s : program.symbols) {
      if (s.kind != SymbolKind::kConst) continue;
      const auto bytes = static_cast<std::size_t>(s.bytes());
      std::memcpy(device->dram.data() + s.offset, program.constants.data() + at, bytes);
      if (strict_ != nullptr) Strict::WrittenByHost(device->dram, s.offset, bytes);
      at += bytes;
    }
  }
  return std::nullopt;
}

std::optional<Fault> Engine::Launch(std::shared_ptr<const CheckedProgram> program,
                                    std::span<const DeviceArrays> devices) {
  if (!BuildCores().ok())
    return Fault{
        ErrorCode::kSimBug, -1, -1, -1, -1, 0, "", "", "the machine's memories cannot be mapped"};
  checked_ = std::move(program);
  loaded_ = true;
  finished_ = false;
  fault_.reset();
  for (auto& device : devices_) device->runs = false;
  for (const DeviceArrays& arrays : devices) {
    SimulatedDevice& device = *devices_[static_cast<std::size_t>(arrays.device)];
    device.runs = true;
    device.code = checked_->code;
    for (const CheckedProgram::Reference& reference : checked_->references) {
      if (reference.symbol >= 0)
        device.code[reference.pc].imm = static_cast<uint32_t>(
            arrays.places[static_cast<std::size_t>(reference.symbol)] / kDramUnit);
    }
  }
  Start();
  return std::nullopt;
}

// Everything but the memories as at power up, and the program at its entry.
void Engine::Start() {
  heap_ = {};
  serial_ = random_ = 0;
  now_ = last_ = 0;
  blamed_ = nullptr;
  puts_ = 0;
  completions_.clear();
  free_completions_.clear();
  if (strict_ != nullptr) {
    strict_->NewRun();
    if (strict_->worn()) {
      for (auto& device : devices_) Strict::Forget(device->dram);
      strict_.reset();
    }
  }
  if (config_.strict && strict_ == nullptr)
    strict_ = std::make_unique<Strict>(static_cast<int>(config_.devices * config_.cores * kTracks));
  for (auto& device : devices_) {
    for (auto& core : device->cores) {
      if (!device->runs) {
        core->state = SequencerState::kHalted;
        continue;
      }
      core->pc = core->shown_pc = program().entry;
      for (std::size_t s = 0; s < kSemaphores; ++s) {
        core->semaphores[s] = core->baseline[s] = program().semaphores[s];
        if (strict_ != nullptr && program().semaphores[s] != 0)
          strict_->Put(core->tokens[s], program().semaphores[s], nullptr);
      }
      Push(0, device->index, core->index, kSequencerUnit, Event::kSequencer, 0);
    }
  }
}

}  // namespace lazuli::npu
