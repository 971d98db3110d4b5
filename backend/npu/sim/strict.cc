#include "backend/npu/sim/strict.h"

#include <algorithm>

#include "backend/npu/sim/observer.h"

namespace lazuli::npu {
namespace {

bool IsMatrixPort(int agent) {
  return agent % kTracks == kMxTrack || agent % kTracks == kMxOutTrack;
}

}  // namespace

void Strict::Begin(int agent, uint32_t pc) {
  agent_ = agent;
  const uint32_t clock =
      ++clocks_[static_cast<std::size_t>(agent)][static_cast<std::size_t>(agent)];
  current_ = base_ + static_cast<uint32_t>(log_.size());
  log_.push_back({agent, clock, pc});
}

void Strict::NewRun() {
  base_ += static_cast<uint32_t>(log_.size());
  log_.clear();
  set_base_ += static_cast<uint32_t>(reader_sets_.size());
  reader_sets_.clear();
  set_of_.clear();
  for (auto& clock : clocks_) std::fill(clock.begin(), clock.end(), 0);
  current_ = kHost;
}

// Pages that nobody has touched are zeros, and stay untouched.
void Strict::Forget(Memory& memory) {
  Memory::Known* const known = memory.known();
  for (uint64_t i = 0; i < memory.size(); ++i) {
    if (known[i].writer == 0 && known[i].reader == 0) continue;
    known[i] = {known[i].writer == 0 ? 0 : kHost, 0};
  }
}

void Strict::Join(int agent, const Clock& clock) {
  if (clock == nullptr) return;
  auto& mine = clocks_[static_cast<std::size_t>(agent)];
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = std::max(mine[i], (*clock)[i]);
}

void Strict::JoinAgent(int agent, int other) {
  auto& mine = clocks_[static_cast<std::size_t>(agent)];
  const auto& theirs = clocks_[static_cast<std::size_t>(other)];
  for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = std::max(mine[i], theirs[i]);
}

void Strict::Take(int agent, TokenQueue& queue, int count) {
  while (count > 0 && !queue.tokens.empty()) {
    auto& front = queue.tokens.front();
    Join(agent, front.clock);
    const int taken = std::min(count, front.count);
    front.count -= taken;
    count -= taken;
    if (front.count == 0) queue.tokens.pop_front();
  }
}

bool Strict::Ordered(uint32_t entry, bool acc) const {
  if (entry < base_) return true;
  const LoggedInstruction& e = Of(entry);
  if (e.agent == agent_) return true;
  if (acc && e.agent / kTracks == agent_ / kTracks && IsMatrixPort(e.agent) && IsMatrixPort(agent_))
    return true;
  return clocks_[static_cast<std::size_t>(agent_)][static_cast<std::size_t>(e.agent)] >= e.clock;
}

// Those who have read and whom this instruction does not come after, and this instruction.
uint32_t Strict::WithReader(uint32_t readers) {
  if (readers == 0 || readers == current_) return current_;
  const uint64_t key = uint64_t{readers} << 32 | current_;
  if (const auto found = set_of_.find(key); found != set_of_.end()) return found->second;
  std::vector<uint32_t> set;
  auto keep = [&](uint32_t reader) {
    if (!Ordered(reader, false) && reader != current_) set.push_back(reader);
  };
  if ((readers & kSet) != 0) {
    for (uint32_t reader : SetOf(readers)) keep(reader);
  } else {
    keep(readers);
  }
  uint32_t result = current_;
  if (!set.empty()) {
    set.push_back(current_);
    result = kSet | (set_base_ + static_cast<uint32_t>(reader_sets_.size()));
    reader_sets_.push_back(std::move(set));
  }
  if (set_of_.size() > 1 << 16)
    set_of_.clear();  // only a memory of answers; entries of old instructions are of no more use
  set_of_.emplace(key, result);
  return result;
}

Strict::Finding Strict::Read(Memory& memory, uint64_t offset, uint64_t bytes) {
  const bool acc = memory.kind == MemoryKind::kAcc;
  Memory::Known* const known = memory.known();
  uint32_t last_writer = 0, last_reader = 0, next_reader = current_;
  bool seen = false;
  for (uint64_t i = offset; i < offset + bytes; ++i) {
    Memory::Known& k = known[i];
    if (!seen || k.writer != last_writer || k.reader != last_reader) {
      if (k.writer == 0) return {Verdict::kUninitialised, i};
      if (!Ordered(k.writer, acc))
        return {Verdict::kRace, i, Of(k.writer).agent, Of(k.writer).pc, true};
      last_writer = k.writer;
      last_reader = k.reader;
      next_reader = WithReader(k.reader);
      seen = true;
    }
    k.reader = next_reader;
  }
  return {};
}

Strict::Finding Strict::Write(Memory& memory, uint64_t offset, uint64_t bytes) {
  const bool acc = memory.kind == MemoryKind::kAcc;
  Memory::Known* const known = memory.known();
  uint32_t last_writer = 0, last_reader = 0;
  auto race = [&](uint64_t at, uint32_t entry, bool writes) {
    return Finding{Verdict::kRace, at, Of(entry).agent, Of(entry).pc, writes};
  };
  for (uint64_t i = offset; i < offset + bytes; ++i) {
    Memory::Known& k = known[i];
    if (k.writer != last_writer || k.reader != last_reader) {
      if (k.writer != 0 && !Ordered(k.writer, acc)) return race(i, k.writer, true);
      if ((k.reader & kSet) != 0) {
        for (uint32_t reader : SetOf(k.reader)) {
          if (!Ordered(reader, acc)) return race(i, reader, false);
        }
      } else if (k.reader != 0 && !Ordered(k.reader, acc)) {
        return race(i, k.reader, false);
      }
      last_writer = k.writer;
      last_reader = k.reader;
    }
    k = {current_, 0};
  }
  return {};
}

void Strict::WrittenByHost(Memory& memory, uint64_t offset, uint64_t bytes) {
  Memory::Known* const known = memory.known();
  for (uint64_t i = offset; i < offset + bytes; ++i) known[i] = {kHost, 0};
}

}  // namespace lazuli::npu
