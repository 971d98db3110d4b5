#include "ir/support/blocking.h"

#include <atomic>

namespace lazuli::ir {
namespace {

std::atomic<void* (*)()> begin_wait{nullptr};
std::atomic<void (*)(void*)> end_wait{nullptr};
thread_local int runs = 0;

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

RunScope::RunScope() { ++runs; }
RunScope::~RunScope() { --runs; }
bool RunScope::IsActive() { return runs > 0; }

}  // namespace lazuli::ir
