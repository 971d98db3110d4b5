#include "lowering/passes/pass.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <functional>
#include <optional>
#include <utility>

#include "absl/functional/function_ref.h"

#include "ir/evaluator/dynamic_sizes.h"
#include "ir/hlo/dump/module_dump.h"
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
#include "lowering/passes/xla_names.h"

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

// What cannot be written is said once, and nothing more goes into that folder.
void Dump(const hlo::Module& module, std::string_view pass) {
  const bool has_own = !flags().dump_dir().empty();
  const std::string& folder = has_own ? flags().dump_dir() : flags().dump_graph_prefix();
  static std::atomic<std::size_t> unusable{0};  // a hash of the folder
  const std::size_t hash = std::hash<std::string>()(folder);
  if (folder.empty() || unusable == hash) return;
  char number[16];
  std::snprintf(number, sizeof number, "%02d.", next_dump++);
  const absl::Status status = WriteTextFile(
      Str(folder, "/", module.name(), "/", number, pass, ".hlo"), hlo::ToString(module));
  if (!status.ok()) unusable = hash;
  ir::SayOnce(Prefixed(status, has_own ? "LAZULI_DUMP_DIR: " : "TF_DUMP_GRAPH_PREFIX: "));
}

// What a pass is held to when it says "changed". Computations that nothing reaches are not in the
// text.
struct ModuleSnapshot {
  std::string text;
  int64_t instructions;
  std::size_t computations;
  explicit ModuleSnapshot(const hlo::Module& module)
      : text(hlo::ToString(module)),
        instructions(module.instruction_count()),
        computations(module.computations().size()) {}
  bool operator==(const ModuleSnapshot&) const = default;
};

absl::Status Check(const Pass& pass, const hlo::Module& module, const ModuleSnapshot& before,
                   bool changed) {
  const std::string prefix = Str("after pass ", pass.name(), " on ", module.name(), ": ");
  LAZULI_RETURN_IF_ERROR(Prefixed(hlo::Verify(module), prefix));
  if (changed == (before == ModuleSnapshot(module))) {
    return Internal(prefix, changed ? "it reports a change but made none"
                                    : "it reports no change but made one");
  }
  return absl::OkStatus();
}

// What a pipeline leaves out.
class Disabled {
 public:
  explicit Disabled(const std::string& names) : names_(SplitNames(names)) {
    for (std::string_view& name : names_) {
      all_ |= name == ir::kAllPasses;
      for (const XlaPassName& row : XlaPassNames())
        if (row.xla == name) name = row.ours;
    }
  }
  bool Has(const Pass& pass) const {
    if (std::find(names_.begin(), names_.end(), pass.name()) != names_.end()) return true;
    return all_ && !pass.is_needed();
  }

 private:
  std::vector<std::string_view> names_;
  bool all_ = false;
};

// What --xla_dump_hlo_pass_re asks for, of the passes of one pipeline.
class PassFiles {
 public:
  explicit PassFiles(const std::string& pipeline)
      : pipeline_(pipeline), dump_(hlo::ModuleDump::Current()) {}

  // Around a pass; `next` names the one behind it.
  void Before(const Pass& pass, const hlo::Module& module) {
    before_ = nullptr;
    wanted_ = dump_ != nullptr && dynamic_cast<const PassPipeline*>(&pass) == nullptr &&
              dump_->WantsPass(pipeline_, pass.name());
    if (wanted_ && !is_written_) before_ = module.Clone();
  }
  void After(const Pass& pass, const hlo::Module& module, bool changed,
             absl::FunctionRef<std::string_view()> next) {
    if (changed) {
      if (before_ != nullptr) dump_->BetweenPasses(*before_, pipeline_, last_, pass.name());
      if (wanted_) dump_->BetweenPasses(module, pipeline_, pass.name(), next());
      is_written_ = wanted_;
    }
    last_ = pass.name();
  }

 private:
  const std::string& pipeline_;
  hlo::ModuleDump* const dump_;
  std::unique_ptr<hlo::Module> before_;
  std::string_view last_ = "pipeline-start";
  bool wanted_ = false, is_written_ = false;  // the module as it is now
};

