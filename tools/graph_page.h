// A graph, or two beside each other, as a page of HTML that needs no network.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/graph_diff.h"
#include "tools/saved_graph.h"

namespace lazuli::tools {

struct PageGraph {
  std::string title;  // "g.txt.0#3"
  const SavedGraph* graph = nullptr;
};

// One graph, or two and what differs between them. Source lines that can be read are in the page.
std::string GraphPage(const std::vector<PageGraph>& graphs, const GraphDifference* difference);

}  // namespace lazuli::tools
