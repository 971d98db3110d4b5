#include "ir/graph/site.h"

#include <array>
#include <deque>
#include <mutex>
#include <tuple>
#include <utility>

#include "absl/container/flat_hash_map.h"

#include "ir/graph/seen_origins.h"
#include "ir/support/error_place.h"
#include "ir/support/fork.h"
#include "ir/support/hash.h"
#include "ir/support/str.h"

namespace lazuli::ir {
namespace {

class SiteTable {
 public:
  static SiteTable& Get() {
    // Never destroyed: nodes of static tensors may outlive main.
    static auto* table = new SiteTable;
    return *table;
  }

  SiteId Intern(Site site) {
    std::string key = Str(site.file, ":", site.line, ":", site.function, ":", site.scope, ":",
                          site.stack, ":", site.note);
    std::lock_guard lock(mu_);
    if (const auto it = ids_.find(key); it != ids_.end()) return it->second;
    const auto id = static_cast<SiteId>(sites_.size());
    sites_.push_back(std::move(site));
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

class ScopeTable {
 public:
  static ScopeTable& Get() {
    static auto* table = new ScopeTable;
    return *table;
  }

  ScopeId Intern(std::string text) {
    std::lock_guard lock(mu_);
    const auto [it, added] = ids_.try_emplace(text, static_cast<ScopeId>(texts_.size()));
    if (added) texts_.push_back(std::move(text));
    return it->second;
  }

  const std::string& Text(ScopeId id) {
    std::lock_guard lock(mu_);
    return id < texts_.size() ? texts_[id] : texts_[kNoScope];
  }

 private:
  ScopeTable() {
    texts_.emplace_back();
    ids_.emplace("", kNoScope);
  }
  ForkMutex mu_;
  std::deque<std::string> texts_;
  absl::flat_hash_map<std::string, ScopeId> ids_;
};

template <int kKind, class F>
uint32_t Cached(uint32_t a, uint32_t b, uint32_t c, F&& make) {
  const uint64_t key = (uint64_t{a} << 32 | b) + 1;  // 0 is an empty entry
  const uint64_t hash = (key + c) * 0x9e3779b97f4a7c15ull;
  Derived& entry = SeenOrigins::Get().derived[kKind][(hash >> 40) % SeenOrigins::kDerived];
  if (entry.key != key || entry.extra != c) entry = {key, c, make()};
  return entry.result;
}

std::string Joined(const std::string& outer, std::string_view name) {
  return outer.empty() ? std::string(name) : Str(outer, "/", name);
}

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
  SiteCache& site_cache = SeenOrigins::Get().sites;
  CachedSite* cached = &site_cache[home % kCachedSites];
  for (std::size_t i = 0; i < kProbes; ++i) {
    CachedSite& probed = site_cache[(home + i) % kCachedSites];
    if (probed.file == file && probed.line == line && probed.function == function) return probed.id;
    if (probed.file != nullptr) continue;
    cached = &probed;
    break;
  }
  *cached = {file, function, line, InternSiteCopy(file, function, line)};
  return cached->id;
}

SiteId InternSiteCopy(std::string_view file, std::string_view function, uint32_t line) {
  return SiteTable::Get().Intern(
      {.file = std::string(file), .function = std::string(function), .line = line});
}

ScopeId InternScope(ScopeId outer, std::string_view name) {
  if (name.empty()) return outer;
  const uint64_t hash = HashBytes(name.data(), name.size(), outer);
  EnteredScope& entry = SeenOrigins::Get().scopes[hash % std::tuple_size_v<EnteredScopes>];
  if (entry.id == kNoScope || entry.outer != outer || entry.name != name)
    entry = {outer, ScopeTable::Get().Intern(Joined(ScopeText(outer), name)), std::string(name)};
  return entry.id;
}

const std::string& ScopeText(ScopeId scope) { return ScopeTable::Get().Text(scope); }

ScopeId Rebased(ScopeId inner, ScopeId outer, ScopeId into) {
  if (into == kNoScope) return inner;
  return Cached<0>(inner, outer, into, [&] {
    const std::string_view text = ScopeText(inner), beginning = ScopeText(outer);
    const bool within = !beginning.empty() && text.size() > beginning.size() &&
                        text.starts_with(beginning) && text[beginning.size()] == '/';
    return InternScope(into, within ? text.substr(beginning.size() + 1) : text);
  });
}

SiteId InScope(SiteId site, ScopeId scope) {
  return Cached<1>(site, scope, 0, [&] {
    Site derived = GetSite(site);
    derived.scope = scope;
    return SiteTable::Get().Intern(std::move(derived));
  });
}

SiteId WithStack(SiteId site, StackId stack) {
  return Cached<2>(site, stack, 0, [&] {
    Site derived = GetSite(site);
    derived.stack = stack;
    return SiteTable::Get().Intern(std::move(derived));
  });
}

SiteId WithNote(SiteId site, std::string_view note) {
  Site derived = GetSite(site);
  derived.note = note;
  return SiteTable::Get().Intern(std::move(derived));
}

const Site& GetSite(SiteId id) { return SiteTable::Get().Lookup(id); }

}  // namespace lazuli::ir
