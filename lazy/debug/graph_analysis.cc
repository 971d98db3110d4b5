#include "lazy/debug/graph_analysis.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "ir/graph/stack.h"
#include "ir/support/flags.h"
#include "ir/support/metrics.h"
#include "ir/support/text_file.h"
#include "lazy/debug/graph_text.h"
#include "lazy/tensor/history.h"

namespace lazuli::lazy {
namespace {

using ir::Site;

constexpr int kRule = 80;

// Lines that all begin with the name of their block.
class AnalysisBlock {
 public:
  explicit AnalysisBlock(std::string_view name) : prefix_(Str(name, ": ")), text_("\n") {
    Rule('=');
  }
  AnalysisBlock& Line(std::string_view line) {
    text_ += Str(prefix_, line, "\n");
    return *this;
  }
  AnalysisBlock& Rule(char c) { return Line(std::string(kRule, c)); }
  std::string End() {
    Rule('-').Rule('=');
    return std::move(text_);
  }

 private:
  std::string prefix_, text_;
};

std::string HashText(uint64_t v) {
  char text[17];
  std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(v));
  return text;
}

std::string_view Cause(SyncReason reason) {
  switch (reason) {
    case SyncReason::kUser:
      return "user torch_xla.sync";
    case SyncReason::kRead:
    case SyncReason::kSize:
      return "most likely user code trying to access tensor value before torch_xla.sync";
    case SyncReason::kForeignContext:
      return "a tensor is used in another context than the one that it is pending in";
    case SyncReason::kGraphLimit:
      return "the graph has LAZULI_MAX_GRAPH_NODES nodes and more; mark_step() ends a step";
    case SyncReason::kUpdate:
      return "an optimiser steps while its last update is pending; mark_step() ends a step";
  }
  return "";
}

std::string Gigabytes(int64_t bytes) {
  char text[48];
  std::snprintf(text, sizeof text, "%f GB", static_cast<double>(bytes) / (1 << 30));
  return text;
}

void Write(const std::string& text) {
  if (text.empty()) return;
  const std::string& file = flags().pt_xla_debug_file();
  if (file.empty())
    std::fputs(text.c_str(), stderr);
  else
    ir::SayOnce(Prefixed(ir::AppendToTextFile(file, text), "PT_XLA_DEBUG_FILE: "));
}

// What the metrics say of the steps so far; each sentence comes again while it is true, with other
// numbers.
std::string AutoMetrics() {
  constexpr int64_t kWarmUp = 10;  // steps of which the first few compile in any case
  constexpr double kFrequent = 0.5;
  const auto steps = static_cast<double>(ir::Get(Counter::kMarkStep));
  std::string text;
  const auto frequent = [&](Timer timer) {
    const int64_t samples = GetStats(timer).samples;
    if (static_cast<double>(samples) > kFrequent * steps)
      text += Str("pt-xla-profiler: ", TimerRows()[static_cast<std::size_t>(timer)].name,
                  " too frequent: ", samples, " counts during ", static_cast<int64_t>(steps),
                  " steps\n");
  };
  if (steps > kWarmUp) frequent(Timer::kCompileTime);
  frequent(Timer::kTransferFromDevice);
  return text;
}

// The syncs that compile, by thread.
class GraphsByThread {
 public:
  void Add(const AnalyzedGraph& graph) {
    const std::lock_guard lock(mutex_);
    graphs_[std::this_thread::get_id()] = graph;
  }
  AnalyzedGraph Take() {
    const std::lock_guard lock(mutex_);
    auto node = graphs_.extract(std::this_thread::get_id());
    return node ? node.mapped() : AnalyzedGraph{};
  }

 private:
  std::mutex mutex_;
  std::map<std::thread::id, AnalyzedGraph> graphs_;
};
GraphsByThread& CompilingGraphs() {
  static auto* const compiling = new GraphsByThread;
  return *compiling;
}

// Whether a line of the file is one of a C++ program.
bool IsCpp(std::string_view file) {
  constexpr std::array<std::string_view, 8> kEndings = {".cc",  ".cpp", ".cxx", ".c++",
                                                        ".inc", ".h",   ".hpp", ".hxx"};
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [file](std::string_view ending) { return file.ends_with(ending); });
}

