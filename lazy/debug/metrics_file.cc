#include "lazy/debug/metrics_file.h"

#include <cstdio>

#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "ir/support/text_file.h"
#include "lazy/execution/sync.h"

namespace lazuli::lazy {
namespace {

void WriteMetrics(const SyncEvent&) {
  const std::string& path = flags().metrics_file();
  if (path.empty()) return;
  const std::string text =
      Str("[MetricsData; step=", ir::Get(Counter::kMarkStep), "]\n", ir::MetricsReport(), "\n");
  if (path == "STDERR" || path == "STDOUT") {
    std::FILE* const out = path == "STDERR" ? stderr : stdout;
    std::fputs(text.c_str(), out);
    std::fflush(out);
    return;
  }
  ir::SayOnce(Prefixed(ir::AppendToTextFile(path, text), "XLA_METRICS_FILE: "));
}

}  // namespace

void InitializeMetricsFile() {
  static const bool installed = [] {
    if (!flags().metrics_file().empty()) AddSyncObserver(WriteMetrics);
    return true;
  }();
  (void)installed;
}

}  // namespace lazuli::lazy
