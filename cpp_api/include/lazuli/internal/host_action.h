// What an optimiser does on the host beside its tensors: a replayed call of a compiled function, which
// runs nothing of the function, has it done again.
#pragma once

#include <memory>

#include "lazuli/export.h"

namespace lazuli::internal {

class LAZULI_API HostAction {
 public:
  virtual ~HostAction();
  // Calls the foreach_ functions of the next time, whose numbers are taken; nothing is recorded, and
  // nothing else changes.
  virtual void TakeNumbers() = 0;
  // Afterwards: counts.
  virtual void Commit() = 0;
  // What acts. Two recordings with the same one do the same.
  virtual const void* actor() const = 0;
};

// While one lives, what this thread records belongs to the action, if a compiled function is being
// recorded: numbers that foreach_ functions take are the action's.
class LAZULI_API HostActionScope {
 public:
  // Whether a compiled function is being recorded, so that an action is needed.
  static bool IsWatched();
  // Null: nothing.
  explicit HostActionScope(std::shared_ptr<HostAction> action);
  ~HostActionScope();
  HostActionScope(const HostActionScope&) = delete;
  HostActionScope& operator=(const HostActionScope&) = delete;

 private:
  bool is_open_ = false;
};

// If a compiled function is being recorded, it is not replayed, since it does this on the host ("steps a
// schedule"): it is called each time.
LAZULI_API void RefuseReplay(const char* does);

}  // namespace lazuli::internal
