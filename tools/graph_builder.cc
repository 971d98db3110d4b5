#include "tools/graph_builder.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ir/hlo/text/cursor.h"
#include "ir/hlo/text/parser_internal.h"
#include "ir/support/status.h"
#include "ir/support/str.h"
#include "lazy/ops/op_list.h"
#include "lazy/tensor/leaves.h"
#include "lazy/tensor/status_error.h"
#include "lowering/emit/emit.h"

namespace lazuli::tools {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace): as in tool.cc

// Stands for data that the file does not have.
class SavedLeaf final : public lazy::LeafNode {
 public:
  SavedLeaf(Shape shape, SiteId site) : LeafNode(NodeKind::kData, site) {
    shapes_.push_back(std::move(shape));
  }
  std::string_view name() const override { return "device_data"; }
  std::string_view dump_name() const override { return "xla::device_data"; }
};

// --- values of attributes, as AttrValueText writes them

template <class T>
bool ParseNumber(std::string_view text, T& value) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  return result.ec == std::errc() && result.ptr == text.data() + text.size();
}

template <class T>
bool ParseValue(std::string_view text, T& value) {
  if constexpr (std::is_same_v<T, DType>) {
    const std::optional<DType> dtype = ParseDType(text);
    if (dtype) value = *dtype;
    return dtype.has_value();
  } else if constexpr (std::is_same_v<T, double> || std::is_same_v<T, float>) {
    return ParseNumber(text, value);
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    int64_t number = 0;
    if (!ParseNumber(text, number)) return false;
    value = static_cast<T>(number);
    return true;
  } else if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    if constexpr (std::is_same_v<T, std::string>) value = text;
    return std::is_same_v<T, std::string>;
  } else if constexpr (std::is_same_v<T, lazy::CalledProgram> ||
                       std::is_same_v<T, lazy::CallForm>) {
    return false;  // the text has their names only
  } else if constexpr (requires { value.has_value(); }) {
    value.reset();
    return text == "none" || ParseValue(text, value.emplace());
  } else {
    if (!text.starts_with("(") || !text.ends_with(")")) return false;
    text = text.substr(1, text.size() - 2);
    std::vector<int64_t> numbers;
    while (!text.empty()) {
      const std::size_t end = text.find(", ");
      if (!ParseNumber(text.substr(0, end), numbers.emplace_back())) return false;
      text.remove_prefix(end == std::string_view::npos ? text.size() : end + 2);
    }
    if constexpr (requires { value.resize(numbers.size()); }) value.resize(numbers.size());
    if (value.size() != numbers.size()) return false;
    std::copy(numbers.begin(), numbers.end(), value.begin());
    return true;
  }
}

// "f32[2]{0}" or "(f32[2]{0}, s64[2]{0})".
absl::StatusOr<std::vector<Shape>> ParseShapes(const SavedNode& node) {
  hlo::Cursor in(node.shape);
  Shape shape;
  if (!hlo::internal::ParseShape(in, &shape))
    return InvalidArgument(node.name, ": the shape ", node.shape, ": ", Message(in.Error()));
  if (!shape.IsTuple()) return std::vector<Shape>{shape};
  return std::vector<Shape>(shape.tuple().begin(), shape.tuple().end());
}

// --- ops

struct Attempt {
  const SavedNode& node;
  absl::Span<const Value> operands;
  SiteId site;
  NodePtr made;
  bool known = false;    // there is an op of this name
  absl::Status refused;  // why the last one of it did not take the operands
};

template <class T>
void Try(Attempt& attempt) {
  using Traits = lazy::internal::LowerTraits<decltype(&T::Lower)>;
  if (attempt.made || T::kDumpName != attempt.node.op) return;
  attempt.known = true;
  const std::size_t count = attempt.operands.size();
  if (Traits::kVariadic ? count < Traits::kArity : count != Traits::kArity) return;
  if (attempt.node.attrs.size() != T::kAttrCount) return;
  T op{};
  bool fits = true;
  std::size_t at = 0;
  op.VisitAttrs([&](std::string_view name, auto& member) {
    const auto& [given, text] = attempt.node.attrs[at++];
    fits = fits && given == name && ParseValue(text, member);
  });
  if (!fits) return;
  std::vector<Value> operands(attempt.operands.begin(), attempt.operands.end());
  try {
    attempt.made =
        MakeIntrusive<lazy::OpNode<T>>(std::move(op), absl::MakeSpan(operands), attempt.site);
  } catch (const lazy::StatusError& error) {
    attempt.refused = error.status();
  }
}

absl::StatusOr<NodePtr> MakeOp(const SavedNode& node, absl::Span<const Value> operands,
                               SiteId site) {
  if (node.op == lazy::CallOp::kDumpName)
    return Unimplemented(node.name,
                         ": the text of a graph has the name of a called program, not the "
                         "program; HLO has it (XLA_SAVE_TENSORS_FMT=hlo)");
  Attempt attempt{node, operands, site, {}, false, {}};
  lazy::AllOps::ForEach([&]<class T>() { Try<T>(attempt); });
  if (attempt.made) return attempt.made;
  if (!attempt.refused.ok()) return Prefixed(attempt.refused, Str(node.name, ": "));
  if (!attempt.known) return Unimplemented(node.name, ": lazuli has no op ", node.op);
  return Unimplemented(node.name, ": lazuli has no ", node.op, " of ", operands.size(),
                       " operands with the attributes (", node.AttrText(), ")");
}

