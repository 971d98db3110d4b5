// Source sites: where in the user's program a node was recorded, as one interned 32-bit id.
//
// A site is a line; besides, it may have the scope of modules and functions around the call, the
// calls that led there (ir/graph/stack.h) and a note of the user's. Sites that differ in any of
// these are others, so that a node keeps all of it as one number.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "ir/support/namespaces.h"

namespace lazuli::ir {

using SiteId = uint32_t;
inline constexpr SiteId kNoSite = 0;
using ScopeId = uint32_t;
inline constexpr ScopeId kNoScope = 0;
using StackId = uint32_t;
inline constexpr StackId kNoStack = 0;

struct Site {
  std::string file{};
  std::string function{};
  uint32_t line = 0;
  ScopeId scope = kNoScope;
  StackId stack = kNoStack;      // of the frames that called it
  std::string note{};            // lazuli::debug::set_user_metadata
  std::string ToString() const;  // "train.cc:41": the file's base name; "" for no site
};

// Interns a site whose strings live as long as the process (std::source_location's do). A few
// nanoseconds when this thread has seen the site: file and function are compared by address first.
SiteId InternSite(const char* file, const char* function, uint32_t line);
// As above for strings that may go away (Python).
SiteId InternSiteCopy(std::string_view file, std::string_view function, uint32_t line);

// A part of a scope, "conv1" in "net", and the text of a scope, "net/conv1". A few nanoseconds when
// this thread has been there.
ScopeId InternScope(ScopeId outer, std::string_view name);
const std::string& ScopeText(ScopeId scope);
// The scope `inner` where `outer` is what its text begins with: "net/conv1" in `into` "main" without
// `outer` "net" is "main/conv1".
ScopeId Rebased(ScopeId inner, ScopeId outer, ScopeId into);

// The site with another scope, stack or note. As quick as interning.
SiteId InScope(SiteId site, ScopeId scope);
SiteId WithStack(SiteId site, StackId stack);
SiteId WithNote(SiteId site, std::string_view note);

// " (train.cc:41)", which ends a message; nothing for no site.
std::string InParentheses(SiteId id);
// The error as one of this site, unless it has a place already (ir/support/error_place.h).
absl::Status AtSite(const absl::Status& status, SiteId id);

// Never fails: an unknown id gives an empty site. The reference stays valid.
const Site& GetSite(SiteId id);

}  // namespace lazuli::ir
