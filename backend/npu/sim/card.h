// A device that stays on: programs come and go, and its DRAM, its clock and what it has counted
// stay.
//
//   LAZULI_ASSIGN_OR_RETURN(auto card, Card::Create(config, "npu:0"));
//   LAZULI_ASSIGN_OR_RETURN(const uint64_t x, card->Allocate(bytes.size(), "x"));
//   card->Write(x, bytes);                                       // a transfer from the host
//   if (auto fault = card->Launch(program, {x, y}, {})) ...      // arrays by their places
//
// Cards of one process are joined by links: programs that talk to each other run on a Fabric (fabric.h).
// A machine (machine.h) is for a program in a file, whose arrays are where the file says, on several
// devices at once; a card is for a client. Time is simulated: transfers, launches and runs follow
// each other and never overlap, so the sum is an upper bound of what hardware with queues would
// take. Thread-safe; a run excludes other runs, not transfers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

#include "backend/npu/sim/checked_program.h"
#include "backend/npu/sim/dram_allocator.h"
#include "backend/npu/sim/fault.h"
#include "backend/npu/sim/machine.h"
#include "backend/npu/sim/observer.h"
#include "ir/support/fork.h"

namespace lazuli::npu {

class Engine;

// What a card has done since it is there.
struct CardTotals {
  int64_t launches = 0, loads = 0, stores = 0;  // programs; transfers from and to the host
  int64_t load_bytes = 0, store_bytes = 0;
  double transfer_seconds = 0, launch_seconds = 0, run_seconds = 0;  // simulated
  double wait_seconds = 0;  // for other cards, at collectives
  Counters counters;        // of all runs together

  double seconds() const { return transfer_seconds + launch_seconds + run_seconds + wait_seconds; }
};

// Something that goes wrong in a run, on purpose.
struct Injection {
  enum class Kind : uint8_t {
    kNone,
    kTrap,    // the program traps in its middle
    kMemory,  // the DRAM that it reads first is damaged
    kLink,    // the first message to another device is lost; without one, that of the launch
  };
  Kind kind = Kind::kNone;
  int64_t launch = 0;  // of the card's, counted from 0

  // "trap:3", "memory:0", "link:7"; empty is none.
  static absl::StatusOr<Injection> Parse(std::string_view text);
};

class Card {
 public:
  ~Card();
  // One device of the configuration, whatever it says of their number. `name` is for errors.
  static absl::StatusOr<std::unique_ptr<Card>> Create(const Config& config, std::string name);
  const Config& config() const;
  const std::string& name() const { return name_; }

  // --- DRAM. Blocks are of unknown contents, which strict runs do not read.
  absl::StatusOr<uint64_t> Allocate(uint64_t bytes, std::string_view what);
  void Free(uint64_t place);
  uint64_t bytes_in_use() const;
  uint64_t peak_bytes() const;
  // The bytes as they lie there; looking takes no simulated time.
  const std::byte* at(uint64_t place) const;

  // --- the host's side: each call is one transfer
  void Write(uint64_t place, std::span<const std::byte> bytes);
  void Read(uint64_t place, std::span<std::byte> bytes);
  // A transfer to the host whose bytes are looked at where they lie.
  void CountRead(uint64_t bytes);
  // Bytes from one place to another, by the device's own DMA.
  void Copy(uint64_t from, uint64_t to, uint64_t bytes);

  // Runs a program with its arrays at these places, one for each symbol. What it counted goes to
  // `counters`, if that is not null. A card whose program failed runs the next one.
  std::optional<Fault> Launch(const std::shared_ptr<const CheckedProgram>& program,
                              std::span<const uint64_t> places, const RunOptions& options,
                              Counters* counters = nullptr);
  void Inject(const Injection& injection);
  CardTotals totals() const;

 private:
  Card(const Config& config, std::string name);
  void CountTransfer(uint64_t bytes, int64_t CardTotals::* number, int64_t CardTotals::* sum);
  // The launch's number.
  int64_t CountLaunch();
  // What the injection does to the launch with this number, of a program that is at its entry on
  // this device of the engine.
  std::optional<Fault> Damage(int64_t launch, const CheckedProgram& checked,
                              std::vector<Instruction>& code, RunOptions& options) const;
  void CountRun(const Counters& run);
  void CountWait(double seconds);
  friend class Fabric;

  const std::string name_;
  std::unique_ptr<Engine> engine_;
  ir::ForkMutex running_;        // the engine
  mutable ir::ForkMutex mutex_;  // all below
  DramAllocator dram_;
  CardTotals totals_;
  Injection injection_;
};

}  // namespace lazuli::npu
