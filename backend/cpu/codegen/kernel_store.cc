#include "backend/cpu/codegen/kernel_store.h"

#include "backend/cpu/codegen/kernel.h"
#include "backend/cpu/runtime/persistent_cache.h"
#include "ir/support/byte_stream.h"
#include "ir/support/metrics.h"
#include "ir/support/str.h"

namespace lazuli::cpu {
namespace {

std::string KeyOf(const std::string& body) { return Str(KernelEngineAndHost(), "\n", body); }

}  // namespace

std::optional<StoredKernel> FindStoredKernel(const std::string& body) {
  if (!HasPersistentCache()) return std::nullopt;
  std::optional<StoredKernel> kernel;
  if (const std::optional<std::string> bytes = FindPersistent(KeyOf(body))) {
    ir::ByteReader in(*bytes);
    Read(in, kernel.emplace());
    if (!in.ok() || !in.AtEnd()) kernel.reset();
  }
  Add(kernel ? Counter::kPersistentCacheHit : Counter::kPersistentCacheMiss);
  return kernel;
}

void StoreKernel(const std::string& body, const StoredKernel& kernel) {
  if (!HasPersistentCache()) return;
  ir::ByteWriter out;
  Write(out, kernel);
  KeepPersistent(KeyOf(body), out.bytes());
}

}  // namespace lazuli::cpu
