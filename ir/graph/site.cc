#include "ir/graph/site.h"

#include <array>
#include <deque>
#include <mutex>

#include "absl/container/flat_hash_map.h"

#include "ir/support/error_place.h"
#include "ir/support/fork.h"
#include "ir/support/hash.h"
#include "ir/support/str.h"
#include "ir/support/thread_local.h"

namespace lazuli::ir {
namespace {

class SiteTable {
 public:
  static SiteTable& Get() {
    // Never destroyed: nodes of static tensors may outlive main.
    static auto* table = new SiteTable;
    return *table;
  }

  SiteId Intern(std::string_view file, std::string_view function, uint32_t line) {
    std::string key = Str(file, ":", line, ":", function);
    std::lock_guard lock(mu_);
    if (const auto it = ids_.find(key); it != ids_.end()) return it->second;
    const auto id = static_cast<SiteId>(sites_.size());
    sites_.push_back({std::string(file), std::string(function), line});
    ids_.emplace(std::move(key), id);
    return id;
  }

  const Site& Lookup(SiteId id) {
    std::lock_guard lock(mu_);
    return id < sites_.size() ? sites_[id] : sites_[kNoSite];
  }

 private:
  SiteTable() { sites_.emplace_back(); }
  ForkMutex mu_;
  std::deque<Site> sites_;  // references stay valid
  absl::flat_hash_map<std::string, SiteId> ids_;
};

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

}  // namespace

std::string Site::ToString() const {
  if (line == 0) return "";
  const std::size_t slash = file.rfind('/');
  return Str(slash == std::string::npos ? file : file.substr(slash + 1), ":", line);
}

std::string InParentheses(SiteId id) {
  const std::string site = GetSite(id).ToString();
  return site.empty() ? site : Str(" (", site, ")");
}

absl::Status AtSite(const absl::Status& status, SiteId id) {
  return AddPlace(status, "", GetSite(id).ToString());
}

SiteId InternSite(const char* file, const char* function, uint32_t line) {
  const uint64_t hash = (reinterpret_cast<uintptr_t>(file) >> 4) + line * 0x9e3779b97f4a7c15ull;
  const uint64_t home = hash ^ (hash >> 32);
  SiteCache& site_cache = PerThread<SiteCache>::Get();
  CachedSite* cached = &site_cache[home % kCachedSites];
  for (std::size_t i = 0; i < kProbes; ++i) {
    CachedSite& probed = site_cache[(home + i) % kCachedSites];
    if (probed.file == file && probed.line == line && probed.function == function) return probed.id;
    if (probed.file != nullptr) continue;
    cached = &probed;
    break;
  }
  *cached = {file, function, line, SiteTable::Get().Intern(file, function, line)};
  return cached->id;
}

SiteId InternSiteCopy(std::string_view file, std::string_view function, uint32_t line) {
  return SiteTable::Get().Intern(file, function, line);
}

const Site& GetSite(SiteId id) { return SiteTable::Get().Lookup(id); }

}  // namespace lazuli::ir
