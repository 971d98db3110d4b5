// The strict checks: which accesses to memory are ordered by semaphores, and which bytes have been
// written.
//
// Every unit (agent) has a vector clock. A signal carries its unit's clock to whoever takes the
// token; a wait joins them. Two accesses are ordered if the later one's clock knows the earlier
// one. What a unit does is ordered by its queue; nothing else orders units, whatever the cycles of
// this run say. Tokens of one semaphore are taken in the order they came.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "absl/types/span.h"

#include "backend/npu/sim/memory.h"

namespace lazuli::npu {

using Clock = std::shared_ptr<const std::vector<uint32_t>>;

// Of one semaphore, oldest first.
struct TokenQueue {
  struct Tokens {
    int count;
    Clock clock;
  };
  std::deque<Tokens> tokens;
};

class Strict {
 public:
  static constexpr uint32_t kHost = 1;  // an entry of what was there before the program

  explicit Strict(int agents)
      : clocks_(static_cast<std::size_t>(agents),
                std::vector<uint32_t>(static_cast<std::size_t>(agents), 0)) {}

  // Everything so far comes before what begins now; what has been written stays known.
  void NewRun();
  // Too many runs for the numbers of entries: Forget() every memory that stays, and make another.
  bool worn() const { return base_ > kSet / 2 || set_base_ > kSet / 2; }
  static void Forget(Memory& memory);

  // What the agent does from here on is one instruction at `pc`.
  void Begin(int agent, uint32_t pc);
  void Join(int agent, const Clock& clock);
  void JoinAgent(int agent, int other);
  Clock Snapshot(int agent) const {
    return std::make_shared<const std::vector<uint32_t>>(clocks_[static_cast<std::size_t>(agent)]);
  }

  void Put(TokenQueue& queue, int count, Clock clock) {
    queue.tokens.push_back({count, std::move(clock)});
  }
  void Take(int agent, TokenQueue& queue, int count);

  enum class Verdict : uint8_t { kFine, kRace, kUninitialised };
  struct Finding {
    Verdict verdict = Verdict::kFine;
    uint64_t offset = 0;   // of the byte
    int other_agent = -1;  // of a race: who else touched it
    uint32_t other_pc = 0;
    bool other_writes = false;
  };
  // The instruction of Begin() reads or writes these bytes; the first one that it may not.
  Finding Read(Memory& memory, uint64_t offset, uint64_t bytes);
  Finding Write(Memory& memory, uint64_t offset, uint64_t bytes);
  static void WrittenByHost(Memory& memory, uint64_t offset, uint64_t bytes);

 private:
  struct LoggedInstruction {
    int agent = -1;
    uint32_t clock = 0, pc = 0;
  };
  static constexpr uint32_t kSet = 1u << 31;  // a reader's number is one of a set of readers

  const LoggedInstruction& Of(uint32_t entry) const { return log_[entry - base_]; }
  // The readers of a set; none, if they were of earlier runs.
  absl::Span<const uint32_t> SetOf(uint32_t readers) const {
    const uint32_t set = readers & ~kSet;
    return set < set_base_ ? absl::Span<const uint32_t>() : reader_sets_[set - set_base_];
  }
  // acc: on the accumulators, where the matrix unit's ports order themselves.
  bool Ordered(uint32_t entry, bool acc) const;
  uint32_t WithReader(uint32_t readers);

  std::vector<std::vector<uint32_t>> clocks_;
  std::vector<LoggedInstruction>
      log_;  // entry n is log_[n - base_]; those before are of earlier runs
  uint32_t base_ = kHost + 1;
  std::vector<std::vector<uint32_t>> reader_sets_;
  uint32_t set_base_ = 0;                          // sets before are of earlier runs
  std::unordered_map<uint64_t, uint32_t> set_of_;  // (set or reader, new reader) to the set of both
  int agent_ = 0;
  uint32_t current_ = kHost;
};

}  // namespace lazuli::npu
