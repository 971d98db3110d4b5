#include "lazy/debug/debug_level.h"

#include <cstdlib>

#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "ir/support/text_file.h"

namespace lazuli::lazy {
namespace {

void ReportAtExit() { ir::ShowDebug(MetricsReport()); }

void PrintCompile(const CompileEvent& event) { ir::ShowDebug(CompileText(event, flags().debug())); }

}  // namespace

std::string CompileText(const CompileEvent& event, int64_t level) {
  if (level < 2) return "";
  const backend::ExecutableStats& stats = event.program.launcher.executable()->stats();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(event.time);
  std::string text =
      Str("lazuli: compiled ", event.program.name(), " for ", event.device.ToString(), " in ",
          milliseconds.count(), " ms: ", stats.kernels, " kernels, ", stats.library_calls,
          " library calls, ", stats.evaluator_thunks, " evaluated, ", stats.temp_bytes,
          " bytes of temporaries (", GetSite(event.site).ToString(), ")\n");
  if (event.program.recompile.cause != RecompileCause::kFirst)
    text += Str("lazuli:   recompiled: ", event.program.recompile.Sentence(), "\n");
  if (level >= 3) text += event.program.hlo();
  if (level >= 4) text += event.program.launcher.executable()->ToString();
  return text;
}

void InitializeDebugLevel() {
  static const bool installed = [] {
    if (flags().debug() >= 1) std::atexit(ReportAtExit);
    if (flags().debug() >= 2) AddCompileObserver(PrintCompile);
    return true;
  }();
  (void)installed;
}

}  // namespace lazuli::lazy
