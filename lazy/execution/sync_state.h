// What a thread keeps from sync to sync: the trace, the key and lists of storages, so that a steady step
// does not allocate for them, and its last program.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/graph/key.h"
#include "ir/graph/post_order.h"
#include "lazy/execution/cached_program.h"
#include "lazy/execution/recompile.h"
#include "lazy/tensor/context.h"

namespace lazuli::lazy {

struct Run;
struct SyncState;

// Sees each run that a sync makes, under the context's lock, before it is queued.
class RunListener {
 public:
  virtual void Runs(const Context& context, const SyncState& state, const Run& run) = 0;

 protected:
  ~RunListener() = default;
};

struct SyncState {
  CachedProgramPtr last_program;
  std::optional<Recompile> last_recompile;
  Trace trace;
  KeyWriter key;
  std::vector<backend::Device> devices;
  std::vector<Storage*> pending, here;      // of a device
  std::vector<const Storage*> hidden;       // bases that are not computed beside their views
  std::vector<Value> forgotten;             // of stale views; released after the lock
  std::vector<Storage*> roots;              // of the device being synced
  std::vector<const DataHandle*> replaced;  // by root: what it is written over
  // By root: if it is written over a pending value, the number of the root with that value, else -1.
  std::vector<int32_t> before;
  // By check that was recorded, in their order: the position of its node in the trace.
  static constexpr uint32_t kNowhere = UINT32_MAX;
  std::vector<uint32_t> checked_at;
  RunListener* listener = nullptr;
};

}  // namespace lazuli::lazy
