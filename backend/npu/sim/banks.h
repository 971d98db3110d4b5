// Who takes which banks of a core's scratchpad, and when: units that need the same bank in the same
// clocks wait for each other.
//
// A bank serves one word of spm.bank_bytes a clock. The words that an instruction takes of a bank
// count as spread evenly over its time. The matrix unit comes first, then the vector unit, the
// transposer, copies inside the scratchpad, and last what comes from or goes to the DRAM; of
// equals, who took its place first. Each gets of a bank what those before it leave, and lasts until
// it has had all its words of every bank. So one that began can still be delayed, by one before it
// that begins later.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "backend/npu/sim/config.h"
#include "backend/npu/sim/walk.h"

namespace lazuli::npu {

// Words of each bank that an instruction reads and writes.
class BankWords {
 public:
  BankWords() = default;
  explicit BankWords(const Config& config)
      : bank_bytes_(config.spm.bank_bytes), words_(static_cast<std::size_t>(config.spm.banks), 0) {}

  void Clear();
  bool empty() const { return empty_; }
  // Bytes one behind the other: each word once.
  void Add(uint64_t offset, int64_t bytes);
  // The elements of a walk in its order. Neighbours in one word are one access; a level of stride 0
  // inside all others is none, outside of others it repeats them.
  void Add(uint64_t offset, const Walk& walk);
  void Add(const std::vector<std::pair<int32_t, int32_t>>& words) {
    for (const auto& [bank, count] : words) words_[static_cast<std::size_t>(bank)] += count;
    empty_ = empty_ && words.empty();
  }
  const std::vector<int64_t>& words() const { return words_; }

 private:
  void AddWords(int64_t first, int64_t last, int64_t times);

  int64_t bank_bytes_ = 1;
  std::vector<int64_t> words_;
  bool empty_ = true;
};

enum class BankRank : uint8_t { kMatrix, kVector, kTransposer, kCopy, kTransfer };

class Banks {
 public:
  struct Delay {
    int track;
    int64_t end;
  };

  // An instruction of `track` takes its words from `start` on, and would last `clocks`: until when
  // it does last. Those of lower rank that are under way and last longer now are in `delayed`,
  // which is cleared before. What ended before `since` is forgotten: nobody starts before that any
  // more.
  int64_t Take(int track, BankRank rank, int64_t start, int64_t clocks, const BankWords& words,
               int64_t now, int64_t since, std::vector<Delay>& delayed);

 private:
  struct BankUse {
    int track;
    BankRank rank;
    int64_t start, clocks, end;
    std::vector<int64_t> words;
  };
  int64_t EndOf(std::size_t index) const;
  int64_t BankEnd(std::size_t index, std::size_t bank) const;

  std::vector<BankUse> uses_;  // by rank, then in the order they came
};

}  // namespace lazuli::npu
