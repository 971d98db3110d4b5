#include "ir/support/runtime.h"

#include "ir/support/check.h"

namespace lazuli::ir {

constinit std::atomic<Runtime*> Runtime::current_{nullptr};
constinit std::atomic<Runtime*> Runtime::ended_{nullptr};

Runtime& Runtime::Default() {
  static Runtime* const runtime = [] {
    auto* made = std::make_unique<Runtime>().release();
    Runtime* none = nullptr;
    current_.compare_exchange_strong(none, made);
    return made;
  }();
  return *runtime;
}

std::size_t Runtime::NewSlot() {
  static std::atomic<std::size_t> slots{0};
  const std::size_t slot = slots.fetch_add(1);
  LAZULI_CHECK(slot < kMaxParts, "more parts of the runtime than it has room for");
  return slot;
}

void* Runtime::Make(std::size_t slot, void* (*make)()) {
  void* const part = make();
  void* first = nullptr;
  // Of two threads that make it at once the first one wins; the other's is left, unused.
  return parts_[slot].compare_exchange_strong(first, part) ? part : first;
}

}  // namespace lazuli::ir