// What LAZULI_DEBUG=PASS=N shows of one pass.
class PassDebug {
 public:
  PassDebug(const Pass& pass, const hlo::Module& module)
      : pass_(pass), level_(ir::LevelOf("LAZULI_DEBUG", pass.name())) {
    if (level_ < kLine) return;
    instructions_ = module.instruction_count();
    if (level_ >= kBefore) before_ = hlo::ToString(module);
  }
  void Changed(const hlo::Module& module) const {
    if (level_ < kLine) return;
    std::string text = Str("lazuli: ", pass_.name(), " changed ", module.name(), ": ",
                           instructions_, " -> ", module.instruction_count(), " instructions\n");
    if (level_ >= kBefore) text += Str("before ", pass_.name(), ":\n", before_);
    if (level_ >= kAfter) text += Str("after ", pass_.name(), ":\n", hlo::ToString(module));
    ir::ShowDebug(text);
  }

 private:
  static constexpr int64_t kLine = 3, kAfter = 4, kBefore = 5;
  const Pass& pass_;
  const int64_t level_;
  int64_t instructions_ = 0;
  std::string before_;
};

absl::StatusOr<bool> RunPass(Pass& pass, hlo::Module& module) {
  const ir::TraceSpan span(ir::SpanKind::kPass, pass.name());
  ir::SlowNotice::Check(pass.name());
  const PassDebug debug(pass, module);
  std::optional<ModuleSnapshot> before;
  if (flags().verify_passes()) before.emplace(module);
  LAZULI_ASSIGN_OR_RETURN(const bool changed, pass.Run(module));
  if (before) LAZULI_RETURN_IF_ERROR(Check(pass, module, *before, changed));
  if (!changed) return false;
  debug.Changed(module);
  AddNamed(Str("pass.", pass.name(), ".changed"));
  if (dynamic_cast<const PassPipeline*>(&pass) == nullptr) Dump(module, pass.name());
  return true;
}

}  // namespace

PassOptions PassOptions::Now() {
  return {ir::DisabledPasses(), flags().disable_rules(), ProgramPasses(), flags().jitter(),
          flags().jitter_seed()};
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
  const std::vector<std::string> shown = ir::LevelNames("LAZULI_DEBUG");
  if (options_.disabled_passes.empty() && options_.program_passes.empty() && shown.empty())
    return absl::OkStatus();
  std::vector<std::string_view> known;
  CollectNames(&known);
  for (const PassRow& row : RegisteredPasses()) known.push_back(row.name);
  const std::vector<AddedPass> added = AddedPasses();
  for (const AddedPass& pass : added) known.push_back(pass.name);
  LAZULI_RETURN_IF_ERROR(CheckNames("the passes of every program", "pass",
                                    SplitNames(options_.program_passes), known));
  known.push_back("kernels");
  LAZULI_RETURN_IF_ERROR(CheckNames(
      "LAZULI_DEBUG", "pass", std::vector<std::string_view>(shown.begin(), shown.end()), known));
  known.pop_back();
  for (const XlaPassName& row : XlaPassNames()) known.push_back(row.xla);
  known.push_back(ir::kAllPasses);
  return CheckNames(
      flags().disable_passes().empty() ? "--xla_disable_hlo_passes" : "LAZULI_DISABLE_PASSES",
      "pass", SplitNames(options_.disabled_passes), known);
}

absl::StatusOr<bool> PassPipeline::Run(hlo::Module& module) {
  const Depth depth;
  const Disabled disabled(options_.disabled_passes);
  if (pipeline_depth == 1) {
    LAZULI_RETURN_IF_ERROR(CheckOptions());
    Dump(module, "before");
  }
  const bool dynamic_sizes = hlo::HasDynamicSizes(module);
  std::vector<Pass*> running;
  for (const auto& pass : passes_) {
    if (disabled.Has(*pass) || (dynamic_sizes && pass->wants_static_sizes())) continue;
    running.push_back(pass.get());
  }
  PassFiles files(name_);
  bool changed = false;
  for (int iteration = 0; iteration < max_iterations_; ++iteration) {
    bool again = false;
    for (std::size_t i = 0; i < running.size(); ++i) {
      files.Before(*running[i], module);
      LAZULI_ASSIGN_OR_RETURN(const bool here, RunPass(*running[i], module));
      files.After(*running[i], module, here, [&]() -> std::string_view {
        return i + 1 < running.size() ? running[i + 1]->name() : "pipeline-end";
      });
      again |= here;
    }
    if (!again) break;
    changed = true;
  }
  return changed;
}

}  // namespace lazuli::lowering
