#include "lazy/graphs/saved_graph.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <unordered_map>

#include "ir/hlo/dense_map.h"
#include "ir/hlo/proto/proto.h"
#include "ir/hlo/text/parser.h"
#include "ir/hlo/text/printer.h"
#include "ir/support/status.h"
#include "ir/support/str.h"

namespace lazuli::lazy {
namespace {

using namespace ir;  // NOLINT(google-build-using-namespace): the vocabulary of graphs
using Format = SavedRecord::Format;

std::vector<std::string_view> Lines(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    lines.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
    text.remove_prefix(end + 1);
  }
  return lines;
}

bool Take(std::string_view& text, std::string_view start) {
  if (!text.starts_with(start)) return false;
  text.remove_prefix(start.size());
  return true;
}

template <class T>
bool TakeNumber(std::string_view& text, T& value) {
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc()) return false;
  text.remove_prefix(static_cast<std::size_t>(result.ptr - text.data()));
  return true;
}

Format FormatOf(std::string_view body) {
  if (body.starts_with("IR {")) return Format::kText;
  if (body.starts_with("digraph")) return Format::kDot;
  if (body.starts_with("HloModule") || body.starts_with("ENTRY")) return Format::kHlo;
  return Format::kOther;
}

// The records of a text, which begin with "[trigger]" and end with "## END_GRAPH".
class RecordReader {
 public:
  RecordReader(std::string_view text, SavedFile& file) : lines_(Lines(text)), file_(file) {}

  void Run() {
    while (at_ < lines_.size()) {
      if (lines_[at_].empty()) {
        ++at_;
      } else if (!Record()) {
        return;
      }
    }
  }

 private:
  bool Torn(std::size_t line, std::string_view what) {
    file_.torn =
        InvalidArgument(file_.path, ":", line + 1, ": record ", file_.records.size(), " ", what);
    return false;
  }

  bool Record() {
    const std::size_t start = at_;
    SavedRecord record;
    const std::string_view first = lines_[at_];
    if (!first.starts_with("[") || !first.ends_with("]"))
      return Torn(start,
                  Str("begins with '", first.substr(0, 40),
                      "', not with what triggered it in brackets: the file is damaged, or of "
                      "another version"));
    record.trigger = first.substr(1, first.size() - 2);
    for (++at_; at_ < lines_.size() && lines_[at_] != "## BEGIN_GRAPH"; ++at_)
      Header(lines_[at_], record);
    if (at_ == lines_.size()) return Torn(start, "has no '## BEGIN_GRAPH': the file is cut off");
    record.line = static_cast<int64_t>(++at_) + 1;
    std::size_t end = at_;
    while (end < lines_.size() && lines_[end] != "## END_GRAPH") {
      if (lines_[end] == "## BEGIN_GRAPH")
        return Torn(start,
                    Str("has no '## END_GRAPH' before the next one begins at line ", end + 1));
      ++end;
    }
    if (end == lines_.size()) return Torn(start, "has no '## END_GRAPH': the file is cut off");
    std::size_t body_end = end;
    for (std::size_t i = at_; i < end; ++i) {
      std::string_view line = lines_[i];
      if (!Take(line, "Graph Hash: ")) continue;
      record.graph_hash = line;
      body_end = i;
    }
    while (body_end > at_ && lines_[body_end - 1].empty()) --body_end;
    for (std::size_t i = at_; i < body_end; ++i) record.body += Str(lines_[i], "\n");
    record.format = FormatOf(record.body);
    at_ = end + 1;
    file_.records.push_back(std::move(record));
    return true;
  }

  static void Header(std::string_view line, SavedRecord& record) {
    if (Take(line, "Graph Name: ")) {
      record.graph_name = line;
    } else if (Take(line, "Root Hashes: (") || Take(line, "Hashes: (")) {
      record.root_hashes = line.substr(0, line.rfind(')'));
    } else if (Take(line, "  ")) {
      record.frames.emplace_back(line);
    }
  }

  std::vector<std::string_view> lines_;
  SavedFile& file_;
  std::size_t at_ = 0;
};

// "train.py:41", "forward@train.py:41".
SavedPlace ParsePlace(std::string_view text) {
  SavedPlace place;
  if (const std::size_t at = text.rfind('@'); at != std::string_view::npos) {
    place.function = text.substr(0, at);
    text.remove_prefix(at + 1);
  }
  const std::size_t colon = text.rfind(':');
  std::string_view number = colon == std::string_view::npos ? "" : text.substr(colon + 1);
  if (!TakeNumber(number, place.line) || !number.empty() || place.line <= 0) return {};
  place.file = text.substr(0, colon);
  return place;
}

