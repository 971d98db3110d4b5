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

}  // namespace lazuli::ir
