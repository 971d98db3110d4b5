#include "lazy/execution/program.h"

#include <algorithm>
#include <utility>

#include "ir/support/metrics.h"

namespace lazuli::lazy {

int64_t Program::bytes() const {
  return executable->stats().code_bytes +
         static_cast<int64_t>(key.size() * sizeof(uint32_t) + hlo.size());
}

ProgramPtr ProgramCache::Find(const std::vector<uint32_t>& key, uint64_t hash) {
  std::lock_guard lock(mu_);
  return FindLocked(key, hash);
}

ProgramPtr ProgramCache::FindLocked(const std::vector<uint32_t>& key, uint64_t hash) {
  auto it = by_hash_.find(hash);
  if (it == by_hash_.end()) return nullptr;
  for (Entries::iterator entry : it->second) {
    if ((*entry)->key != key) continue;
    entries_.splice(entries_.begin(), entries_, entry);
    return *entry;
  }
  return nullptr;
}

ProgramPtr ProgramCache::Insert(ProgramPtr program) {
  std::lock_guard lock(mu_);
  if (ProgramPtr first = FindLocked(program->key, program->hash)) return first;
  entries_.push_front(program);
  by_hash_[program->hash].push_back(entries_.begin());
  bytes_ += program->bytes();
  Evict();
  return program;
}

void ProgramCache::Evict() {
  while (bytes_ > byte_limit_ && entries_.size() > 1) {
    const auto last = std::prev(entries_.end());
    auto& bucket = by_hash_[(*last)->hash];
    bucket.erase(std::find(bucket.begin(), bucket.end(), last));
    if (bucket.empty()) by_hash_.erase((*last)->hash);
    bytes_ -= (*last)->bytes();
    entries_.erase(last);
    Add(Counter::kCacheEvictions);
  }
}

void ProgramCache::Clear() {
  std::lock_guard lock(mu_);
  entries_.clear();
  by_hash_.clear();
  bytes_ = 0;
}

int64_t ProgramCache::size() const {
  std::lock_guard lock(mu_);
  return static_cast<int64_t>(entries_.size());
}

int64_t ProgramCache::bytes() const {
  std::lock_guard lock(mu_);
  return bytes_;
}

}  // namespace lazuli::lazy