absl::Status CheckShapes(const SavedNode& node, const Node& made,
                         absl::Span<const Shape> expected) {
  bool same = made.num_outputs() == expected.size();
  for (uint32_t i = 0; same && i < made.num_outputs(); ++i)
    same = Compatible(made.shape(i), expected[i]);
  if (same) return absl::OkStatus();
  std::vector<std::string> shapes;
  for (uint32_t i = 0; i < made.num_outputs(); ++i) shapes.push_back(made.shape(i).ToString());
  return InvalidArgument(node.name, ": ", node.op, " gives ", Join(shapes, ", "),
                         " here, the file says ", node.shape);
}

absl::StatusOr<NodePtr> MakeNode(const SavedNode& node, absl::Span<const Value> operands) {
  SiteId site = node.place.line == 0 ? kNoSite
                                     : InternSiteCopy(node.place.file, node.place.function,
                                                      static_cast<uint32_t>(node.place.line));
  LAZULI_ASSIGN_OR_RETURN(const std::vector<Shape> shapes, ParseShapes(node));
  NodePtr made;
  if (node.op == "xla::device_data" && operands.empty() && shapes.size() == 1) {
    made = MakeIntrusive<SavedLeaf>(shapes[0], site);
  } else if (node.op == "prim::Scalar" && operands.empty() && shapes.size() == 1) {
    made = MakeIntrusive<lazy::ScalarNode>(shapes[0].dtype(), uint64_t{0}, site);
  } else {
    LAZULI_ASSIGN_OR_RETURN(made, MakeOp(node, operands, site));
  }
  LAZULI_RETURN_IF_ERROR(CheckShapes(node, *made, shapes));
  return made;
}

// Results by position; nodes that nobody uses and that are no result are there for their checks.
absl::Status AddRoots(const SavedGraph& graph, BuiltGraph& built) {
  std::vector<bool> used(graph.nodes.size());
  std::vector<Value>& roots = built.trace.roots;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    for (const SavedNode::Operand& operand : graph.nodes[i].operands) used[operand.node] = true;
    for (const SavedNode::Root& root : graph.nodes[i].roots) {
      used[i] = true;
      if (root.position < 0 || root.position > 1 << 20 ||
          root.output >= built.nodes[i]->num_outputs())
        return InvalidArgument(graph.nodes[i].name, ": there is no result ", root.position, ".",
                               root.output);
      const auto position = static_cast<std::size_t>(root.position);
      if (roots.size() <= position) roots.resize(position + 1);
      roots[position] = {built.nodes[i], root.output};
    }
  }
  for (std::size_t i = 0; i < roots.size(); ++i) {
    if (!roots[i]) return InvalidArgument("no node is ROOT=", i);
  }
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!used[i]) built.trace.checked.push_back(built.nodes[i]);
  }
  return absl::OkStatus();
}

// Builds and lowers the graph in a child, which an op that meets what it never expects may end.
absl::Status TryToBuild(const SavedGraph& graph) {
  void* shared = ::mmap(nullptr, sizeof(std::size_t), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) return absl::OkStatus();
  auto* at = new (shared) std::size_t(0);
  absl::Status status;
  if (const pid_t child = ::fork(); child == 0) {
    const int null = ::open("/dev/null", O_WRONLY);
    ::dup2(null, STDERR_FILENO);
    const absl::StatusOr<BuiltGraph> built = BuildGraph(graph, at);
    if (built.ok()) (void)lowering::EmitModule(built->trace, {});
    ::_exit(0);
  } else if (int ended = 0;
             child > 0 && ::waitpid(child, &ended, 0) == child && WIFSIGNALED(ended)) {
    const SavedNode& node = graph.nodes[*at];
    status = InvalidArgument(node.name, ": ", node.op, " cannot be made of the attributes (",
                             node.AttrText(), ") and its operands: the file is damaged");
  }
  ::munmap(shared, sizeof(std::size_t));
  return status;
}

}  // namespace

absl::StatusOr<BuiltGraph> BuildGraph(const SavedGraph& graph, std::size_t* at) {
  BuiltGraph built;
  std::vector<Value> operands;
  for (const SavedNode& node : graph.nodes) {
    if (at != nullptr) *at = built.nodes.size();
    operands.clear();
    for (const SavedNode::Operand& operand : node.operands) {
      const NodePtr& of = built.nodes[operand.node];
      if (operand.output >= of->num_outputs())
        return InvalidArgument(node.name, ": ", graph.nodes[operand.node].name, " has no output ",
                               operand.output);
      operands.push_back({of, operand.output});
    }
    LAZULI_ASSIGN_OR_RETURN(NodePtr made, MakeNode(node, operands));
    built.nodes.push_back(std::move(made));
  }
  LAZULI_RETURN_IF_ERROR(AddRoots(graph, built));
  TraceGraph(built.trace);
  built.parameter_names.resize(built.trace.data.size());
  std::unordered_map<const Node*, std::size_t> slots;
  for (const Node* leaf : built.trace.data) slots.emplace(leaf, slots.size());
  for (std::size_t i = 0; i < built.nodes.size(); ++i) {
    if (const auto slot = slots.find(built.nodes[i].get()); slot != slots.end())
      built.parameter_names[slot->second] = graph.nodes[i].label;
  }
  return built;
}

absl::StatusOr<std::unique_ptr<hlo::Module>> LowerGraph(const SavedGraph& graph) {
  LAZULI_RETURN_IF_ERROR(TryToBuild(graph));
  LAZULI_ASSIGN_OR_RETURN(const BuiltGraph built, BuildGraph(graph));
  lowering::EmitOptions options;
  options.name = "SavedGraph";
  options.parameter_names = built.parameter_names;
  LAZULI_ASSIGN_OR_RETURN(lowering::EmittedModule emitted,
                          lowering::EmitModule(built.trace, options));
  return std::move(emitted.module);
}

}  // namespace lazuli::tools