void OnSync(const SyncEvent& event) {
  if (History::eager()) return;
  const int64_t level = AnalysisLevel();
  const AnalyzedGraph graph{event.reason, event.site, event.hash,
                            event.trace.data.size() + event.trace.scalars.size(),
                            event.trace.roots.size()};
  std::string text;
  if (!event.cached && level >= 1) {
    text += GraphBlock(Analysis::kCompilation, graph, flags().pt_xla_debug_max_frame());
    CompilingGraphs().Add(graph);
  }
  if (event.cached && level >= 2)
    text += GraphBlock(Analysis::kExecution, graph, flags().pt_xla_debug_max_frame());
  // Once a step, in the first sync of the next one where mark_step() itself finds nothing to run.
  static std::atomic<int64_t> steps_seen{0};
  const int64_t steps = ir::Get(Counter::kMarkStep);
  if (flags().pt_xla_debug() && steps_seen.exchange(steps) != steps) text += AutoMetrics();
  Write(text);
}

void OnCompile(const CompileEvent& event) {
  if (History::eager()) return;
  const int64_t level = AnalysisLevel();
  if (level < 1) return;
  const AnalyzedGraph graph = CompilingGraphs().Take();
  std::string text = PostCompilationBlock(event.program) + WhatChangedBlock(event.program);
  if (level >= 2) text += GraphBlock(Analysis::kExecution, graph, flags().pt_xla_debug_max_frame());
  Write(text);
}

}  // namespace

int64_t AnalysisLevel() {
  if (flags().pt_xla_debug_level() >= 0) return flags().pt_xla_debug_level();
  return flags().pt_xla_debug() ? 100 : 0;
}

std::string GraphBlock(Analysis analysis, const AnalyzedGraph& graph, int64_t max_frames) {
  const bool compiles = analysis == Analysis::kCompilation;
  const std::vector<Site> frames = ir::FramesOf(graph.site);
  AnalysisBlock block(compiles ? "Compilation Analysis" : "Execution Analysis");
  block.Line(compiles ? "Compilation Cause" : "Execution Cause")
      .Line(Str("  ", Cause(graph.reason)))
      .Line("Graph Info: ")
      .Line(Str("  Graph Hash: ", HashText(graph.hash)))
      .Line(Str("  Number of Graph Inputs: ", graph.inputs))
      .Line(Str("  Number of Graph Outputs: ", graph.outputs))
      .Line(Str(frames.empty() || !IsCpp(frames[0].file) ? "Python" : "C++",
                " Frame Triggered Execution: "));
  const auto shown =
      std::min(frames.size(), static_cast<std::size_t>(std::max<int64_t>(max_frames, 0)));
  for (std::size_t i = 0; i < shown; ++i)
    block.Line(Str("  ", ir::ShortFunctionName(frames[i].function), " (", frames[i].file, ":",
                   frames[i].line, ")"));
  if (shown < frames.size()) block.Line("  ..........");
  return block.End();
}

std::string PostCompilationBlock(const CachedProgram& program) {
  const MemoryPlan& memory = program.memory;
  const int64_t updated = memory.bytes(MemoryPlan::Role::kUpdated);
  AnalysisBlock block("Post Compilation Analysis");
  block.Line(Str("Graph input size: ", Gigabytes(memory.argument_bytes())))
      .Line(Str("Graph output size: ", Gigabytes(memory.output_bytes + updated)))
      .Line(Str("Aliased Input size: ", Gigabytes(updated)))
      .Line(Str("Intermediate tensor size: ", Gigabytes(memory.temp_bytes)))
      .Line(Str("Compiled program size: ",
                Gigabytes(program.launcher.executable()->stats().code_bytes)));
  return Str("\nComputation hash: ", HashText(program.hash), "\n", block.End());
}

std::string WhatChangedBlock(const CachedProgram& program) {
  const Recompile& why = program.recompile;
  if (why.cause == RecompileCause::kFirst) return "";
  AnalysisBlock block("Recompilation Analysis");
  block.Line("What Changed").Line(Str("  ", why.Sentence()));
  if (!why.nearest.empty()) block.Line(Str("Compared With: ", why.nearest));
  return block.End();
}

void InitializeGraphAnalysis() {
  static const bool installed = [] {
    if (AnalysisLevel() <= 0 && !flags().pt_xla_debug()) return false;
    AddSyncObserver(OnSync);
    AddCompileObserver(OnCompile);
    return true;
  }();
  (void)installed;
}

}  // namespace lazuli::lazy
