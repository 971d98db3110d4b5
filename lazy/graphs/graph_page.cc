#include "lazy/graphs/graph_page.h"

#include <algorithm>
#include <fstream>
#include <map>
#include <unordered_map>

#include "ir/hlo/dump/module_dump.h"
#include "ir/support/fill_page.h"
#include "ir/support/str.h"
#include "lazy/graphs/graph_memory.h"
#include "lazy/graphs/page_json.h"
#include "pages/graph.h"

namespace lazuli::lazy {
namespace {

using ir::FillPage;
using ir::Join;
using ir::Str;

// Texts that occur often, once each.
class TextTable {
 public:
  std::size_t Of(const std::string& text) {
    const auto [it, added] = numbers_.try_emplace(text, texts_.size());
    if (added) texts_.push_back(text);
    return it->second;
  }
  std::string Json() const {
    std::string json = "[";
    for (const std::string& text : texts_) json += Str(json.size() > 1 ? "," : "", JsonText(text));
    return json + "]";
  }

 private:
  std::vector<std::string> texts_;
  std::unordered_map<std::string, std::size_t> numbers_;
};

// The lines around each place that a node names, of files that are there.
class Sources {
 public:
  // Lines `line`-3 to `line`+3 as JSON, or "".
  std::string Around(const SavedPlace& place) {
    const std::vector<std::string>& lines = Lines(place.file);
    const auto count = static_cast<int64_t>(lines.size());
    if (place.line < 1 || place.line > count) return "";
    const int64_t first = std::max<int64_t>(place.line - 3, 1);
    std::string json = Str("[", first);
    for (int64_t i = first; i <= std::min(place.line + 3, count); ++i)
      json += Str(",", JsonText(lines[static_cast<std::size_t>(i - 1)]));
    return json + "]";
  }

 private:
  static constexpr std::size_t kMaxLines = 200000;
  const std::vector<std::string>& Lines(const std::string& file) {
    const auto [it, added] = files_.try_emplace(file);
    if (!added || file.empty()) return it->second;
    std::ifstream in(file);
    for (std::string line; it->second.size() < kMaxLines && std::getline(in, line);)
      it->second.push_back(line.substr(0, 200));
    return it->second;
  }
  std::map<std::string, std::vector<std::string>> files_;
};

class PageData {
 public:
  std::string Graph(const PageGraph& page) {
    std::string nodes;
    for (const SavedNode& node : page.graph->nodes) {
      std::string operands;
      for (const SavedNode::Operand& operand : node.operands)
        operands += Str(operands.empty() ? "" : ",", operand.node, ",", operand.output);
      std::string roots;
      for (const SavedNode::Root& root : node.roots)
        roots += Str(roots.empty() ? "" : ",", root.position);
      nodes += Str(nodes.empty() ? "\n[" : ",\n[", JsonText(node.name), ",", texts_.Of(node.op),
                   ",", texts_.Of(node.shape), ",[", operands, "],", texts_.Of(node.Path()), ",",
                   Place(node.place), ",", texts_.Of(node.AttrText(300)), ",",
                   texts_.Of(node.label), ",[", roots, "],", texts_.Of(Join(node.frames, "\n")),
                   ",", texts_.Of(node.note), "]");
    }
    return Str("{\"title\":", JsonText(page.title), ",\"hlo\":", page.graph->is_hlo,
               ",\"memory\":[", Memory(*page.graph), "],\"nodes\":[", nodes, "]}");
  }
  std::string Texts() const { return texts_.Json(); }
  std::string Places() const { return Str("[", places_, "]"); }

 private:
  static std::string Memory(const SavedGraph& graph) {
    std::string values;
    for (const ValueLifetime& value : LifetimesOf(graph))
      values += Str(values.empty() ? "[" : ",[", value.node, ",", value.bytes, ",", value.first,
                    ",", value.last, "]");
    return values;
  }

  std::size_t Place(const SavedPlace& place) {
    const std::string key = Str(place.file, ":", place.line, "@", place.function);
    const auto [it, added] = place_numbers_.try_emplace(key, place_numbers_.size());
    if (added) {
      const std::string around = sources_.Around(place);
      places_ += Str(it->second == 0 ? "" : ",\n", "[", JsonText(place.file), ",", place.line, ",",
                     JsonText(place.function), around.empty() ? "" : ",", around, "]");
    }
    return it->second;
  }

  TextTable texts_;
  Sources sources_;
  std::string places_;
  std::unordered_map<std::string, std::size_t> place_numbers_;
};

std::string Escaped(std::string_view text) {
  std::string out;
  for (const char c : text) out += c == '<' ? "&lt;" : c == '&' ? "&amp;" : std::string(1, c);
  return out;
}

std::string Differences(const GraphDifference& difference) {
  std::string match, differs;
  for (const int64_t b : difference.match) match += Str(match.empty() ? "" : ",", b);
  for (const NodeDifference& d : difference.differs)
    differs += Str(differs.empty() ? "" : ",\n", "[", d.a, ",", d.b, ",", JsonText(d.what), "]");
  return Str("{\"match\":[", match, "],\"differs\":[", differs, "]}");
}

}  // namespace

std::string GraphPage(const std::vector<PageGraph>& graphs, const GraphDifference* difference) {
  PageData data;
  std::string list, title;
  for (const PageGraph& graph : graphs) {
    list += Str(list.empty() ? "" : ",", data.Graph(graph));
    title += Str(title.empty() ? "" : " and ", graph.title);
  }
  const std::string json =
      Str("{\"graphs\":[", list, "],\n\"texts\":", data.Texts(), ",\n\"places\":", data.Places(),
          ",\n\"difference\":", difference != nullptr ? Differences(*difference) : "null", "}");
  return FillPage(pages::kGraph, {{"title", Escaped(title)}, {"data", json}});
}

void InstallModulePages() {
  hlo::SetModulePage([](const hlo::Module& module) {
    const SavedGraph graph = GraphOf(module);
    return GraphPage({{module.name(), &graph}}, nullptr);
  });
}

}  // namespace lazuli::lazy
