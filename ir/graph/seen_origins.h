// Sites, scopes and stacks that a thread has seen lately: what spares interning a lock.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "ir/graph/site.h"
#include "ir/graph/stack.h"
#include "ir/support/thread_local.h"

namespace lazuli::ir {

// What a thread made of two or three numbers last.
struct Derived {
  uint64_t key = 0;
  uint32_t extra = 0, result = 0;
};
// The scopes that a thread entered last, by the address and bytes of the name.
struct EnteredScope {
  ScopeId outer = kNoScope, id = kNoScope;
  std::string name;
};
using EnteredScopes = std::array<EnteredScope, 64>;

// By the address of the file name and the line: a compare or two for a site this thread uses in a
// loop, wherever the others lie.
struct CachedSite {
  const char* file = nullptr;
  const char* function = nullptr;
  uint32_t line = 0;
  SiteId id = kNoSite;
};
constexpr std::size_t kCachedSites = 512, kProbes = 4;
using SiteCache = std::array<CachedSite, kCachedSites>;

// Stacks that a thread had lately, by hash; the frames decide.
struct CachedStack {
  std::array<FrameWord, kMostFrames> frames;
  std::size_t count = 0;
  StackId id = kNoStack;
};
using StackCache = std::array<CachedStack, 128>;

// Stacks that a thread unwound lately, by the frame that asked: where the stack holds the addresses that
// functions return to. As long as it does, frame by frame from the innermost on, the stack is the same: the
// place that a function returns to decides where its caller's frame lies.
struct UnwoundStack {
  const void* frame = nullptr;
  std::size_t count = 0;
  std::array<const uintptr_t*, kMostFrames> slots;
  std::array<uintptr_t, kMostFrames> addresses;
  StackId id = kNoStack;
};
using UnwoundStacks = std::array<UnwoundStack, 32>;

// What a thread has seen lately: one variable, since those of threads are scarce (thread_local.h).
struct SeenOrigins {
  static constexpr std::size_t kDerived = 256;
  static SeenOrigins& Get() { return PerThread<SeenOrigins>::Get(); }

  SiteCache sites;
  std::array<std::array<Derived, kDerived>, 3> derived;
  EnteredScopes scopes;
  std::unique_ptr<StackCache> stacks;  // of threads that keep stacks
  std::unique_ptr<UnwoundStacks> unwound;
};

}  // namespace lazuli::ir
