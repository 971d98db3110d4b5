#include "backend/cpu/codegen/compile_mutex.h"

#include <new>

#include "ir/support/fork.h"

namespace lazuli::cpu {
namespace {

class HeldByFork final : private ir::ForkParticipant {
 public:
  HeldByFork() { Join(); }
  std::shared_mutex& mutex() { return mutex_; }

 private:
  bool TryHold() override { return mutex_.try_lock(); }
  void Release() override { mutex_.unlock(); }
  void StartAnew(bool) override { new (&mutex_) std::shared_mutex; }

  std::shared_mutex mutex_;
};

}  // namespace

std::shared_mutex& CompileMutex() {
  static auto* const held = new HeldByFork;
  return held->mutex();
}

}  // namespace lazuli::cpu
