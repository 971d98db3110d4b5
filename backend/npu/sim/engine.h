// Inside the machine: cores, queues, the event heap, and what the units need to execute an
// instruction.
//
// An instruction has its effect on memory when its unit starts it, and its signal when it is done;
// in between nobody may look, which the strict checks prove. So values never depend on cycles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <queue>
#include <span>
#include <string>
#include <vector>

#include "backend/npu/sim/banks.h"
#include "backend/npu/sim/checked_program.h"
#include "backend/npu/sim/cost.h"
#include "backend/npu/sim/dram.h"
#include "backend/npu/sim/machine.h"
#include "backend/npu/sim/memory.h"
#include "backend/npu/sim/strict.h"

namespace lazuli::npu {

// An instruction in a queue, with the registers it was dispatched with.
struct QueuedInstruction {
  uint32_t pc = 0;
  const Instruction* in = nullptr;
  int64_t rd = 0, ra = 0, rb = 0, rc = 0;
  int64_t arrival = 0;
  Clock dispatched;
};

// Where signals come from, in order.
struct Port {
  int64_t free = 0;        // when the next instruction can start
  int64_t last_start = 0;  // of the one before
  int64_t last_done = 0;
  int in_flight = 0;    // started, not done
  int64_t latency = 0;  // of the last one
  uint32_t completion = 0;
};

struct UnitQueue {
  std::deque<QueuedInstruction> entries;
  int64_t ready_since = 0;  // when the head could have started but for semaphores
  bool waits_semaphore = false;
  bool transferring = false;  // its port is free when the DRAM has served it
  int64_t transfer_start = 0;
  Stall stall = Stall::kNone;
};

enum class SequencerState : uint8_t { kRuns, kQueueFull, kFence, kSemaphore, kHalted };

// A weight plane of the matrix unit.
struct WeightPlane {
  Type type = Type::kNone;
  int64_t k = 0, n = 0;
  std::vector<float> f;  // as f32
  std::vector<int16_t> i;
  std::vector<float> parts[3];  // bf16 parts of f, made when a mode asks
  int parts_made = 0;
};

// Rows of the accumulators that a multiplication writes or a result reads, and until when.
struct AccUse {
  int64_t first, last, done;
  Clock clock;
};

// What mx.out does with a sum: scale and bias of its column, activation, type.
struct Epilogue {
  Type type = Type::kNone;
  bool from_float = false;
  int activation = 0, zero_point = 0;
  float low = 0, high = 0;
  std::vector<uint32_t> words;
  const uint32_t* scales = nullptr;  // into the words, or none
  const uint32_t* biases = nullptr;
};

struct Core {
  int device = 0, index = 0;
  // sequencer
  int64_t regs[kRegisters] = {};
  struct Loop {
    uint32_t begin, end;
    int64_t count, i;
    uint32_t reg;
  };
  std::vector<Loop> loops;
  uint32_t pc = 0;
  int64_t time = 0;
  SequencerState state = SequencerState::kRuns;
  uint32_t blocked_on = 0;  // a queue, a set of queues
  uint32_t blocked_pc = 0;
  int64_t instructions = 0;
  Clock clock;  // the sequencer's, until it changes
  // What an observer has not been shown: since when, which instructions, and since when the next
  // one waits.
  int64_t shown_time = 0, shown_instructions = 0, blocked_since = -1;
  uint32_t shown_pc = 0;
  // units
  UnitQueue queues[kQueues];
  Port ports[kTracks];
  int semaphores[kSemaphores] = {};
  int baseline[kSemaphores] = {};
  uint32_t waiters[kSemaphores] = {};  // queues whose head waits for it; bit 15: the sequencer
  TokenQueue tokens[kSemaphores];
  Memory spm, acc;
  Banks banks;
  // matrix unit
  WeightPlane shadow, active;
  int64_t shadow_done = 0, swapped = 0;
  Clock swap_clock;
  std::vector<AccUse> acc_writes, acc_reads;
};

// A copy from or to the DRAM, until its last byte has passed the channel.
struct DramRequest {
  int core = 0, queue = 0;                         // of the device
  std::vector<std::pair<uint64_t, int64_t>> runs;  // offset, bytes
  std::size_t at = 0;                              // the run that is being served
  int64_t served = 0;                              // bytes of it
  // The instruction: since when it could have started, when it did, and when its first byte can be
  // served.
  uint32_t pc = 0;
  const Instruction* in = nullptr;
  int64_t ready = 0, start = 0, issued = 0;
  int64_t latency = 0, bytes = 0;
  Stall stall = Stall::kNone;
  BankWords words;
};

struct SimulatedDevice {
  int index = 0;
  Memory dram, host;
  std::vector<std::unique_ptr<Core>> cores;
  bool runs = true;               // takes part in this run
  std::vector<Instruction> code;  // the program's, its arrays where they are on this device
  Counters counters;
  std::vector<DramRequest> requests;  // in the order of (core, queue)
  std::unique_ptr<Dram> channel;
  bool granting = false;       // an event for when the channel is free is under way
  int last_served = -1;        // core * kQueues + queue
  int64_t links_free[4] = {};  // cycles; each direction
};

// What happens when an instruction is done.
struct Completion {
  int device = 0, core = 0, track = 0;
  uint32_t pc = 0;
  const Instruction* in = nullptr;
  int remote_device = -1, remote_core = 0, remote_semaphore = 0, remote_count = 0;
  Clock clock;
  bool lost = false;
  int64_t latency = 0;
  int64_t due = 0;  // later than its event, if it has been put off
};

struct Event {
  enum Kind : uint8_t { kUnit, kDone, kArrive, kGrant, kSequencer };
  int64_t time;
  uint32_t order;  // device, core, unit
  uint64_t serial;
  Kind kind;
  uint32_t payload;
  bool operator>(const Event& other) const {
    if (time != other.time) return time > other.time;
    if (order != other.order) return order > other.order;
    return serial > other.serial;
  }
};

// Strided accesses of one operand: bytes of each run, in order.
struct ByteRun {
  uint64_t offset;
  uint64_t bytes;
};

// A place in a memory, found from a device address.
struct MemoryPlace {
  Memory* memory = nullptr;
  uint64_t offset = 0;
  std::byte* at() const { return memory->data() + offset; }
};

struct VectorStreams;  // vector.cc

class Engine {
 public:
  explicit Engine(const Config& config) : config_(config), words_(config) {}
  absl::Status Build();
  // Of devices whose DRAM is somebody else's, who outlives this.
  absl::Status BuildOver(std::span<const Memory* const> drams);
  // A program into a machine that is as at power up.
  std::optional<Fault> Load(const Program& program);
  // A program into a machine whose DRAM stays as it is, on some devices, with its arrays at these
  // places of each.
  struct DeviceArrays {
    int device;
    std::span<const uint64_t> places;
  };
  std::optional<Fault> Launch(std::shared_ptr<const CheckedProgram> program,
                              std::span<const DeviceArrays> devices);
  std::optional<Fault> Run(const RunOptions& options);

