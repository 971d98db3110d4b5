#include "lazy/execution/recompile_warning.h"

#include <cstdio>
#include <mutex>
#include <string>

#include "absl/container/flat_hash_map.h"

#include "ir/support/flags.h"
#include "ir/support/fork.h"
#include "ir/support/metrics.h"
#include "ir/support/runtime.h"

namespace lazuli::lazy {

void WarnOfRecompiles(const CachedProgram& program) {
  struct Row {
    int64_t compiles = 0, cached_runs = 0;
    bool said = false;
  };
  struct Rows {
    ir::ForkMutex mutex;
    absl::flat_hash_map<SiteId, Row> of_site;
  };
  // A step may have a few syncs of which one compiles each time.
  constexpr int64_t kCachedBetween = 2;
  const int64_t limit = flags().recompile_warning();
  Rows& rows = ir::Runtime::Get().Of<Rows>();
  const std::lock_guard lock(rows.mutex);
  Row& row = rows.of_site[program.site];
  if (row.said || limit <= 0) return;
  const int64_t cached = ir::Get(Counter::kCachedCompile);
  const RecompileCause cause = program.recompile.cause;
  // What a line differs in that reads any graph, as a helper that prints does, is not a loop's.
  const bool loops = cause == RecompileCause::kEvicted || cause == RecompileCause::kBatch ||
                     cause == RecompileCause::kShape || cause == RecompileCause::kDType ||
                     cause == RecompileCause::kAttribute || cause == RecompileCause::kMoreNodes ||
                     cause == RecompileCause::kFewerNodes;
  if (!loops || cached - row.cached_runs > kCachedBetween) row.compiles = 0;
  row.cached_runs = cached;
  if (!loops || ++row.compiles < limit) return;
  row.said = true;
  const std::string text = Str(
      "lazuli: ", limit, " recompiles in a row", ir::InParentheses(program.site),
      ", the last: ", program.recompile.Sentence(),
      " (said once; LAZULI_DEBUG=2 explains each compile, LAZULI_RECOMPILE_WARNING=0 is silent)\n");
  std::fputs(text.c_str(), stderr);
}

}  // namespace lazuli::lazy
