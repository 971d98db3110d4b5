// The source line that nodes recorded by this thread get.
//
// The facade opens a scope at every public call with the caller's line. The outermost scope wins:
// inside a layer, an optimiser or a composite, every node gets the line of the user's call.
// Backward overrides it, because gradient nodes inherit the line of their forward op.
#pragma once

#include "ir/graph/site.h"
#include "ir/support/thread_local.h"

namespace lazuli::lazy {

namespace internal {
inline LAZULI_FAST_THREAD_LOCAL SiteId current_site = kNoSite;
}

inline SiteId CurrentSite() { return internal::current_site; }

class SiteScope {
 public:
  explicit SiteScope(SiteId site) : outermost_(internal::current_site == kNoSite) {
    if (outermost_) internal::current_site = site;
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

}  // namespace lazuli::lazy
