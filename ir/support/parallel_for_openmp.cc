#include <omp.h>

#include "ir/support/parallel_for.h"
#include "ir/support/parallel_for_internal.h"

namespace lazuli::ir {

void ParallelFor(int64_t n, int64_t grain,
                 absl::FunctionRef<void(int64_t begin, int64_t end)> body) {
  if (n <= 0) return;
  const internal::Chunks chunks(n, grain, NumThreads());
  if (chunks.count == 1 || omp_in_parallel()) return chunks.RunInline(body);
  const auto mode = internal::FloatMode::Current();
#pragma omp parallel num_threads(static_cast<int>(chunks.count))
  {
    mode.Apply();
    // OpenMP may give fewer threads than asked for.
    for (int64_t i = omp_get_thread_num(); i < chunks.count; i += omp_get_num_threads()) {
      body(chunks.begin(i), chunks.end(i));
    }
  }
}

}  // namespace lazuli::ir
