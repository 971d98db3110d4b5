#include "backend/cpu/runtime/persistent_cache.h"

#include <atomic>
#include <cstdio>

#include "ir/support/build_id.h"
#include "ir/support/disk_store.h"
#include "ir/support/flags.h"
#include "ir/support/status.h"

namespace lazuli::cpu {
namespace {

void WarnOnce(std::string_view message) {
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  std::fprintf(stderr, "lazuli: XLA_PERSISTENT_CACHE_PATH: %s; going on without it\n",
               std::string(message).c_str());
}

ir::DiskStore* OpenStore() {
  if (flags().persistent_cache_path().empty()) return nullptr;
  if (ir::BuildId().empty()) {
    WarnOnce("this build has no build id (ld --build-id) that could tell its code from others'");
    return nullptr;
  }
  auto store =
      ir::DiskStore::Open(flags().persistent_cache_path(), flags().persistent_cache_bytes());
  if (store.ok()) return store->release();
  WarnOnce(ir::Message(store.status()));
  return nullptr;
}

// Null if the user wants none, or it cannot be used.
ir::DiskStore* Store() {
  static ir::DiskStore* const store = OpenStore();
  return store;
}

std::string OfThisBuild(std::string_view key) { return Str("lazuli ", ir::BuildId(), "\n", key); }

}  // namespace

bool HasPersistentCache() { return Store() != nullptr; }

std::optional<std::string> FindPersistent(std::string_view key) {
  return Store() == nullptr ? std::nullopt : Store()->Get(OfThisBuild(key));
}

void KeepPersistent(std::string_view key, std::string_view value) {
  if (Store() == nullptr || flags().persistent_cache_read_only()) return;
  if (const absl::Status status = Store()->Put(OfThisBuild(key), value); !status.ok())
    WarnOnce(ir::Message(status));
}

}  // namespace lazuli::cpu
