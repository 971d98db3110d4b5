// lazuli-graph: looks at saved graphs - records of XLA_SAVE_TENSORS_FILE, HLO - and runs them again.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backend/client/registry.h"
#include "ir/hlo/proto/proto.h"
#include "ir/hlo/text/parser.h"
#include "ir/hlo/text/printer.h"
#include "ir/support/bytes_text.h"
#include "ir/support/status.h"
#include "ir/support/str.h"
#include "ir/support/text_file.h"
#include "lazy/graphs/graph_diff.h"
#include "lazy/graphs/graph_memory.h"
#include "lazy/graphs/graph_page.h"
#include "lazy/graphs/graph_table.h"
#include "lazy/graphs/profile_page.h"
#include "lowering/passes/registry.h"
#include "tools/graph_builder.h"
#include "tools/open_saved.h"
#include "tools/reduce_module.h"
#include "tools/run_module.h"
#include "tools/tool.h"

namespace lazuli::tools {
namespace {

using lazy::Diff;
using lazy::FormatName;
using lazy::GraphDifference;
using lazy::GraphOf;
using lazy::GraphPage;
using lazy::NodeDifference;
using lazy::NodeTable;
using lazy::PageGraph;
using lazy::ReadGraph;
using namespace ir;  // NOLINT(google-build-using-namespace): tools speak the vocabulary of every
                     // stage

constexpr std::string_view kUsage = R"(usage: lazuli-graph COMMAND FILE[#N] [FILE[#N]] [options]
Looks at saved graphs. FILE is what XLA_SAVE_TENSORS_FILE wrote (lazuli's or torch_xla's; for g.txt that is g.txt.0, which
is found by either name), a lazy graph as text, HLO text, or a serialised HloModuleProto if its name ends in .pb. #N is the
record, from 0; it may be left out where there is one.

