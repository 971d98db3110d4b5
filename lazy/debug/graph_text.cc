#include "lazy/debug/graph_text.h"

#include <atomic>
#include <optional>
#include <ranges>

#include "ir/graph/stack.h"
#include "ir/hlo/text/attr_text.h"
#include "lazy/execution/sync.h"
#include "lazy/graphs/graph_page.h"
#include "lazy/graphs/graph_table.h"
#include "lazy/tensor/leaves.h"
#include "lazy/tensor/status_error.h"

namespace lazuli::lazy {
namespace {

std::string ValueText(const Value& v) {
  return v.node->num_outputs() > 1 ? Str("%", v.node->mark_index, ".", v.index)
                                   : Str("%", v.node->mark_index);
}

std::string ShapeText(const Node& node) {
  if (node.num_outputs() == 1) return node.shape().ToString(/*with_layout=*/true);
  std::vector<std::string> parts;
  for (uint32_t i = 0; i < node.num_outputs(); ++i) parts.push_back(node.shape(i).ToString(true));
  return Str("(", Join(parts, ", "), ")");
}

// Of a name that users give: commas and spaces end a tag.
std::string TagText(std::string_view name) {
  std::string text(name);
  for (char& c : text) {
    if (c == ',' || c == ' ' || c == '\n' || c == '\r' || c == '\t') c = '_';
  }
  return text;
}

// Where it was recorded: scope, line, note.
std::string OriginText(const Node& node) {
  const Site& site = GetSite(node.site());
  std::string text;
  if (site.scope != ir::kNoScope) text += Str(", scope=", TagText(ir::ScopeText(site.scope)));
  if (site.line != 0)
    text += Str(", location=", ir::ShortFunctionName(site.function), "@", site.ToString());
  if (!site.note.empty()) text += Str(", user_metadata=", TagText(site.note));
  return text;
}

// The parameters of HLO that leaves become, by position of the node.
std::vector<int64_t> ParameterNumbers(const Trace& trace) {
  std::vector<int64_t> numbers(trace.nodes.size());
  int64_t next = 0;
  for (const Node* leaf : trace.data) numbers[leaf->mark_index] = next++;
  for (const Node* leaf : trace.scalars) numbers[leaf->mark_index] = next++;
  return numbers;
}

std::string LeafText(const Node& leaf, int64_t number) {
  std::string text = Str(", parameter=p", number, ".", number + 1);
  if (leaf.kind() == NodeKind::kData) {
    const std::string_view label = static_cast<const DataNode&>(leaf).label();
    if (!label.empty()) text += Str(", name=", TagText(label));
  }
  return text;
}

// Positions of the node among the roots, with which of its outputs that is unless it is the first,
// or "".
std::string RootText(const Trace& trace, const Node& node, std::string_view separator) {
  std::string text;
  for (std::size_t i = 0; i < trace.roots.size(); ++i) {
    const Value& root = trace.roots[i];
    if (root.node.get() == &node)
      text += Str(separator, "ROOT=", i, root.index == 0 ? "" : Str(".", root.index));
  }
  return text;
}

// The attributes of each node, its device the last: a root's, or that of a user.
std::vector<std::string> AttrTexts(const Trace& trace, Devices devices) {
  std::vector<std::optional<backend::Device>> of_node(trace.nodes.size());
  if (devices.size() == 1) of_node.assign(of_node.size(), devices[0]);
  for (std::size_t i = 0; i < trace.roots.size() && devices.size() > 1; ++i)
    of_node[trace.roots[i].node->mark_index] = devices[i];
  std::vector<std::string> texts(trace.nodes.size());
  for (const Node* node : trace.nodes | std::views::reverse) {
    const std::optional<backend::Device>& device = of_node[node->mark_index];
    std::string& text = texts[node->mark_index];
    text = node->AttrText();
    if (!device) continue;
    if (node->kind() != NodeKind::kData)  // data know theirs
      text += Str(", device=", DataNode::DumpDeviceName(*device));
    for (const Value& v : node->operands()) {
      if (!of_node[v.node->mark_index]) of_node[v.node->mark_index] = device;
    }
  }
  return texts;
}

// ", dim=1, dims=(0, 1)" as one line of a label for each attribute.
std::string AttrLines(std::string_view attrs) {
  std::string lines, current;
  auto flush = [&] {
    if (!current.empty())
      lines +=
          Str("\\n", hlo::EscapedLabel(current.substr(0, 64)), current.size() > 64 ? "..." : "");
    current.clear();
  };
  int depth = 0;
  for (std::size_t i = 0; i < attrs.size(); ++i) {
    if (attrs[i] == '(') ++depth;
    if (attrs[i] == ')') --depth;
    if (depth == 0 && attrs.substr(i, 2) == ", ") {
      flush();
      ++i;
    } else {
      current += attrs[i];
    }
  }
  flush();
  return lines;
}

}  // namespace

std::string GraphText(const Trace& trace, Devices devices) {
  const std::vector<int64_t> parameters = ParameterNumbers(trace);
  const std::vector<std::string> attrs = AttrTexts(trace, devices);
  std::string out = "IR {\n";
  for (const Node* node : trace.nodes) {
    std::vector<std::string> operands, before;
    const std::size_t read = node->operands().size() - node->num_before();
    for (const Value& v : node->operands())
      (operands.size() < read ? operands : before).push_back(ValueText(v));
    out += Str("  %", node->mark_index, " = ", ShapeText(*node), " ", node->dump_name(), "(",
               Join(operands, ", "), ")");
    if (!before.empty()) out += Str(" @ ", Join(before, " "));
    if (node->num_outputs() > 1) out += Str(", num_outputs=", node->num_outputs());
    out += OriginText(*node);
    if (node->kind() != NodeKind::kOp) out += LeafText(*node, parameters[node->mark_index]);
    out += Str(attrs[node->mark_index], RootText(trace, *node, ", "), "\n");
  }
  return out + "}\n";
}

std::string GraphDot(const Trace& trace, Devices devices) {
  const std::vector<std::string> attrs = AttrTexts(trace, devices);
  std::string out = "digraph G {\n";
  for (const Node* node : trace.nodes) {
    out += Str("  node", node->mark_index, " [label=\"", node->dump_name(), "\\n", ShapeText(*node),
               AttrLines(attrs[node->mark_index]), RootText(trace, *node, "\\n"), "\"]\n");
  }
  for (const Node* node : trace.nodes | std::views::reverse) {
    for (std::size_t i = 0; i < node->operands().size(); ++i) {
      const Value& v = node->operands()[i];
      out += Str("  node", v.node->mark_index, " -> node", node->mark_index);
      std::string label = node->operands().size() > 1 ? Str("i=", i) : "";
      if (v.node->num_outputs() > 1) label += Str(label.empty() ? "" : ",", "o=", v.index);
      out += label.empty() ? "\n" : Str(" [label=\"", label, "\"]\n");
    }
  }
  return out + "}\n";
}

absl::StatusOr<std::string> GraphHlo(const Trace& trace) {
  static std::atomic<uint64_t> next{1};
  LAZULI_ASSIGN_OR_RETURN(lowering::EmittedModule emitted,
                          EmitTrace(trace, Str("IrToHlo.", next.fetch_add(1))));
  return emitted.module->ToString();
}

absl::StatusOr<SavedGraph> GraphToShow(const Trace& trace, Devices devices) {
  SavedRecord record;
  record.format = SavedRecord::Format::kText;
  record.body = GraphText(trace, devices);
  LAZULI_ASSIGN_OR_RETURN(SavedGraph graph, ReadGraph(record, "graph"));
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    SavedNode& node = graph.nodes[i];
    const SiteId id = trace.nodes[i]->site();
    const Site& site = GetSite(id);
    node.place.file = site.file;
    if (site.stack == ir::kNoStack) continue;
    for (const Site& frame : ir::FramesOf(id))
      node.frames.push_back(
          Str(ir::ShortFunctionName(frame.function), " (", frame.file, ":", frame.line, ")"));
  }
  return graph;
}

