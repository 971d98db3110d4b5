// The machine: devices of cores, their units and memories, one program on all of them, one heap of
// events.
//
//   LAZULI_ASSIGN_OR_RETURN(auto machine, Machine::Create(config));
//   if (auto fault = machine->Load(program)) return ToStatus(*fault);
//   machine->WriteSymbol(0, "a", bytes);
//   if (auto fault = machine->Run({})) return ToStatus(*fault);
//
// A run is a function of program, configuration, inputs and options: the same bytes, cycles and
// calls of the observer every time. With `timing` off all work takes no time and the results are
// the same, as long as the strict checks find no race.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include "backend/npu/sim/config.h"
#include "backend/npu/sim/fault.h"
#include "backend/npu/sim/observer.h"
#include "backend/npu/sim/program.h"

namespace lazuli::npu {

class Engine;

// An instruction has been executed by the sequencer, or begun by a unit.
struct Step {
  int device, core, track;
  uint32_t pc;
  int64_t cycle;
};

struct RunOptions {
  bool timing = true;
  uint64_t jitter = 0;           // not 0: seeds delays that units add to their work, in order still
  int64_t lose_put = -1;         // the lnk.put, counted from 0, whose message is lost
  int64_t damaged_dram = -1;     // offset of 64 bytes of each device's DRAM that cannot be read
  Observer* observer = nullptr;  // outlives the run
  // Called behind every step; true stops the run there, and Run() goes on.
  std::function<bool(const Step&)> stop = nullptr;
};

class Machine {
 public:
  ~Machine();
  static absl::StatusOr<std::unique_ptr<Machine>> Create(const Config& config);
  const Config& config() const;

  // Checks the program, and puts it and its constants into place. Everything else starts from zero.
  std::optional<Fault> Load(const Program& program);
  const Program& program() const;

  // Runs to the end, or until options.stop. A machine that failed stays failed: the same fault
  // again.
  std::optional<Fault> Run(const RunOptions& options);
  bool done() const;       // ran to the end
  int64_t cycles() const;  // so far
  const Counters& counters(int device) const;

  // Arrays by name. Sizes must fit; writing makes them initialised.
  absl::Status WriteSymbol(int device, std::string_view name, std::span<const std::byte> bytes);
  absl::StatusOr<std::vector<std::byte>> ReadSymbol(int device, std::string_view name) const;

  // What a debugger shows.
  int64_t reg(int device, int core, int number) const;
  int semaphore(int device, int core, int number) const;
  uint32_t pc(int device, int core) const;
  std::span<const std::byte> spm(int device, int core) const;
  std::span<const std::byte> acc(int device, int core) const;
  std::span<const std::byte> dram(int device) const;
  // What each core is doing, one line each.
  std::string StateText() const;

 private:
  explicit Machine(const Config& config);
  // The array, if the device and the array are there and it lies in the DRAM.
  absl::StatusOr<const Symbol*> ArrayOf(int device, std::string_view name) const;
  std::unique_ptr<Engine> engine_;
};

}  // namespace lazuli::npu