// Where the tag that begins here ends: at ", name=" or ", name:" outside of parentheses.
std::size_t TagEnd(std::string_view text) {
  int depth = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == '{') ++depth;
    if (text[i] == ')' || text[i] == '}') --depth;
    if (depth > 0 || text.substr(i, 2) != ", ") continue;
    std::size_t end = i + 2;
    while (end < text.size() &&
           (std::isalnum(static_cast<unsigned char>(text[end])) != 0 || text[end] == '_'))
      ++end;
    if (end > i + 2 && end < text.size() && (text[end] == '=' || text.substr(end, 2) == ": "))
      return i;
  }
  return text.size();
}

// The lines of IR { ... }.
class TextReader {
 public:
  TextReader(const SavedRecord& record, const std::string& path) : record_(record), path_(path) {}

  absl::StatusOr<SavedGraph> Run() {
    const std::vector<std::string_view> lines = Lines(record_.body);
    bool closed = false;
    for (std::size_t i = 1; i < lines.size() && !closed; ++i) {
      line_ = record_.line + static_cast<int64_t>(i);
      if (lines[i] == "}") {
        closed = true;
      } else if (!lines[i].empty() && !Node(lines[i])) {
        return error_;
      }
    }
    if (!closed) return InvalidArgument(path_, ":", line_, ": the graph has no closing '}'");
    return std::move(graph_);
  }

 private:
  template <class... T>
  bool Fail(const T&... what) {
    error_ = InvalidArgument(path_, ":", line_, ": ", what...);
    return false;
  }

  // %4 = f32[2,2]{1,0} aten::mul(%2, %3), location=main@train.cc:41, ROOT=0
  bool Node(std::string_view text) {
    SavedNode node;
    int64_t id = 0;
    std::string_view rest = text;
    if (!Take(rest, "  %") || !TakeNumber(rest, id) || !Take(rest, " = "))
      return Fail("expected '  %N = SHAPE OP(...)', got '", text.substr(0, 60), "'");
    node.name = Str("%", id);
    const std::size_t shape_end = rest.starts_with("(") ? rest.find(") ") + 1 : rest.find(' ');
    if (shape_end == 0 || shape_end >= rest.size()) return Fail(node.name, ": expected a shape");
    node.shape = rest.substr(0, shape_end);
    rest.remove_prefix(shape_end + 1);
    const std::size_t open = rest.find('(');
    if (open == std::string_view::npos) return Fail(node.name, ": expected OP(OPERANDS)");
    node.op = rest.substr(0, open);
    rest.remove_prefix(open + 1);
    if (!Operands(rest, node) || !Tags(rest, node)) return false;
    if (!ids_.try_emplace(id, static_cast<uint32_t>(graph_.nodes.size())).second)
      return Fail(node.name, " is there twice");
    graph_.nodes.push_back(std::move(node));
    return true;
  }

  bool Operands(std::string_view& rest, SavedNode& node) {
    while (!Take(rest, ")")) {
      int64_t id = 0;
      uint32_t output = 0;
      if (!node.operands.empty() && !Take(rest, ", "))
        return Fail(node.name, ": expected ', ' or ')' after an operand");
      if (!Take(rest, "%") || !TakeNumber(rest, id) ||
          (Take(rest, ".") && !TakeNumber(rest, output)))
        return Fail(node.name, ": expected an operand such as %3 or %3.1");
      const auto known = ids_.find(id);
      if (known == ids_.end())
        return Fail(node.name, ": its operand %", id, " is not in the lines before");
      node.operands.push_back({known->second, output});
    }
    if (!Take(rest, " @ ")) return true;
    const std::size_t end = std::min(rest.find(", "), rest.size());
    node.attrs.emplace_back("after", rest.substr(0, end));
    rest.remove_prefix(end);
    return true;
  }