  list FILE             a line for each record: number, format, nodes, hash, what asked for it; records in a row that
                        are equal are one line, "#3 to #12" (--all: a line for each)
  show FILE[#N]         the graph; --format=text (as saved), table, hlo, or svg (by dot, where GraphViz is installed)
  stats FILE[#N]        nodes by op and by scope, inputs and results, what its values take at a time
  diff A[#N] B[#M]      how the two differ, by nodes: the first with both source lines, and counts of the others (--all:
                        all of them); the exit status is 1 if they do
  run FILE[#N]          compiles and runs it on inputs from a seed: --device, --seed, --repeat
  reduce FILE[#N]       cuts it down to a small part on which --device and --compare disagree: --seed, --atol, --rtol
  html A[#N] [B[#M]]    a page for a browser, which needs no network: the graph and its memory over time, or two beside each
                        other and what differs;
                        with --pass=NAME,.. one graph as HLO before and after these passes (lazuli-opt --list-passes);
                        of a profile (LAZULI_PROFILE=FILE.json) a flame chart, memory over time, time by line

  -o OUT                write to OUT instead of standard output
  --help                print this
)";

struct Options : ReduceOptions {
  std::string command, out, format = "text", passes;
  std::vector<SavedName> names;
  int64_t repeat = 1;
  bool all = false;
};

absl::StatusOr<bool> TakeNumber(std::string_view argument, Options& options) {
  std::string value;
  if (TakeValue(argument, "--seed", &value)) {
    LAZULI_ASSIGN_OR_RETURN(options.seed, ParseInteger("--seed", value));
  } else if (TakeValue(argument, "--repeat", &value)) {
    LAZULI_ASSIGN_OR_RETURN(options.repeat, ParseInteger("--repeat", value));
    if (options.repeat < 1) return InvalidArgument("--repeat=", value, ": at least 1");
  } else if (TakeValue(argument, "--atol", &value)) {
    LAZULI_ASSIGN_OR_RETURN(options.atol, ParseNumber("--atol", value));
  } else if (TakeValue(argument, "--rtol", &value)) {
    LAZULI_ASSIGN_OR_RETURN(options.rtol, ParseNumber("--rtol", value));
  } else {
    return false;
  }
  return true;
}

absl::StatusOr<Options> ParseOptions(const std::vector<std::string_view>& arguments) {
  Options options;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string_view argument = arguments[i];
    LAZULI_ASSIGN_OR_RETURN(const bool taken, TakeNumber(argument, options));
    if (taken || TakeValue(argument, "--device", &options.device) ||
        TakeValue(argument, "--compare", &options.compare) ||
        TakeValue(argument, "--format", &options.format) ||
        TakeValue(argument, "--pass", &options.passes))
      continue;
    if (argument == "-o") {
      if (++i == arguments.size()) return InvalidArgument("-o needs the name of a file");
      options.out = arguments[i];
    } else if (argument == "--all") {
      options.all = true;
    } else if (argument.starts_with("-") && argument != "-") {
      return InvalidArgument("unknown option ", argument, "; --help lists them");
    } else if (options.command.empty()) {
      options.command = argument;
    } else {
      options.names.push_back(ParseSavedName(argument));
    }
  }
  return options;
}

absl::Status Write(const Options& options, std::string_view text) {
  if (!options.out.empty()) return WriteTextFile(options.out, std::string(text));
  std::fwrite(text.data(), 1, text.size(), stdout);
  return absl::OkStatus();
}

// One graph of a file.
struct Opened {
  std::string title;  // "g.txt.0#3"
  SavedRecord record;
  std::string path;
};
absl::StatusOr<Opened> Open(const SavedName& name) {
  LAZULI_ASSIGN_OR_RETURN(const SavedFile file, OpenSaved(name.file));
  LAZULI_ASSIGN_OR_RETURN(SavedRecord record, FindRecord(file, name.number));
  const bool numbered = file.records.size() > 1 || name.number >= 0;
  return Opened{numbered ? Str(file.path, "#", std::max<int64_t>(name.number, 0)) : file.path,
                std::move(record), file.path};
}

absl::StatusOr<std::unique_ptr<hlo::Module>> ModuleOf(const Opened& opened) {
  if (opened.record.format == SavedRecord::Format::kHlo) {
    auto module = hlo::ParseModule(opened.record.body);
    if (!module.ok()) return Prefixed(module.status(), Str(opened.title, ":"));
    return module;
  }
  if (opened.record.format == SavedRecord::Format::kProto) {
    auto module = hlo::ParseModuleProto(opened.record.body);
    if (!module.ok()) return Prefixed(module.status(), Str(opened.title, ": "));
    return module;
  }
  LAZULI_ASSIGN_OR_RETURN(const SavedGraph graph, ReadGraph(opened.record, opened.path));
  auto module = LowerGraph(graph);
  if (!module.ok()) return Prefixed(module.status(), Str(opened.title, ": "));
  return module;
}

std::string Line(const SavedNode& node) {
  const std::string place = node.place.ToString();
  return Str(node.name, " = ", node.shape, " ", node.op, "(", node.AttrText(), ")",
             node.label.empty() ? "" : Str(" ", node.label),
             node.scope.empty() ? "" : Str(" in ", node.scope),
             place.empty() ? "" : Str(" at ", place));
}

// --- commands

absl::Status List(const Options& options) {
  LAZULI_ASSIGN_OR_RETURN(const SavedFile file, OpenSaved(options.names[0].file));
  std::string text, last;
  std::size_t first = 0;  // of the records that `last` stands for
  const auto flush = [&](std::size_t end) {
    if (first == end) return;
    text += Str("#", first, end - first > 1 ? Str(" to #", end - 1) : "", "  ", last, "\n");
    first = end;
  };
  for (std::size_t i = 0; i < file.records.size(); ++i) {
    const SavedRecord& record = file.records[i];
    const absl::StatusOr<SavedGraph> graph = ReadGraph(record, file.path);
    std::string line = Str(FormatName(record.format), "  ",
                           graph.ok() ? Str(graph->nodes.size(), " nodes") : "not read",
                           record.graph_hash.empty() ? "" : Str("  hash ", record.graph_hash),
                           record.graph_name.empty() ? "" : Str("  ", record.graph_name),
                           record.frames.empty() ? "" : Str("  ", record.frames[0]),
                           graph.ok() ? "" : Str("  (", Message(graph.status()), ")"));
    if (options.all || line != last || record.body != file.records[i - 1].body) flush(i);
    last = std::move(line);
  }
  flush(file.records.size());
  LAZULI_RETURN_IF_ERROR(Write(options, text));
  return file.torn;
}

std::string DotText(const SavedGraph& graph) {
  const auto quoted = [](std::string_view text) {
    std::string out;
    for (const char c : text) out += c == '"' || c == '\\' ? Str("\\", c) : std::string(1, c);
    return out;
  };
  std::string text = "digraph G {\nnode [shape=box fontname=\"sans-serif\" fontsize=10];\n";
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const SavedNode& node = graph.nodes[i];
    text += Str("n", i, " [label=\"", quoted(node.op), " ", quoted(node.name), "\\n",
                quoted(node.shape), "\" tooltip=\"", quoted(node.place.ToString()), "\"];\n");
    for (const SavedNode::Operand& operand : node.operands)
      text += Str("n", operand.node, " -> n", i, ";\n");
  }
  return text + "}\n";
}

// What GraphViz makes of the graph.
absl::StatusOr<std::string> Svg(const SavedGraph& graph) {
  std::string file = (std::filesystem::temp_directory_path() / "lazuli-graph-XXXXXX").string();
  const int fd = ::mkstemp(file.data());
  if (fd < 0) return NotFound("cannot write to ", file);
  std::FILE* out = ::fdopen(fd, "w");
  const std::string dot = DotText(graph);
  std::fwrite(dot.data(), 1, dot.size(), out);
  std::fclose(out);
  std::string svg;
  int status = -1;
  if (std::FILE* pipe = ::popen(Str("dot -Tsvg '", file, "' 2>/dev/null").c_str(), "r")) {
    char buffer[65536];
    while (const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe))
      svg.append(buffer, count);
    status = ::pclose(pipe);
  }
  std::error_code ignored;
  std::filesystem::remove(file, ignored);
  if (status != 0 || svg.empty())
    return FailedPrecondition(
        "--format=svg needs GraphViz's dot, which does not run here; "
        "--format=table or the command html do without");
  return svg;
}

absl::Status Show(const Options& options) {
  LAZULI_ASSIGN_OR_RETURN(const Opened opened, Open(options.names[0]));
  if (options.format == "text" && opened.record.format != SavedRecord::Format::kProto)
    return Write(options, opened.record.body);
  if (options.format == "hlo" || options.format == "text") {
    LAZULI_ASSIGN_OR_RETURN(const std::unique_ptr<hlo::Module> module, ModuleOf(opened));
    return Write(options, module->ToString());
  }
  if (options.format != "table" && options.format != "svg")
    return InvalidArgument("--format=", options.format, ": there are text, table, hlo, svg");
  LAZULI_ASSIGN_OR_RETURN(const SavedGraph graph, ReadGraph(opened.record, opened.path));
  if (options.format == "table") return Write(options, NodeTable(graph));
  LAZULI_ASSIGN_OR_RETURN(const std::string svg, Svg(graph));
  return Write(options, svg);
}

std::string Counts(std::string_view title, const std::map<std::string, int64_t>& counts) {
  std::vector<std::pair<int64_t, std::string>> rows;
  for (const auto& [name, count] : counts) rows.emplace_back(-count, name);
  std::sort(rows.begin(), rows.end());
  std::string text = Str(title, "\n");
  for (const auto& [count, name] : rows) text += Str("  ", -count, "  ", name, "\n");
  return text;
}

absl::Status Stats(const Options& options) {
  LAZULI_ASSIGN_OR_RETURN(const Opened opened, Open(options.names[0]));
  LAZULI_ASSIGN_OR_RETURN(const SavedGraph graph, ReadGraph(opened.record, opened.path));
  std::map<std::string, int64_t> ops, scopes;
  int64_t inputs = 0, results = 0, longest = 0;
  std::vector<int64_t> depth(graph.nodes.size());
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const SavedNode& node = graph.nodes[i];
    ++ops[node.op];
    if (!node.scope.empty()) ++scopes[node.scope];
    inputs += node.group.empty() && (node.op == "parameter" || node.op == "xla::device_data" ||
                                     node.op == "prim::Scalar")
                  ? 1
                  : 0;
    results += static_cast<int64_t>(node.roots.size());
    for (const SavedNode::Operand& operand : node.operands)
      depth[i] = std::max(depth[i], depth[operand.node] + 1);
    longest = std::max(longest, depth[i]);
  }
  std::string text = Str(opened.title, ": ", graph.nodes.size(), " nodes, ", inputs, " inputs, ",
                         results, " results, ", longest, " steps on the longest path\n");
  const lazy::MemoryPeak peak = lazy::PeakOf(graph);
  if (peak.bytes > 0)
    text += Str("values take at most ", BytesText(peak.bytes), " at a time, at ",
                Line(graph.nodes[peak.node]), "\n");
  text += Counts("by op:", ops);
  if (!scopes.empty()) text += Counts("by scope:", scopes);
  return Write(options, text);
}

std::string DifferenceText(const SavedGraph& a, const SavedGraph& b, const NodeDifference& d) {
  std::string text = Str(d.what, "\n");
  if (d.a >= 0) text += Str("  A  ", Line(a.nodes[static_cast<std::size_t>(d.a)]), "\n");
  if (d.b >= 0) text += Str("  B  ", Line(b.nodes[static_cast<std::size_t>(d.b)]), "\n");
  return text;
}

absl::Status DiffTwo(const Options& options) {
  LAZULI_ASSIGN_OR_RETURN(const Opened first, Open(options.names[0]));
  LAZULI_ASSIGN_OR_RETURN(const Opened second, Open(options.names[1]));
  LAZULI_ASSIGN_OR_RETURN(const SavedGraph a, ReadGraph(first.record, first.path));
  LAZULI_ASSIGN_OR_RETURN(const SavedGraph b, ReadGraph(second.record, second.path));
  if (a.is_hlo != b.is_hlo)
    return InvalidArgument(first.title, " is ", a.is_hlo ? "HLO" : "a lazy graph", ", ",
                           second.title, " is ", b.is_hlo ? "HLO" : "a lazy graph",
                           ": two of a kind are compared");
  const GraphDifference difference = Diff(a, b);
  if (difference.differs.empty())
    return Write(options, Str(first.title, " and ", second.title, " are the same graph of ",
                              a.nodes.size(), " nodes\n"));
  std::string text = Str("A  ", first.title, ": ", a.nodes.size(), " nodes\nB  ", second.title,
                         ": ", b.nodes.size(), " nodes\n");
  const std::size_t shown = options.all ? difference.differs.size() : 1;
  for (std::size_t i = 0; i < shown; ++i)
    text += Str(i == 0 ? "first difference: " : "", DifferenceText(a, b, difference.differs[i]));
  int64_t changed = 0, only_a = 0, only_b = 0;
  for (const NodeDifference& d : difference.differs)
    ++(d.a < 0 ? only_b : d.b < 0 ? only_a : changed);
  text += Str("in all ", changed, " nodes changed, ", only_a, " are only in A, ", only_b,
              " only in B\n");
  LAZULI_RETURN_IF_ERROR(Write(options, text));
  return absl::Status(absl::StatusCode::kUnknown, "");
}

absl::Status RunOne(const Options& options) {
  LAZULI_ASSIGN_OR_RETURN(const Opened opened, Open(options.names[0]));
  LAZULI_ASSIGN_OR_RETURN(std::unique_ptr<hlo::Module> module, ModuleOf(opened));
  RegisterPlatforms();
  LAZULI_ASSIGN_OR_RETURN(const backend::Device device, backend::FindDevice(options.device));
  std::vector<Literal> inputs;
  for (const Shape& shape : InputShapes(*module))
    inputs.push_back(RandomInput(shape, static_cast<uint64_t>(options.seed), inputs.size()));
  auto result = RunModule(std::move(module), device, inputs, options.repeat);
  if (!result.ok()) return Prefixed(result.status(), Str(opened.title, ": "));
  std::vector<std::string> shapes;
  for (const Literal& output : result->outputs) shapes.push_back(output.shape().ToString());
  return Write(options,
               Str(opened.title, ": ", Join(shapes, ", "), "; compiled in ", result->compile_ms,
                   " ms, ran in ", result->run_ms, " ms, ", result->stats.kernels, " kernels\n"));
}

absl::Status Reduce(const Options& options) {
  LAZULI_ASSIGN_OR_RETURN(const Opened opened, Open(options.names[0]));
  LAZULI_ASSIGN_OR_RETURN(const std::unique_ptr<hlo::Module> module, ModuleOf(opened));
  RegisterPlatforms();
  LAZULI_ASSIGN_OR_RETURN(const std::string text, ReducedText(*module, options, opened.title));
  return Write(options, text);
}

// "cse,dce"
absl::Status RunPasses(hlo::Module& module, std::string_view names) {
  while (!names.empty()) {
    const std::size_t end = names.find(',');
    LAZULI_ASSIGN_OR_RETURN(const std::unique_ptr<lowering::Pass> pass,
                            lowering::MakePass(names.substr(0, end)));
    LAZULI_RETURN_IF_ERROR(pass->Run(module).status());
    names.remove_prefix(end == std::string_view::npos ? names.size() : end + 1);
  }
  return absl::OkStatus();
}

absl::Status Page(const Options& options, const Opened& first, const SavedGraph& a,
                  const std::string& second, const SavedGraph& b) {
  const GraphDifference difference = Diff(a, b);
  return Write(options, GraphPage({{first.title, &a}, {second, &b}}, &difference));
}

// A trace of a profile instead of a graph.
bool IsTrace(std::string_view text) {
  return text.starts_with("{") && text.substr(0, 1000).find("traceEvents") != text.npos;
}

absl::Status Html(const Options& options) {
  if (options.names.size() == 1 && options.names[0].number < 0) {
    const absl::StatusOr<std::string> text = ReadAll(options.names[0].file);
    if (text.ok() && IsTrace(*text))
      return Write(options, lazy::ProfilePage(options.names[0].file, *text));
  }
  LAZULI_ASSIGN_OR_RETURN(const Opened first, Open(options.names[0]));
  if (!options.passes.empty()) {
    if (options.names.size() > 1) return InvalidArgument("--pass is for one graph, two are given");
    LAZULI_ASSIGN_OR_RETURN(const std::unique_ptr<hlo::Module> module, ModuleOf(first));
    const SavedGraph before = GraphOf(*module);
    LAZULI_RETURN_IF_ERROR(RunPasses(*module, options.passes));
    return Page(options, first, before, Str("after ", options.passes), GraphOf(*module));
  }
  LAZULI_ASSIGN_OR_RETURN(const SavedGraph a, ReadGraph(first.record, first.path));
  if (options.names.size() == 1) return Write(options, GraphPage({{first.title, &a}}, nullptr));
  LAZULI_ASSIGN_OR_RETURN(const Opened second, Open(options.names[1]));
  LAZULI_ASSIGN_OR_RETURN(const SavedGraph b, ReadGraph(second.record, second.path));
  return Page(options, first, a, second.title, b);
}

struct Command {
  std::string_view name;
  absl::Status (*run)(const Options&);
  std::size_t least, most;  // graphs it takes
};
constexpr Command kCommands[] = {
    {"list", List, 1, 1},    {"show", Show, 1, 1},  {"stats", Stats, 1, 1},
    {"diff", DiffTwo, 2, 2}, {"run", RunOne, 1, 1}, {"reduce", Reduce, 1, 1},
    {"html", Html, 1, 2},
};

absl::Status Run(const std::vector<std::string_view>& arguments) {
  if (std::find(arguments.begin(), arguments.end(), "--help") != arguments.end()) {
    std::fwrite(kUsage.data(), 1, kUsage.size(), stdout);
    return absl::OkStatus();
  }
  LAZULI_ASSIGN_OR_RETURN(const Options options, ParseOptions(arguments));
  for (const Command& command : kCommands) {
    if (command.name != options.command) continue;
    if (options.names.size() < command.least || options.names.size() > command.most)
      return InvalidArgument(command.name, " takes ",
                             command.most > command.least ? "one or two graphs"
                             : command.most == 1          ? "one graph"
                                                          : "two graphs",
                             ", ", options.names.size(), " are given");
    return command.run(options);
  }
  return InvalidArgument(
      options.command.empty() ? "no command" : "no such command: ", options.command,
      "; there are list, show, stats, diff, run, reduce, html (--help)");
}

}  // namespace
}  // namespace lazuli::tools

int main(int argc, char** argv) {
  return lazuli::tools::ToolMain("lazuli-graph", lazuli::tools::Run, argc, argv);
}
