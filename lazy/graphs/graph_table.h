// Graphs as tables.
#pragma once

#include <string>

#include "lazy/graphs/saved_graph.h"

namespace lazuli::lazy {

// A row for each node: name, op, shape, operands, attributes, scope, line. Columns are as wide as what
// is in them.
std::string NodeTable(const SavedGraph& graph);

}  // namespace lazuli::lazy
