#include "lazuli/debug.h"

#include "cpp_api/src/facade.h"
#include "cpp_api/src/tensor_lists.h"
#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "lazy/debug/graph_text.h"
#include "lazy/execution/sync.h"

namespace lazuli {

std::vector<Flag> flags() {
  std::vector<Flag> all;
  for (const ir::FlagRow& row : ir::FlagRows()) {
    all.push_back({.name = std::string(row.name),
                   .type = std::string(ir::TypeText(row.type)),
                   .value = ir::FlagText(row),
                   .default_value = row.default_text,
                   .meaning = std::string(row.doc)});
  }
  return all;
}

namespace metrics {

std::string report() { return ir::MetricsReport(); }
std::int64_t counter(std::string_view name) {
  const std::int64_t value = ir::CounterValue(name);
  if (value < 0)
    throw Error(ErrorCode::kNotFound, ir::Str("metrics: no counter is called '", name, "'"));
  return value;
}
void reset() { ir::ResetMetrics(); }

}  // namespace metrics

namespace debug {
namespace {

std::string Graph(const std::vector<Tensor>& tensors, lazy::GraphFormat format) {
  return Call(SourceLocation(), [&] { return lazy::PendingGraph(Unwrapped(tensors), format); });
}

// The node that computes the tensor, while nobody changes its context.
template <class F>
auto WithNode(const Tensor& tensor, F&& f) {
  return Call(SourceLocation(),
              [&] { return lazy::WithPendingNode(TensorAccess::Unwrap(tensor), f); });
}

lazy::CachedProgramPtr Last() {
  lazy::CachedProgramPtr program = lazy::LastProgram();
  if (program == nullptr)
    throw Error(ErrorCode::kFailedPrecondition, "debug: this thread has run no program yet");
  return program;
}

}  // namespace

std::string graph_text(const std::vector<Tensor>& tensors) {
  return Graph(tensors, lazy::GraphFormat::kText);
}
std::string graph_dot(const std::vector<Tensor>& tensors) {
  return Graph(tensors, lazy::GraphFormat::kDot);
}
std::string graph_hlo(const std::vector<Tensor>& tensors) {
  return Graph(tensors, lazy::GraphFormat::kHlo);
}

std::string graph_table(const std::vector<Tensor>& tensors) {
  return Graph(tensors, lazy::GraphFormat::kTable);
}
std::string graph_html(const std::vector<Tensor>& tensors) {
  return Graph(tensors, lazy::GraphFormat::kHtml);
}

std::vector<Frame> stack(const Tensor& tensor) {
  const ir::SiteId site = WithNode(tensor, [](ir::Node& node) { return node.site(); });
  std::vector<Frame> frames;
  for (const ir::Site& frame : ir::FramesOf(site))
    frames.push_back({std::string(ir::ShortFunctionName(frame.function)), frame.file, frame.line});
  return frames;
}
std::string scope(const Tensor& tensor) {
  return WithNode(tensor,
                  [](ir::Node& node) { return ir::ScopeText(ir::GetSite(node.site()).scope); });
}
void set_user_metadata(const Tensor& tensor, std::string_view note) {
  WithNode(tensor, [note](ir::Node& node) { node.set_site(ir::WithNote(node.site(), note)); });
}
std::string user_metadata(const Tensor& tensor) {
  return WithNode(tensor, [](ir::Node& node) { return ir::GetSite(node.site()).note; });
}
void set_ir_debug(bool on) { ir::SetIrDebug(on); }

std::string last_hlo() { return Last()->hlo(); }
std::string last_optimized_hlo() { return Last()->launcher.executable()->ToString(); }
ProgramStats last_stats() {
  const backend::ExecutableStats& stats = Last()->launcher.executable()->stats();
  return {stats.kernels, stats.library_calls, stats.reorders, stats.evaluator_thunks,
          stats.temp_bytes};
}

Recompile explain_recompile() {
  const lazy::Recompile* why = lazy::LastRecompile();
  if (why == nullptr)
    throw Error(ErrorCode::kFailedPrecondition, "debug: this thread has compiled no program yet");
  return {.cause = std::string(lazy::CauseName(why->cause)),
          .sentence = why->Sentence(),
          .site = ir::GetSite(why->site).ToString(),
          .op = why->op,
          .before = why->before,
          .after = why->after,
          .advice = why->advice,
          .nearest = why->nearest};
}

}  // namespace debug

}  // namespace lazuli
