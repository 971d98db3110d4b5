#include "backend/cpu/codegen/kernel_store.h"

#include <atomic>
#include <cstdio>
#include <sstream>

#include "llvm/Config/llvm-config.h"

#include "backend/cpu/codegen/jit.h"
#include "backend/cpu/codegen/kernel.h"
#include "ir/support/build_id.h"
#include "ir/support/disk_store.h"
#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "ir/support/status.h"

namespace lazuli::cpu {
namespace {

void WarnOnce(std::string_view message) {
  static std::atomic<bool> warned{false};
  if (warned.exchange(true)) return;
  std::fprintf(stderr, "lazuli: XLA_PERSISTENT_CACHE_PATH: %s; going on without it\n",
               std::string(message).c_str());
}

DiskStore* OpenStore() {
  if (flags().persistent_cache_path().empty()) return nullptr;
  if (ir::BuildId().empty()) {
    WarnOnce("this build has no build id (ld --build-id) that could tell its kernels from others'");
    return nullptr;
  }
  auto store =
      ir::DiskStore::Open(flags().persistent_cache_path(), flags().persistent_cache_bytes());
  if (store.ok()) return store->release();
  WarnOnce(ir::Message(store.status()));
  return nullptr;
}

// Null if the user wants none, or it cannot be used.
DiskStore* Store() {
  static DiskStore* const store = OpenStore();
  return store;
}

std::string KeyOf(const std::string& body) {
  return Str("lazuli ", ir::BuildId(), "\nLLVM ", LLVM_VERSION_STRING, "\n", Jit::Get().host(),
             "\n", body);
}

}  // namespace

std::string Pack(const StoredKernel& kernel) {
  const KernelShape& s = kernel.shape;
  std::ostringstream out;
  out << s.items << ' ' << s.grain << ' ' << s.finish_items << ' ' << s.scratch_bytes << ' '
      << s.outermost;
  for (const std::vector<uint8_t>* flags : {&s.in_place, &s.by_part}) {
    out << ' ' << flags->size();
    for (uint8_t flag : *flags) out << ' ' << int{flag};
  }
  out << '\n' << s.details << '\n' << kernel.object;
  return std::move(out).str();
}

std::optional<StoredKernel> Unpack(std::string_view bytes) {
  std::istringstream in{std::string(bytes)};
  StoredKernel kernel;
  KernelShape& s = kernel.shape;
  in >> s.items >> s.grain >> s.finish_items >> s.scratch_bytes >> s.outermost;
  for (std::vector<uint8_t>* flags : {&s.in_place, &s.by_part}) {
    std::size_t count = 0;
    if (!(in >> count) || count > kMaxKernelArgs) return std::nullopt;
    for (int flag = 0; flags->size() < count && in >> flag;) flags->push_back(flag != 0);
  }
  if (in.get() != '\n' || !std::getline(in, s.details)) return std::nullopt;
  kernel.object = bytes.substr(static_cast<std::size_t>(in.tellg()));
  return kernel;
}

std::optional<StoredKernel> FindStoredKernel(const std::string& body) {
  if (Store() == nullptr) return std::nullopt;
  const std::optional<std::string> bytes = Store()->Get(KeyOf(body));
  std::optional<StoredKernel> kernel = bytes ? Unpack(*bytes) : std::nullopt;
  Add(kernel ? Counter::kPersistentCacheHit : Counter::kPersistentCacheMiss);
  return kernel;
}

void StoreKernel(const std::string& body, const StoredKernel& kernel) {
  if (Store() == nullptr || flags().persistent_cache_read_only()) return;
  if (const absl::Status status = Store()->Put(KeyOf(body), Pack(kernel)); !status.ok())
    WarnOnce(ir::Message(status));
}

}  // namespace lazuli::cpu
