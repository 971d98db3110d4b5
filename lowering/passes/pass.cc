#include "lowering/passes/pass.h"

#include <algorithm>
#include <cstdio>
#include <optional>
#include <utility>

#include "ir/evaluator/dynamic_sizes.h"
#include "ir/hlo/text/printer.h"
#include "ir/hlo/verifier.h"
#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "ir/support/name_list.h"
#include "ir/support/slow_notice.h"
#include "ir/support/span.h"
#include "ir/support/status.h"
#include "ir/support/text_file.h"
#include "lowering/passes/registry.h"

namespace lazuli::lowering {
namespace {

// Dumps of the outermost pipeline that runs on this thread and of the pipelines inside it are
// numbered together.
thread_local int pipeline_depth = 0;
thread_local int next_dump = 0;

class Depth {
 public:
  Depth() {
    if (pipeline_depth++ == 0) next_dump = 0;
  }
  ~Depth() { --pipeline_depth; }
};

absl::Status Dump(const hlo::Module& module, std::string_view pass) {
  if (flags().dump_dir().empty()) return absl::OkStatus();
  char number[16];
  std::snprintf(number, sizeof number, "%02d.", next_dump++);
  return Prefixed(
      WriteTextFile(Str(flags().dump_dir(), "/", module.name(), "/", number, pass, ".hlo"),
                    hlo::ToString(module)),
      "LAZULI_DUMP_DIR: ");
}

// What a pass is held to when it says "changed". Computations that nothing reaches are not in the
// text.
struct Fingerprint {
  std::string text;
  int64_t instructions;
  std::size_t computations;
  explicit Fingerprint(const hlo::Module& module)
      : text(hlo::ToString(module)),
        instructions(module.instruction_count()),
        computations(module.computations().size()) {}
  bool operator==(const Fingerprint&) const = default;
};

absl::Status Check(const Pass& pass, const hlo::Module& module, const Fingerprint& before,
                   bool changed) {
  const std::string prefix = Str("after pass ", pass.name(), " on ", module.name(), ": ");
  LAZULI_RETURN_IF_ERROR(Prefixed(hlo::Verify(module), prefix));
  if (changed == (before == Fingerprint(module))) {
    return Internal(prefix, changed ? "it reports a change but made none"
                                    : "it reports no change but made one");
  }
  return absl::OkStatus();
}

absl::StatusOr<bool> RunPass(Pass& pass, hlo::Module& module) {
  const TraceSpan span(pass.name());
  ir::SlowNotice::Check();
  std::optional<Fingerprint> before;
  if (flags().verify_passes()) before.emplace(module);
  LAZULI_ASSIGN_OR_RETURN(const bool changed, pass.Run(module));
  if (before) LAZULI_RETURN_IF_ERROR(Check(pass, module, *before, changed));
  if (!changed) return false;
  AddNamed(Str("pass.", pass.name(), ".changed"));
  if (dynamic_cast<const PassPipeline*>(&pass) == nullptr) {
    LAZULI_RETURN_IF_ERROR(Dump(module, pass.name()));
  }
  return true;
}

}  // namespace

PassOptions PassOptions::Now() {
  return {flags().disable_passes(), flags().disable_rules(), ProgramPasses()};
}

PassPipeline::PassPipeline(std::string name, int max_iterations, PassOptions options)
    : name_(std::move(name)), max_iterations_(max_iterations), options_(std::move(options)) {}

void PassPipeline::CollectNames(std::vector<std::string_view>* names) const {
  for (const auto& pass : passes_) {
    names->push_back(pass->name());
    if (const auto* inner = dynamic_cast<const PassPipeline*>(pass.get()))
      inner->CollectNames(names);
  }
}

absl::Status PassPipeline::CheckOptions() const {
  if (options_.disabled_passes.empty() && options_.program_passes.empty()) return absl::OkStatus();
  std::vector<std::string_view> known;
  CollectNames(&known);
  for (const PassRow& row : RegisteredPasses()) known.push_back(row.name);
  const std::vector<AddedPass> added = AddedPasses();
  for (const AddedPass& pass : added) known.push_back(pass.name);
  LAZULI_RETURN_IF_ERROR(CheckNames("the passes of every program", "pass",
                                    SplitNames(options_.program_passes), known));
  return CheckNames("LAZULI_DISABLE_PASSES", "pass", SplitNames(options_.disabled_passes), known);
}

absl::StatusOr<bool> PassPipeline::Run(hlo::Module& module) {
  const Depth depth;
  const std::vector<std::string_view> disabled = SplitNames(options_.disabled_passes);
  if (pipeline_depth == 1) {
    LAZULI_RETURN_IF_ERROR(CheckOptions());
    LAZULI_RETURN_IF_ERROR(Dump(module, "before"));
  }
  const bool dynamic_sizes = hlo::HasDynamicSizes(module);
  bool changed = false;
  for (int iteration = 0; iteration < max_iterations_; ++iteration) {
    bool again = false;
    for (const auto& pass : passes_) {
      if (std::find(disabled.begin(), disabled.end(), pass->name()) != disabled.end()) continue;
      if (dynamic_sizes && pass->wants_static_sizes()) continue;
      LAZULI_ASSIGN_OR_RETURN(const bool here, RunPass(*pass, module));
      again |= here;
    }
    if (!again) break;
    changed = true;
  }
  return changed;
}

}  // namespace lazuli::lowering