absl::StatusOr<std::string> GraphHtml(const Trace& trace, Devices devices, std::string_view title) {
  LAZULI_ASSIGN_OR_RETURN(const SavedGraph graph, GraphToShow(trace, devices));
  return GraphPage({{std::string(title), &graph}}, nullptr);
}

namespace {
absl::StatusOr<std::string> FormattedGraph(const Trace& trace, Devices devices,
                                           GraphFormat format) {
  switch (format) {
    case GraphFormat::kText:
      return GraphText(trace, devices);
    case GraphFormat::kDot:
      return GraphDot(trace, devices);
    case GraphFormat::kHlo:
      return GraphHlo(trace);
    case GraphFormat::kHtml:
      return GraphHtml(trace, devices, "pending graph");
    case GraphFormat::kTable:
      break;
  }
  LAZULI_ASSIGN_OR_RETURN(const SavedGraph graph, GraphToShow(trace, devices));
  return NodeTable(graph);
}
}  // namespace

std::string PendingGraph(absl::Span<const Tensor> tensors, GraphFormat format) {
  Context& context = Context::Current();
  std::vector<Storage*> storages;
  std::vector<backend::Device> devices;
  for (const Tensor& tensor : tensors) {
    if (!tensor.defined()) throw StatusError(InvalidArgument("graph: a tensor is undefined"));
    storages.push_back(&tensor.storage());
    devices.push_back(tensor.device());
  }
  Trace trace;
  std::string text;
  {
    trace.roots.resize(storages.size());
    std::optional<Context::Lock> lock;
    context.LockWithValues(lock, storages, kNoSite, absl::MakeSpan(trace.roots));
    TraceGraph(trace);
    absl::StatusOr<std::string> formatted = FormattedGraph(trace, devices, format);
    ThrowIfError(formatted.status());
    text = *std::move(formatted);
  }
  return text;
}

}  // namespace lazuli::lazy