  bool Tags(std::string_view rest, SavedNode& node) {
    while (Take(rest, ", ")) {
      std::string_view tag = rest.substr(0, TagEnd(rest));
      rest.remove_prefix(tag.size());
      const std::size_t end = tag.find_first_of("=:");
      if (end == std::string_view::npos)
        return Fail(node.name, ": expected NAME=VALUE, got '", tag, "'");
      Tag(tag.substr(0, end), tag.substr(end + (tag[end] == ':' ? 2 : 1)), node);
    }
    return rest.empty() || Fail(node.name, ": '", rest.substr(0, 40), "' after the node");
  }

  void Tag(std::string_view name, std::string_view value, SavedNode& node) {
    if (name == "scope") {
      node.scope = value;
    } else if (name == "location") {
      node.place = ParsePlace(value);
    } else if (name == "device") {
      if (graph_.device.empty()) graph_.device = value;
    } else if (name == "name") {
      node.label = value;
    } else if (name == "user_metadata") {
      node.note = value;
    } else if (name == "ROOT") {
      SavedNode::Root root;
      if (TakeNumber(value, root.position)) {
        if (Take(value, ".")) TakeNumber(value, root.output);
        node.roots.push_back(root);
      }
    } else if (name != "xla_shape" && name != "dynamic_dims" && name != "num_outputs" &&
               name != "parameter" &&
               name != "stack") {  // what the shape, and the order of leaves, say anyway
      node.attrs.emplace_back(name, value);
    }
  }

  const SavedRecord& record_;
  const std::string& path_;
  int64_t line_ = 0;
  SavedGraph graph_;
  std::unordered_map<int64_t, uint32_t> ids_;
  absl::Status error_;
};

// What stands between the parentheses of an instruction's line, and behind them, without metadata.
void AttrsOf(const hlo::Instruction& i, SavedNode& node) {
  hlo::PrintOptions options;
  options.metadata = false;
  options.percent = false;
  options.large_constants = false;
  const std::string line = hlo::ToString(i, options);
  const std::size_t open = line.find('(', line.find(Str(" ", node.op, "(")));
  int depth = 0;
  std::size_t close = open;
  for (; close < line.size(); ++close) {
    if (line[close] == '(') ++depth;
    if (line[close] == ')' && --depth == 0) break;
  }
  if (close >= line.size()) return;
  if (i.operand_count() == 0 && close > open + 1)
    node.attrs.emplace_back("value", line.substr(open + 1, close - open - 1));
  std::string_view rest = std::string_view(line).substr(close + 1);
  while (Take(rest, ", ")) {
    const std::string_view tag = rest.substr(0, TagEnd(rest));
    rest.remove_prefix(tag.size());
    const std::size_t equals = tag.find('=');
    if (equals != std::string_view::npos)
      node.attrs.emplace_back(tag.substr(0, equals), tag.substr(equals + 1));
  }
}

class ModuleReader {
 public:
  explicit ModuleReader(const hlo::Module& module) : module_(module) {}

  SavedGraph Run() {
    graph_.name = module_.name();
    graph_.is_hlo = true;
    for (const hlo::Computation* computation : module_.PostOrder()) Add(*computation);
    return std::move(graph_);
  }

 private:
  void Add(const hlo::Computation& computation) {
    for (const hlo::Instruction* i : computation.PostOrder()) {
      SavedNode node;
      node.name = i->name();
      node.op = hlo::OpcodeText(i->opcode());
      node.shape = i->shape().ToString(/*with_layout=*/true);
      for (const hlo::Instruction* operand : i->operands())
        node.operands.push_back({numbers_.at(operand), 0});
      if (!computation.IsEntry()) node.group = computation.name();
      node.frames = module_.stack_frames().Text(i->metadata().stack_frame);
      AttrsOf(*i, node);
      From(i->metadata(), i->opcode() == hlo::Opcode::kParameter, node);
      if (computation.IsEntry() && i->IsRoot()) node.roots.push_back({});
      numbers_.emplace(i, static_cast<uint32_t>(graph_.nodes.size()));
      graph_.nodes.push_back(std::move(node));
    }
  }

  static void From(const hlo::Metadata& metadata, bool parameter, SavedNode& node) {
    if (parameter)
      node.label = metadata.op_name;
    else if (const std::size_t slash = metadata.op_name.rfind('/'); slash != std::string::npos)
      node.scope = metadata.op_name.substr(0, slash);
    node.place.file = metadata.source_file;
    node.place.line = metadata.source_line;
  }

  const hlo::Module& module_;
  SavedGraph graph_;
  std::unordered_map<const hlo::Instruction*, uint32_t> numbers_;
};

}  // namespace

