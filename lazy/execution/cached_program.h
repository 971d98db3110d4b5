// Programs of synced graphs with what their runs need, and the cache that finds them.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

#include "backend/client/client.h"
#include "ir/support/fork.h"
#include "lazy/execution/dependence.h"
#include "lazy/execution/memory_plan.h"
#include "lazy/execution/recompile.h"
#include "lazy/program/launcher.h"
#include "lowering/emit/emit.h"

namespace lazuli::lazy {

// A program of a sync: what its graph decides, which its trace and each of its runs go by.
struct CachedProgram {
  CachedProgram(ProgramPtr program, backend::Device device, backend::CompileOptions options)
      : launcher(std::move(program), device, std::move(options)) {}
  const Program& program() const { return launcher.program(); }
  const std::string& name() const { return program().name(); }  // "SyncTensorsGraph.7"
  const std::vector<ProgramCheck>& checks() const { return program().checks(); }
  std::string hlo() const { return program().module().ToString(); }

  Launcher launcher;
  std::vector<uint32_t> key;  // canonical form: what decides equality
  uint64_t hash = 0;
  std::vector<uint32_t> check_nodes;  // by check: the position of its node in the trace, ascending
  // By check: the integers that its op was given, as leaves (j) or results (-1 - i) of the program.
  std::vector<std::vector<int32_t>> checked_integers;
  std::vector<lowering::EmittedNaN> nans;  // the flags behind the checks
  Dependence dependence;                   // of outputs on leaves and checks
  // By data leaf: the output that may take its memory, or -1; and by output: the leaf. Where a check
  // fails, such an output has the elements of the leaf (lowering::GuardUpdates).
  std::vector<int32_t> updated_by, updates;
  std::vector<uint8_t>
      after_guard;  // by output: whether it is computed from what then is not written
  MemoryPlan memory;
  SiteId site = ir::kNoSite;  // of the call that synced it first
  int64_t bytes = 0;          // that the cache counts for it
  std::string options;        // how it was compiled: ", platform=cpu, num_threads=2, ..."
  GraphOutline outline;
  Recompile recompile;  // why it was not there
  // Of its runs, which write them from the device's thread.
  mutable std::atomic<int64_t> runs{0};
  mutable std::unique_ptr<std::atomic<Donation>[]> donations;  // of the last one, by data leaf
};
using CachedProgramPtr = std::shared_ptr<const CachedProgram>;

// Least-recently-used programs within a number of bytes (LAZULI_COMPILATION_CACHE_BYTES) and of
// programs (XLA_COMPILATION_CACHE_SIZE). A hash
// finds, equality decides. Thread-safe. The newest program stays even if it alone is over the
// limit.
class ProgramCache {
 public:
  explicit ProgramCache(int64_t byte_limit,
                        int64_t size_limit = std::numeric_limits<int64_t>::max())
      : byte_limit_(byte_limit), size_limit_(size_limit) {}
  CachedProgramPtr Find(const std::vector<uint32_t>& key, uint64_t hash);
  // Adds, unless an equal one came first; returns the one that is in the cache.
  CachedProgramPtr Insert(CachedProgramPtr program);
  // What keeps the programs that are there from serving for this one, which is none of them.
  Recompile WhyMissing(const CachedProgram& program) const;
  void Clear();
  std::vector<CachedProgramPtr> Programs() const;  // most recently used first
  int64_t size() const;
  int64_t bytes() const;

 private:
  using Entries = std::list<CachedProgramPtr>;  // most recently used first
  CachedProgramPtr FindLocked(const std::vector<uint32_t>& key, uint64_t hash);
  CachedProgramPtr Nearest(const CachedProgram& program) const;
  CachedProgramPtr LastOf(const CachedProgram& program) const;
  Entries Evict();

  const int64_t byte_limit_, size_limit_;
  mutable ir::ForkMutex mu_;
  Entries entries_;
  absl::flat_hash_map<uint64_t, std::vector<Entries::iterator>>
      by_hash_;  // several: hashes may collide
  absl::flat_hash_set<uint64_t> evicted_;
  int64_t bytes_ = 0;
};

}  // namespace lazuli::lazy
