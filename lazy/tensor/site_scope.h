// The source line that nodes recorded by this thread get, and the scope of modules and functions.
//
// The facade opens a scope at every public call with the caller's line. The outermost scope wins:
// inside a layer, an optimiser or a composite, every node gets the line of the user's call.
// Backward overrides it, because gradient nodes inherit the line of their forward op.
#pragma once

#include "ir/graph/site.h"
#include "ir/graph/stack.h"
#include "ir/support/thread_local.h"

namespace lazuli::lazy {

namespace internal {
inline LAZULI_FAST_THREAD_LOCAL SiteId current_site = kNoSite;
inline LAZULI_FAST_THREAD_LOCAL ScopeId current_scope = ir::kNoScope;
// The path of the module whose scope is the innermost one.
inline LAZULI_FAST_THREAD_LOCAL ScopeId current_module = ir::kNoScope;
}  // namespace internal

inline SiteId CurrentSite() { return internal::current_site; }

// The line in the scope that this thread is in.
inline SiteId Here(SiteId site) {
  return internal::current_scope == ir::kNoScope || site == kNoSite
             ? site
             : ir::InScope(site, internal::current_scope);
}

class SiteScope {
 public:
  explicit SiteScope(SiteId site) : outermost_(internal::current_site == kNoSite) {
    if (outermost_) internal::current_site = Here(site);
  }
  ~SiteScope() {
    if (outermost_) internal::current_site = kNoSite;
  }
  SiteScope(const SiteScope&) = delete;
  SiteScope& operator=(const SiteScope&) = delete;

 private:
  bool outermost_;
};

class SiteOverride {
 public:
  explicit SiteOverride(SiteId site) : saved_(internal::current_site) {
    internal::current_site = site;
  }
  ~SiteOverride() { internal::current_site = saved_; }
  SiteOverride(const SiteOverride&) = delete;
  SiteOverride& operator=(const SiteOverride&) = delete;

 private:
  SiteId saved_;
};

// What entering a scope changes, for leaving it.
struct OuterScope {
  ScopeId scope, module;
  SiteId site;
};
// What is recorded from now on is of this scope, also at a line that has been given already.
inline OuterScope EnterScope(ScopeId scope, ScopeId module) {
  const OuterScope outer{internal::current_scope, internal::current_module, CurrentSite()};
  internal::current_scope = scope;
  internal::current_module = module;
  internal::current_site = Here(outer.site);
  return outer;
}
inline void LeaveScope(const OuterScope& outer) {
  internal::current_scope = outer.scope;
  internal::current_module = outer.module;
  internal::current_site = outer.site;
}
// A module by its path from the outermost one that it is registered in; inside of a module around,
// what remains of it.
inline OuterScope EnterModule(ScopeId path) {
  return EnterScope(ir::Rebased(path, internal::current_module, internal::current_scope), path);
}

}  // namespace lazuli::lazy