  Config config_;
  const Program& program() const { return checked_->program; }
  std::shared_ptr<const CheckedProgram> checked_ = std::make_shared<CheckedProgram>();
  std::vector<std::unique_ptr<SimulatedDevice>> devices_;
  std::unique_ptr<Strict> strict_;
  std::optional<Fault> fault_;
  bool loaded_ = false, finished_ = false;
  int64_t now_ = 0, last_ = 0;

 private:
  friend class Machine;
  friend class Card;
  friend class Fabric;

  // --- loading (load.cc)
  bool Map(Memory& memory, MemoryKind kind, int device, int core, uint64_t bytes) const;
  bool MapDevice(int number, const Memory* dram);
  absl::Status BuildCores();
  void Start();

  // --- events (engine.cc, ending.cc)
  void Push(int64_t time, int device, int core, int unit, Event::Kind kind, uint32_t payload);
  bool Dispatch(const Event& event);
  // Of a run that is over (ending.cc).
  struct Waiter {
    int device, core, track;
    bool operator==(const Waiter&) const = default;
  };
  struct Wait {
    uint32_t pc = 0;
    std::string text;
    std::optional<Waiter> next;
  };
  std::optional<Fault> AtEnd() const;
  std::string NameOf(const Waiter& waiter) const;
  std::optional<Waiter> FirstWaiter() const;
  std::optional<Waiter> SignallerOf(const Core& core, int semaphore, const Waiter& self) const;
  Wait WaitOf(const Waiter& waiter) const;
  Fault Deadlock() const;
  std::optional<Fault> LeftoverTokens() const;

