#include "lazy/graphs/graph_table.h"

#include <algorithm>
#include <vector>

#include "ir/support/str.h"

namespace lazuli::lazy {

using ir::Join;
using ir::Str;

namespace {

// Columns as wide as what is in them.
std::string Table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t c = 0; c < row.size(); ++c)
      line += row[c] + std::string(widths[c] + 2 - row[c].size(), ' ');
    text += Str(line.substr(0, line.find_last_not_of(' ') + 1), "\n");
  }
  return text;
}

}  // namespace

std::string NodeTable(const SavedGraph& graph) {
  std::vector<std::vector<std::string>> rows = {
      {"name", "op", "shape", "operands", "attributes", "scope", "line"}};
  for (const SavedNode& node : graph.nodes) {
    std::vector<std::string> operands;
    for (const SavedNode::Operand& operand : node.operands)
      operands.push_back(graph.nodes[operand.node].name);
    rows.push_back(
        {node.name, node.op, node.shape, Join(operands, ", "),
         Str(node.label, node.label.empty() || node.attrs.empty() ? "" : ", ", node.AttrText(40)),
         node.Path(), node.place.ToString()});
  }
  return Table(rows);
}

}  // namespace lazuli::lazy
