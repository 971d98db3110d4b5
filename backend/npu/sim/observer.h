// What a run tells whoever watches it: slices of work per unit, tokens, counters.
//
// Traces, reports and the debugger are observers. Calls come from one thread, those of a track in
// the order of their starts; the sequencer runs ahead of the units.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "backend/npu/sim/isa.h"
#include "backend/npu/sim/memory.h"

namespace lazuli::npu {

// Where work is done: the sequencer, a unit with a queue (kSq + 1 + Queue), or one of the matrix
// unit's other two ports.
inline constexpr int kSequencerTrack = 0, kMxTrack = 1 + static_cast<int>(Queue::kMx),
                     kMxWeightsTrack = 13, kMxOutTrack = 14, kTracks = 15;
constexpr int TrackOf(Queue queue) {
  return queue == Queue::kSq ? kSequencerTrack : 1 + static_cast<int>(queue);
}
std::string_view TrackName(int track);

// Why a unit did not start earlier, once its instruction was there and it was free.
enum class Stall : uint8_t { kNone, kSemaphore, kPort, kQueueFull, kFence };

struct Slice {
  int device, core, track;
  uint32_t pc;
  const Instruction* instruction;
  int64_t ready, start, end, done;  // there and free; began; free again; results are there
  Stall stall;
  int64_t bytes;  // moved to or from memory outside the core
  // Of the sequencer: so many scalar instructions from pc on, none of which waits.
  int64_t scalars = 0;
};

// Bytes that a unit or the sequencer reads or writes.
struct Access {
  MemoryKind memory;
  int device, core;  // the core of a scratchpad or of accumulators, else 0
  uint64_t offset, bytes;
  bool write;
};

// What a device did.
struct Counters {
  int64_t cycles = 0, instructions = 0, slices = 0;
  int64_t macs_int = 0, macs_bf16 = 0, macs_f32 = 0;  // bf16: each pass of x1, x3 and x6, too
  int64_t acc_words = 0;                              // read or written
  int64_t spm_read_bytes = 0, spm_write_bytes = 0;
  int64_t bank_cycles = 0;  // that units took longer for banks of the scratchpad
  int64_t dram_read_bytes = 0, dram_write_bytes = 0;  // asked for
  int64_t dram_burst_bytes = 0;                       // moved: whole bursts
  int64_t alu_ops = 0, sfu_ops = 0, link_bytes = 0, host_bytes = 0;
  std::array<int64_t, kTracks> busy{};  // cycles, all cores together
  bool operator==(const Counters&) const = default;
  Counters& operator+=(const Counters& other);
  Counters& operator-=(const Counters& other);
};

class Observer {
 public:
  virtual ~Observer() = default;
  // Of the sequencer a slice is a run of scalar instructions, or one that puts an instruction into
  // a queue, signals or waits.
  virtual void OnSlice(const Slice&) {}
  // The last slice of a track ends later than it said: another unit takes banks of the scratchpad.
  virtual void OnDelay(int /*device*/, int /*core*/, int /*track*/, int64_t /*end*/,
                       int64_t /*done*/) {}
  // What the unit's instruction at `pc` added to the counters of its device, but for time. Over a run
  // these add up to them; of bursts of DRAM nobody knows whose they are.
  virtual void OnWork(int /*device*/, int /*core*/, uint32_t /*pc*/, const Counters& /*work*/) {}
  // A semaphore changed to `value`: tokens were signalled by, or taken for, what runs on `track` at
  // `pc`.
  virtual void OnSignal(int /*device*/, int /*core*/, int /*semaphore*/, int /*value*/,
                        int64_t /*cycle*/, int /*track*/, uint32_t /*pc*/) {}
  virtual void OnWait(int /*device*/, int /*core*/, int /*semaphore*/, int /*value*/,
                      int64_t /*cycle*/, int /*track*/, uint32_t /*pc*/) {}
  virtual void OnMark(int /*device*/, int /*core*/, int64_t /*number*/, int64_t /*cycle*/) {}
  // One call for each run of an operand.
  virtual void OnAccess(const Access&, int64_t /*cycle*/) {}
};

// Hands on what it sees, if anybody is behind it: for observers that look at some of it.
class ForwardingObserver : public Observer {
 public:
  void OnSlice(const Slice& slice) override {
    if (next_ != nullptr) next_->OnSlice(slice);
  }
  void OnDelay(int device, int core, int track, int64_t end, int64_t done) override {
    if (next_ != nullptr) next_->OnDelay(device, core, track, end, done);
  }
  void OnWork(int device, int core, uint32_t pc, const Counters& work) override {
    if (next_ != nullptr) next_->OnWork(device, core, pc, work);
  }
  void OnSignal(int device, int core, int semaphore, int value, int64_t cycle, int track,
                uint32_t pc) override {
    if (next_ != nullptr) next_->OnSignal(device, core, semaphore, value, cycle, track, pc);
  }
  void OnWait(int device, int core, int semaphore, int value, int64_t cycle, int track,
              uint32_t pc) override {
    if (next_ != nullptr) next_->OnWait(device, core, semaphore, value, cycle, track, pc);
  }
  void OnMark(int device, int core, int64_t number, int64_t cycle) override {
    if (next_ != nullptr) next_->OnMark(device, core, number, cycle);
  }
  void OnAccess(const Access& access, int64_t cycle) override {
    if (next_ != nullptr) next_->OnAccess(access, cycle);
  }

 protected:
  explicit ForwardingObserver(Observer* next) : next_(next) {}
  void set_next(Observer* next) { next_ = next; }

 private:
  Observer* next_;
};

}  // namespace lazuli::npu