std::string SavedPlace::ToString() const {
  if (line == 0) return "";
  const std::size_t slash = file.rfind('/');
  return Str(function, function.empty() ? "" : "@",
             slash == std::string::npos ? file : file.substr(slash + 1), ":", line);
}

std::string SavedNode::AttrText(std::size_t most) const {
  std::vector<std::string> texts;
  for (const auto& [name, value] : attrs)
    texts.push_back(Str(name, "=", value.substr(0, most), value.size() > most ? "..." : ""));
  return Join(texts, ", ");
}

std::string SavedNode::Path() const {
  return Str(group, group.empty() || scope.empty() ? "" : "/", scope);
}

std::string_view FormatName(SavedRecord::Format format) {
  switch (format) {
    case Format::kText:
      return "text";
    case Format::kDot:
      return "dot";
    case Format::kHlo:
      return "hlo";
    case Format::kProto:
      return "proto";
    case Format::kOther:
      return "?";
  }
  return "?";
}

absl::StatusOr<SavedFile> ParseSaved(const std::string& path, const std::string& text) {
  SavedFile saved;
  saved.path = path;
  if (text.empty()) return InvalidArgument(saved.path, ": the file is empty");
  if (text[0] == '[') {
    RecordReader(text, saved).Run();
    if (saved.records.empty()) return saved.torn;
    return saved;
  }
  SavedRecord whole;
  whole.body = text;
  whole.format = saved.path.ends_with(".pb") ? Format::kProto : FormatOf(text);
  if (whole.format == Format::kOther && hlo::ParseModule(text).ok()) whole.format = Format::kHlo;
  saved.records.push_back(std::move(whole));
  return saved;
}

absl::StatusOr<SavedGraph> ReadGraph(const SavedRecord& record, const std::string& path) {
  switch (record.format) {
    case Format::kText:
      return TextReader(record, path).Run();
    case Format::kHlo:
    case Format::kProto: {
      auto module = record.format == Format::kHlo ? hlo::ParseModule(record.body)
                                                  : hlo::ParseModuleProto(record.body);
      if (!module.ok() && record.format == Format::kProto)
        return Prefixed(module.status(), Str(path, ": "));
      if (!module.ok())
        return Prefixed(module.status(), record.line == 1 ? Str(path, ":")
                                                          : Str(path, ": in the graph from line ",
                                                                record.line, " on, at "));
      return GraphOf(**module);
    }
    case Format::kDot:
      return Unimplemented(path, ":", record.line,
                           ": a graph for GraphViz has no attributes to read back; save it with "
                           "XLA_SAVE_TENSORS_FMT=text or hlo");
    case Format::kOther:
      break;
  }
  const std::string_view body = record.body;
  if (body.starts_with("module") || body.starts_with("#loc"))
    return Unimplemented(path, ":", record.line, ": this is StableHLO; text and hlo are read");
  return InvalidArgument(path, ":", record.line, ": '",
                         body.substr(0, body.find('\n')).substr(0, 40),
                         "' begins no graph: 'IR {' or 'HloModule' does");
}

SavedGraph GraphOf(const hlo::Module& module) { return ModuleReader(module).Run(); }

std::string GraphText(const SavedGraph& graph) {
  std::string text = "IR {\n";
  for (const SavedNode& node : graph.nodes) {
    std::vector<std::string> operands;
    for (const SavedNode::Operand& operand : node.operands) {
      const SavedNode& of = graph.nodes[operand.node];
      operands.push_back(
          of.shape.starts_with("(") && !graph.is_hlo ? Str(of.name, ".", operand.output) : of.name);
    }
    text += Str("  ", node.name, " = ", node.shape, " ", node.op, "(", Join(operands, ", "), ")");
    if (!node.scope.empty()) text += Str(", scope=", node.scope);
    if (node.place.line != 0) text += Str(", location=", node.place.ToString());
    if (!node.note.empty()) text += Str(", user_metadata=", node.note);
    if (!node.label.empty()) text += Str(", name=", node.label);
    for (const auto& [name, value] : node.attrs) text += Str(", ", name, "=", value);
    for (const SavedNode::Root& root : node.roots)
      text += Str(", ROOT=", root.position, root.output == 0 ? "" : Str(".", root.output));
    text += "\n";
  }
  return text + "}\n";
}

}  // namespace lazuli::lazy
