#include "backend/npu/sim/banks.h"

#include <algorithm>
#include <bit>

namespace lazuli::npu {
namespace {

// Rates are words a clock in this unit, so that the cycles are the same on every host.
constexpr int kRateBits = 16;

}  // namespace

void BankWords::Clear() {
  std::fill(words_.begin(), words_.end(), 0);
  empty_ = true;
}

void BankWords::AddWords(int64_t first, int64_t last, int64_t times) {
  const auto banks = static_cast<int64_t>(words_.size());
  const int64_t count = last - first + 1, all = count / banks;
  if (all != 0) {
    for (int64_t& words : words_) words += all * times;
  }
  for (int64_t word = first; word < first + count % banks; ++word)
    words_[static_cast<std::size_t>(word & (banks - 1))] += times;
  empty_ = false;
}

void BankWords::Add(uint64_t offset, int64_t bytes) {
  if (bytes <= 0) return;
  const int shift = std::countr_zero(static_cast<uint64_t>(bank_bytes_));
  const auto at = static_cast<int64_t>(offset);
  AddWords(at >> shift, (at + bytes - 1) >> shift, 1);
}

void BankWords::Add(uint64_t offset, const Walk& walk) {
  int rank = 0;
  int64_t dim[5], stride[5], times = 1, repeats = 1;
  for (int d = 0; d < walk.rank; ++d) {
    if (walk.dim[d] == 1) continue;
    if (walk.stride[d] == 0) {
      repeats *= walk.dim[d];
      continue;
    }
    times *= repeats;
    repeats = 1;
    dim[rank] = walk.dim[d];
    stride[rank++] = walk.stride[d];
  }
  int64_t bytes = walk.elem;
  while (rank > 0 && stride[rank - 1] == bytes) bytes *= dim[--rank];
  const int shift = std::countr_zero(static_cast<uint64_t>(bank_bytes_));
  int64_t last_word = -1;
  Steps steps(dim, stride, rank);
  do {
    const int64_t at = static_cast<int64_t>(offset) + steps.offset();
    const int64_t first = at >> shift, last = (at + bytes - 1) >> shift;
    if (last > first || first != last_word)
      AddWords(first == last_word ? first + 1 : first, last, times);
    last_word = last;
  } while (steps.Next());
}

// When the use has had all its words of the bank: in each stretch of time it gets what those before
// it leave.
int64_t Banks::BankEnd(std::size_t index, std::size_t bank) const {
  const BankUse& use = uses_[index];
  int64_t missing = use.words[bank] << kRateBits;
  for (int64_t at = use.start;;) {
    int64_t left = int64_t{1} << kRateBits, next = INT64_MAX;
    for (std::size_t i = 0; i < index; ++i) {
      const BankUse& other = uses_[i];
      if (other.end <= at || other.words[bank] == 0) continue;
      if (other.start > at) {
        next = std::min(next, other.start);
        continue;
      }
      next = std::min(next, other.end);
      left -= (other.words[bank] << kRateBits) / (other.end - other.start);
    }
    if (left > 0) {
      const int64_t clocks = (missing + left - 1) / left;
      if (next == INT64_MAX || clocks <= next - at) return at + clocks;
      missing -= left * (next - at);
    }
    at = next;
  }
}

int64_t Banks::EndOf(std::size_t index) const {
  const BankUse& use = uses_[index];
  int64_t end = use.start + use.clocks;
  for (std::size_t bank = 0; bank < use.words.size(); ++bank) {
    if (use.words[bank] != 0) end = std::max(end, BankEnd(index, bank));
  }
  return end;
}

int64_t Banks::Take(int track, BankRank rank, int64_t start, int64_t clocks, const BankWords& words,
                    int64_t now, int64_t since, std::vector<Delay>& delayed) {
  delayed.clear();
  std::erase_if(uses_, [since](const BankUse& use) { return use.end <= since; });
  const auto place = std::find_if(uses_.begin(), uses_.end(),
                                  [rank](const BankUse& use) { return use.rank > rank; });
  auto index = static_cast<std::size_t>(place - uses_.begin());
  uses_.insert(place, {track, rank, start, clocks, start + clocks, words.words()});
  const int64_t end = uses_[index].end = EndOf(index);
  while (++index < uses_.size()) {
    BankUse& use = uses_[index];
    if (use.end <= now) continue;
    const int64_t later = EndOf(index);
    if (later <= use.end) continue;
    use.end = later;
    delayed.push_back({use.track, later});
  }
  return end;
}

}  // namespace lazuli::npu
