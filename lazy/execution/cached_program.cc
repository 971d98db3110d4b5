#include "lazy/execution/cached_program.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "ir/support/metrics.h"

namespace lazuli::lazy {
namespace {

constexpr std::size_t kMaxEvicted = 1 << 16;  // hashes that are remembered

}  // namespace

CachedProgramPtr ProgramCache::Find(const std::vector<uint32_t>& key, uint64_t hash) {
  std::lock_guard lock(mu_);
  return FindLocked(key, hash);
}

CachedProgramPtr ProgramCache::FindLocked(const std::vector<uint32_t>& key, uint64_t hash) {
  auto it = by_hash_.find(hash);
  if (it == by_hash_.end()) return nullptr;
  for (Entries::iterator entry : it->second) {
    if ((*entry)->key != key) continue;
    entries_.splice(entries_.begin(), entries_, entry);
    return *entry;
  }
  return nullptr;
}

CachedProgramPtr ProgramCache::Insert(CachedProgramPtr program) {
  Entries evicted;  // released after the lock: a program may hold objects of users
  std::lock_guard lock(mu_);
  if (CachedProgramPtr first = FindLocked(program->key, program->hash)) return first;
  entries_.push_front(program);
  by_hash_[program->hash].push_back(entries_.begin());
  bytes_ += program->bytes;
  evicted = Evict();
  return program;
}

ProgramCache::Entries ProgramCache::Evict() {
  Entries evicted;
  while (entries_.size() > 1 &&
         (bytes_ > byte_limit_ || static_cast<int64_t>(entries_.size()) > size_limit_)) {
    const auto last = std::prev(entries_.end());
    auto& bucket = by_hash_[(*last)->hash];
    bucket.erase(std::find(bucket.begin(), bucket.end(), last));
    if (bucket.empty()) by_hash_.erase((*last)->hash);
    bytes_ -= (*last)->bytes;
    if (evicted_.size() < kMaxEvicted) evicted_.insert((*last)->hash);
    evicted.splice(evicted.end(), entries_, last);
    Add(Counter::kCacheEvictions);
  }
  return evicted;
}

// Of the programs that the same call ran and that have at least a quarter in common, since a helper's
// line runs any graph; if there are none, of those that have at least half. Of equally near ones the
// one used last. Programs that were used long ago are not compared, or a miss would cost more with each
// program.
CachedProgramPtr ProgramCache::Nearest(const CachedProgram& program) const {
  constexpr int kCompared = 64;
  std::lock_guard lock(mu_);
  int compared = 0;
  CachedProgramPtr nearest;
  bool nearest_here = false;
  int64_t least = std::numeric_limits<int64_t>::max();
  for (const CachedProgramPtr& entry : entries_) {
    const bool here = entry->site == program.site && program.site != ir::kNoSite;
    if (nearest_here && !here) continue;
    if (++compared > kCompared) break;
    const int64_t distance =
        2 * entry->outline.Distance(program.outline) + (entry->options == program.options ? 0 : 1);
    const auto nodes = entry->outline.nodes().size() + program.outline.nodes().size();
    if (distance > static_cast<int64_t>((here ? 3 : 2) * nodes)) continue;
    if (here == nearest_here && distance >= least) continue;
    nearest = entry;
    nearest_here = here;
    least = distance;
  }
  return nearest;
}

// That the same call ran last.
CachedProgramPtr ProgramCache::LastOf(const CachedProgram& program) const {
  std::lock_guard lock(mu_);
  const auto last =
      std::find_if(entries_.begin(), entries_.end(), [&](const CachedProgramPtr& entry) {
        return entry->site == program.site && entry->options == program.options;
      });
  return last == entries_.end() || program.site == ir::kNoSite ? nullptr : *last;
}

Recompile ProgramCache::WhyMissing(const CachedProgram& program) const {
  Recompile why;
  {
    std::lock_guard lock(mu_);
    if (evicted_.contains(program.hash)) {
      why.cause = RecompileCause::kEvicted;
      why.what = "dropped from the cache";
      why.advice = static_cast<int64_t>(entries_.size()) >= size_limit_
                       ? Str("there are more programs than XLA_COMPILATION_CACHE_SIZE (",
                             size_limit_, "), raise it")
                       : Str("the programs are larger than LAZULI_COMPILATION_CACHE_BYTES (",
                             byte_limit_, "), raise it");
    }
  }
  const CachedProgramPtr nearest =
      why.cause == RecompileCause::kEvicted ? nullptr : Nearest(program);
  if (nearest != nullptr) {
    if (CompareAttrs(nearest->options, program.options, why)) {
      why.cause = RecompileCause::kOptions;
      why.what = Str("option ", why.what);
      why.advice = "programs are compiled for one set of options; set them before the first step";
    } else {
      why = Compare(nearest->outline, program.outline);
    }
    why.nearest = nearest->name();
    // A loop's first step is far from its second, which another loop at the line may be nearer to.
    if (const CachedProgramPtr last = LastOf(program); last != nullptr && last != nearest) {
      Recompile state = Compare(last->outline, program.outline);
      if (state.cause == RecompileCause::kLeaf) {
        why = std::move(state);
        why.nearest = last->name();
      }
    }
  } else if (why.cause == RecompileCause::kFirst) {
    why.what = "the first program of its kind";
  }
  if (why.site == ir::kNoSite) why.site = program.site;
  why.program = program.name();
  return why;
}

void ProgramCache::Clear() {
  Entries cleared;  // released after the lock, as in Insert
  std::lock_guard lock(mu_);
  cleared.swap(entries_);
  by_hash_.clear();
  evicted_.clear();
  bytes_ = 0;
}

std::vector<CachedProgramPtr> ProgramCache::Programs() const {
  std::lock_guard lock(mu_);
  return {entries_.begin(), entries_.end()};
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
