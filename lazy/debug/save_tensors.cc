#include "lazy/debug/save_tensors.h"

#include <algorithm>
#include <atomic>
#include <cstdio>

#include "ir/graph/key.h"
#include "ir/graph/stack.h"
#include "ir/support/flags.h"
#include "ir/support/text_file.h"
#include "lazy/debug/graph_text.h"

namespace lazuli::lazy {
namespace {

std::string Hex(uint64_t v) {
  char text[17];
  std::snprintf(text, sizeof text, "%llx", static_cast<unsigned long long>(v));
  return text;
}

// Hashes of what each root is computed from, in one walk: of a node's kind, attributes and
// operands' hashes.
std::vector<std::string> RootHashes(const Trace& trace) {
  std::vector<uint64_t> hashes;
  KeyWriter key;
  for (const Node* node : trace.nodes) {
    key.Clear();
    key.Word(static_cast<uint32_t>(node->kind()));
    key.Append(node->shape());
    node->AppendKey(key);
    for (const Value& v : node->operands()) {
      key.Long(hashes[v.node->mark_index]);
      key.Word(v.index);
    }
    hashes.push_back(key.Hash());
  }
  std::vector<std::string> result;
  for (const Value& root : trace.roots)
    result.push_back(Hex(Mix(hashes[root.node->mark_index], root.index)));
  return result;
}

std::string_view Caller(SyncReason reason) {
  switch (reason) {
    case SyncReason::kUser:
      return "mark_step";
    case SyncReason::kRead:
      return "read";
    case SyncReason::kForeignContext:
      return "use in another context";
    case SyncReason::kGraphLimit:
      return "graph limit";
    case SyncReason::kUpdate:
      return "update after update";
    case SyncReason::kSize:
      return "read of a size";
  }
  return "";
}

// A line for each frame, the innermost first; a site without a function is what asked.
std::string FramesText(const SyncEvent& event) {
  std::string text;
  for (const ir::Site& frame : ir::FramesOf(event.site))
    text += Str(
        "  ", frame.function.empty() ? Caller(event.reason) : ir::ShortFunctionName(frame.function),
        " (", frame.file, ":", frame.line, ")\n");
  return text.empty() ? Str("  ", Caller(event.reason), " ()\n") : text;
}

// What follows the module, the device's plan, as comments: the text is HLO for those who read it.
std::string WithPlanAsComments(const std::string& text) {
  const std::size_t end = text.rfind("\n}\n");
  if (end == std::string::npos) return text;
  const std::size_t plan = end + 3;
  std::string commented = text.substr(0, plan);
  for (std::size_t at = plan; at < text.size();) {
    const std::size_t next = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string line = text.substr(at, next - at);
    commented += Str(line == "\n" ? "" : "// ", line);
    at = next;
  }
  return commented;
}

// Of XLA_DUMP_POST_OPTIMIZATIONS: compiles once more.
absl::StatusOr<std::string> OptimizedHlo(const SyncEvent& event) {
  LAZULI_ASSIGN_OR_RETURN(const backend::CompileOptions options, SyncOptionsFor(event.device));
  LAZULI_ASSIGN_OR_RETURN(lowering::EmittedModule emitted, EmitTrace(event.trace, event.name));
  LAZULI_ASSIGN_OR_RETURN(const backend::ExecutablePtr executable,
                          event.device.client->Compile(std::move(emitted.module), options));
  return WithPlanAsComments(executable->ToString());
}

absl::StatusOr<std::string> GraphBody(const SyncEvent& event, const std::string& format) {
  if (format == "text") return GraphText(event.trace, {{event.device}});
  if (format == "dot") return GraphDot(event.trace, {{event.device}});
  if (format == "hlo")
    return flags().dump_post_optimizations() ? OptimizedHlo(event) : GraphHlo(event.trace);
  return InvalidArgument("XLA_SAVE_TENSORS_FMT: '", format, "' is not text, dot, hlo or html");
}

// A page for each graph: FILE.0.3.html is the fourth of this process.
absl::Status SavePage(const SyncEvent& event) {
  static std::atomic<int64_t> next{0};
  const std::string path =
      Str(flags().save_tensors_file(), ".", event.device.ordinal, ".", next.fetch_add(1), ".html");
  LAZULI_ASSIGN_OR_RETURN(const std::string page,
                          GraphHtml(event.trace, {{event.device}}, event.name));
  return Prefixed(ir::WriteTextFile(path, page), "XLA_SAVE_TENSORS_FILE: ");
}

// A dump that cannot be written is said once and does not stop the program that is being looked at.
void SaveTensors(const SyncEvent& event) {
  if (flags().save_tensors_file().empty()) return;
  if (flags().save_tensors_fmt() == "html") return ir::SayOnce(SavePage(event));
  absl::StatusOr<std::string> record = SaveTensorsRecord(event, flags().save_tensors_fmt());
  absl::Status status = record.status();
  if (status.ok()) {
    status = Prefixed(
        ir::AppendToTextFile(Str(flags().save_tensors_file(), ".", event.device.ordinal), *record),
        "XLA_SAVE_TENSORS_FILE: ");
  }
  ir::SayOnce(status);
}

}  // namespace

absl::StatusOr<std::string> SaveTensorsRecord(const SyncEvent& event, const std::string& format) {
  const std::vector<std::string> hashes = RootHashes(event.trace);
  LAZULI_ASSIGN_OR_RETURN(const std::string body, GraphBody(event, format));
  return Str("[ScheduleSyncTensorsGraph]\nTensorsGraphInfo:\n", FramesText(event),
             "\nRoot Hashes: (", Join(hashes, ", "), ")\n\n## BEGIN_GRAPH\n", body,
             "\nGraph Hash: ", Hex(event.hash), "\n\n## END_GRAPH\n\n");
}

void InitializeSaveTensors() {
  static const bool installed = [] {
    if (!flags().save_tensors_file().empty()) AddSyncObserver(SaveTensors);
    return true;
  }();
  (void)installed;
}

}  // namespace lazuli::lazy
