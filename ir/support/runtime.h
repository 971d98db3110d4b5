// Runtime: the one object that owns what lives longer than a program and is no thread's - clients,
// the cache of programs, queues of devices, random state, observers, names that users registered.
//
// A part of it is a class of the folder that has the job, made when it is first asked for:
//
//   class Platforms { ... };                              // backend/client/registry.cc
//   Platforms& platforms = Runtime::Get().Of<Platforms>();
//
// Of() costs two loads, so that recording and cached syncs may use it. Parts are thread-safe by
// themselves, and what Of() has returned is never destroyed: threads of the library and static
// objects of users may need it until the process ends. What is a global all the same is listed in
// docs/design.md.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

#include "ir/support/namespaces.h"

namespace lazuli::ir {

class Runtime {
 public:
  Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;

  // The process's, or that of the innermost Scope.
  static Runtime& Get() {
    Runtime* const current = current_.load(std::memory_order_acquire);
    return current != nullptr ? *current : Default();
  }

  template <class Part>
  Part& Of() {
    static const std::size_t slot = NewSlot();
    void* part = parts_[slot].load(std::memory_order_acquire);
    if (part == nullptr) part = Make<Part>(slot);
    return *static_cast<Part*>(part);
  }

  // Makes a runtime of its own the current one of the process: for a test that wants to start from
  // nothing, while no other thread uses the library. Tensors, devices and buffers that were made
  // inside must be gone before it ends; the runtime itself stays, as threads may still look at it.
  class Scope {
   public:
    Scope() : previous_(current_.exchange(std::make_unique<Runtime>().release())) {}
    ~Scope() {
      Runtime* const ended = current_.exchange(previous_);
      ended->ended_before_ = ended_.exchange(ended);
    }
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    Runtime* const previous_;
  };

 private:
  static constexpr std::size_t kMaxParts = 32;

  static Runtime& Default();
  static std::size_t NewSlot();
  // Of threads that make a part at the same time the first one's is kept and the others' end here.
  template <class Part>
  void* Make(std::size_t slot) {
    auto made = std::make_unique<Part>();
    void* first = nullptr;
    return parts_[slot].compare_exchange_strong(first, made.get()) ? made.release() : first;
  }

  static std::atomic<Runtime*> current_;
  static std::atomic<Runtime*> ended_;  // the last one of those whose scope is over
  Runtime* ended_before_ = nullptr;
  std::array<std::atomic<void*>, kMaxParts> parts_{};
};

}  // namespace lazuli::ir
