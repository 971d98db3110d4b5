#include "ir/support/blocking.h"

#include <atomic>
#include <utility>

#include "ir/support/thread_local.h"

namespace lazuli::ir {
namespace {

std::atomic<void* (*)()> begin_wait{nullptr};
std::atomic<void (*)(void*)> end_wait{nullptr};
LAZULI_FAST_THREAD_LOCAL bool in_run = false;

}  // namespace

void SetWaitHooks(WaitHooks hooks) {
  end_wait = hooks.end;
  begin_wait = hooks.begin;
}

WaitScope::WaitScope() {
  if (auto* const begin = begin_wait.load(); begin != nullptr) {
    end_ = end_wait;
    token_ = begin();
  }
}
WaitScope::~WaitScope() {
  if (end_ != nullptr) end_(token_);
}

RunScope::RunScope() : outer_(std::exchange(in_run, true)) {}
RunScope::~RunScope() { in_run = outer_; }
bool RunScope::IsActive() { return in_run; }

}  // namespace lazuli::ir