  // --- sequencer (sequencer.cc)
  bool RunSequencer(Core& core);
  bool Enqueue(Core& core, const Instruction& in);
  bool Fenced(const Core& core, uint32_t mask) const;
  enum Progress : uint8_t { kDone, kWaits, kFails };
  Progress Block(Core& core, SequencerState state, uint32_t on);
  Progress Meet(Core& core, const Instruction& in);
  bool EnterLoop(Core& core, const Instruction& in, int64_t count, uint32_t& next);
  bool EndLoop(Core& core, uint32_t& next);
  bool Return(const Core& core, uint32_t& next);
  int64_t StateRegister(const Core& core, std::size_t number) const;
  void SetSemaphore(Core& core, const Instruction& in);
  void PassFence(Core& core, uint32_t queues);
  bool PassTokens(Core& core, const Instruction& in);
  void ShowScalars(Core& core, int64_t end);
  void ShowSequencer(Core& core, Stall stall);
  bool LoadScalar(Core& core, const Instruction& in);
  void TouchSequencer(Core& core);

  static constexpr int kGrantOrder = 0;      // of a device's channel, before its units
  static constexpr int kSequencerUnit = 31;  // behind the units of its core

  // --- queues and semaphores (queues.cc, channel.cc)
  bool TryStart(Core& core, int queue);
  bool Start(Core& core, int queue, const QueuedInstruction& entry);
  bool StartObserved(Core& core, int queue, const QueuedInstruction& entry);
  bool FitsWatchdog(const Instruction& in);
  bool Execute(Core& core, const QueuedInstruction& entry, Cost& cost, DramRequest& request,
               Completion& remote);
  bool StartMatrix(Core& core, const UnitQueue& queue, const QueuedInstruction& entry);
  void Send(Core& core, const Slice& slice, Completion message);
  void Transfer(Core& core, int queue, const Slice& slice, int64_t latency, DramRequest request);
  bool Finish(uint32_t completion);
  bool Signal(Core& core, int semaphore, int count, const Clock& clock, const Completion& from);
  void TakeTokens(Core& core, int semaphore, int count, int track, uint32_t pc);
  void Complete(Core& core, const Slice& slice, int64_t latency);
  int64_t TakeBanks(Core& core, int track, BankRank rank, int64_t start, int64_t clocks,
                    const BankWords& words);
  void PutOff(Core& core, const Banks::Delay& delay);
  uint32_t NewCompletion(Completion completion);
  bool Grant(SimulatedDevice& device);
  DramRequest* NextRequest(SimulatedDevice& device) const;
  int64_t Serve(Dram& channel, DramRequest& request) const;
  void FinishTransfer(SimulatedDevice& device, std::size_t index, int64_t end);
  Cost Timed(Cost cost);
  const std::vector<Instruction>& CodeOf(const Core& core) const {
    return devices_[static_cast<std::size_t>(core.device)]->code;
  }
  Core& CoreOf(int device, int core) {
    return *devices_[static_cast<std::size_t>(device)]->cores[static_cast<std::size_t>(core)];
  }
  int AgentOf(const Core& core, int track) const {
    return static_cast<int>((core.device * config_.cores + core.index) * kTracks + track);
  }

