// Source sites: where in the user's program a node was recorded, as one interned 32-bit id.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

#include "ir/support/namespaces.h"

namespace lazuli::ir {

using SiteId = uint32_t;
inline constexpr SiteId kNoSite = 0;

struct Site {
  std::string file;
  std::string function;
  uint32_t line = 0;
  std::string ToString() const;  // "train.cc:41": the file's base name; "" for no site
};

// Interns a site whose strings live as long as the process (std::source_location's do). A few
// nanoseconds when this thread has seen the site: file and function are compared by address first.
SiteId InternSite(const char* file, const char* function, uint32_t line);
// As above for strings that may go away (Python).
SiteId InternSiteCopy(std::string_view file, std::string_view function, uint32_t line);

// " (train.cc:41)", which ends a message; nothing for no site.
std::string InParentheses(SiteId id);
// The error as one of this site, unless it has a place already (ir/support/error_place.h).
absl::Status AtSite(const absl::Status& status, SiteId id);

// Never fails: an unknown id gives an empty site. The reference stays valid.
const Site& GetSite(SiteId id);

}  // namespace lazuli::ir
