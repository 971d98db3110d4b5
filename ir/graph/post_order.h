// Post-order over a lazy graph, and the canonical key of one.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/types/span.h"

#include "ir/graph/key.h"
#include "ir/graph/node.h"

namespace lazuli::ir {

// A graph in canonical order, ready to be keyed, emitted or printed. Holds references to its nodes'
// owners only through `roots`, `checked` and `effects`: the caller keeps those alive.
struct Trace {
  std::vector<Value> roots;
  // Nodes that are in the graph though nobody may want their results: what fails in them counts.
  std::vector<NodePtr> checked;
  // The same for nodes that do something outside of the graph. They come first, in this order.
  std::vector<NodePtr> effects;
  std::vector<const Node*> nodes;  // operands before users; node->mark_index is the position
  std::vector<const Node*> data;   // leaves of kind kData, in order of first visit: parameter slots
  std::vector<const Node*> scalars;
  void Clear();  // keeps memory
};

// Fills nodes, data and scalars from effects, roots, then checked. Iterative; marks the nodes.
void TraceGraph(Trace& trace);

// Appends the canonical form of the traced graph: nodes with their attributes, shapes of leaves,
// operand positions, roots.
void AppendGraphKey(const Trace& trace, KeyWriter& key);

}  // namespace lazuli::ir