  // --- memory (access.cc)
  enum Reach : uint32_t {
    kOwn = 1,
    kAccToo = 2,
    kCores = 4,
    kDramToo = 8,
    kPeers = 16,
    kHostToo = 32
  };
  // The memory in which the whole walk from `address` lies.
  bool Find(Core& core, int64_t address, const Walk& walk, uint32_t reach, MemoryPlace& place);
  bool TouchWalk(const MemoryPlace& place, const Walk& walk, bool write);
  bool TouchBytes(const MemoryPlace& place, uint64_t bytes, bool write);
  bool Report(const Strict::Finding& finding, const Memory& memory);
  void RunsOf(const MemoryPlace& place, const Walk& walk, std::vector<ByteRun>& runs) const;

  // --- units: false if they failed. They execute, and say what it costs.
  bool Copy(Core& core, const QueuedInstruction& entry, Cost& cost, DramRequest& request);
  bool FarAddress(const QueuedInstruction& entry, int64_t& address);
  bool Fill(Core& core, const QueuedInstruction& entry, Cost& cost);
  bool Indexed(Core& core, const QueuedInstruction& entry, Cost& cost, DramRequest& request);
  bool Put(Core& core, const QueuedInstruction& entry, Cost& cost, Completion& completion);
  bool Move(const MemoryPlace& from, const Walk& source, const MemoryPlace& to, const Walk& target,
            int op, int convert, Type type);
  bool LoadWeights(Core& core, const QueuedInstruction& entry, Cost& cost);
  bool Multiply(Core& core, const QueuedInstruction& entry, Cost& cost, AccUse& use);
  bool AccRows(const Core& core, const QueuedInstruction& entry, int64_t m, AccUse& use);
  bool ReadOffsets(Core& core, const QueuedInstruction& entry, int64_t k);
  bool GatherRows(Core& core, const QueuedInstruction& entry, int64_t k, int64_t& bank_clocks);
  void MultiplyRows(Core& core, const Instruction& in, int64_t m, std::byte* to, bool accumulate);
  bool Results(Core& core, const QueuedInstruction& entry, Cost& cost, AccUse& use);
  bool ReadEpilogue(Core& core, const QueuedInstruction& entry, int64_t n, Epilogue& epilogue);
  bool Vector(Core& core, const QueuedInstruction& entry, Cost& cost);
  bool FindStreams(Core& core, const QueuedInstruction& entry, uint32_t levels,
                   VectorStreams& streams);
  bool Random(Core& core, const QueuedInstruction& entry, Cost& cost);

  bool Fail(ErrorCode code, std::string sentence);
  // What a fault from here on is the fault of; the sequencer has a time of its own.
  void Blame(const Core& core, uint32_t pc, int64_t cycle = 0) {
    blamed_ = &core;
    blamed_pc_ = pc;
    blamed_cycle_ = cycle;
  }
  Counters& CountersOf(const Core& core) {
    return devices_[static_cast<std::size_t>(core.device)]->counters;
  }

  RunOptions options_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> heap_;
  uint64_t serial_ = 0, random_ = 0;
  std::vector<Completion> completions_;
  std::vector<uint32_t> free_completions_;
  const Core* blamed_ = nullptr;
  uint32_t blamed_pc_ = 0;
  int64_t blamed_cycle_ = 0;
  int64_t puts_ = 0;
  bool stopped_ = false;
  // Of the instruction that is starting: its core's scratchpad, if cycles are counted, and what it
  // takes of the banks.
  const Memory* counted_ = nullptr;
  BankWords words_;
  std::vector<Banks::Delay> delayed_;
  // scratch of the units
  std::vector<ByteRun> runs_, other_runs_;
  std::vector<float> a_, parts_[3];
  std::vector<int16_t> ai_;
  std::vector<int64_t> offsets_;
};

}  // namespace lazuli::npu
