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
  static constexpr uint32_t kHost = 1;  // the log's entry of what was there before the program

  explicit Strict(int agents)
      : clocks_(static_cast<std::size_t>(agents),
                std::vector<uint32_t>(static_cast<std::size_t>(agents), 0)) {
    log_.resize(2);
  }

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
  struct Entry {
    int agent = -1;  // -1: the host, before everything
    uint32_t clock = 0, pc = 0;
  };
  static constexpr uint32_t kSet = 1u << 31;  // a reader's number is one of a set of readers

  // acc: on the accumulators, where the matrix unit's ports order themselves.
  bool Ordered(uint32_t entry, bool acc) const;
  uint32_t WithReader(uint32_t readers);

  std::vector<std::vector<uint32_t>> clocks_;
  std::vector<Entry> log_;
  std::vector<std::vector<uint32_t>> reader_sets_;
  std::unordered_map<uint64_t, uint32_t> set_of_;  // (set or reader, new reader) to the set of both
  int agent_ = 0;
  uint32_t current_ = kHost;
};

}  // namespace lazuli::npu
