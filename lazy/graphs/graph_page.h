// A graph, or two beside each other, as a page of HTML that needs no network.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lazy/graphs/graph_diff.h"
#include "lazy/graphs/saved_graph.h"

namespace lazuli::lazy {

struct PageGraph {
  std::string title;  // "g.txt.0#3"
  const SavedGraph* graph = nullptr;
};

// One graph, or two and what differs between them. Source lines that can be read are in the page.
std::string GraphPage(const std::vector<PageGraph>& graphs, const GraphDifference* difference);

// Makes pages what --xla_dump_hlo_as_html writes.
void InstallModulePages();

}  // namespace lazuli::lazy
