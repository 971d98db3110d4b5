// What differs between two saved graphs, though all ids shift.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lazy/graphs/saved_graph.h"

namespace lazuli::lazy {

struct NodeDifference {
  static constexpr int64_t kNone = -1;
  int64_t a = kNone, b = kNone;  // nodes; kNone: the other graph has it alone
  std::string what;              // "shape f32[64,10] -> f32[37,10]", "only in A"
};

struct GraphDifference {
  std::vector<int64_t> match;           // of each node of A the one of B, or kNone
  std::vector<NodeDifference> differs;  // in the order of the graphs
};

// Nodes are brought together by op, scope and line in the order of the graphs; those that are
// together are compared in shape, attributes, name and operands.
GraphDifference Diff(const SavedGraph& a, const SavedGraph& b);

}  // namespace lazuli::lazy
