#include "backend/cpu/runtime/parts.h"

#include <algorithm>
#include <atomic>
#include <mutex>

#include "ir/support/parallel_for.h"

namespace lazuli::cpu {

int64_t WorkersFor(int64_t parts, int64_t threads) {
  return std::max<int64_t>(1, std::min<int64_t>({parts, threads, NumThreads()}));
}

absl::Status ForEachPart(int64_t parts, int64_t workers,
                         absl::FunctionRef<absl::Status(Part part)> body) {
  std::atomic<int64_t> next{0};
  std::mutex mutex;
  absl::Status first;
  const auto work = [&](int64_t worker) {
    for (int64_t i; (i = next.fetch_add(1, std::memory_order_relaxed)) < parts;) {
      const absl::Status status = body({i, parts, worker});
      if (status.ok()) continue;
      next = parts;
      std::lock_guard lock(mutex);
      first.Update(status);
    }
  };
  ParallelFor(workers, 1, [&](int64_t begin, int64_t end) {
    for (int64_t worker = begin; worker < end; ++worker) work(worker);
  });
  return first;
}

}  // namespace lazuli::cpu
