// A lazy graph from its text: the nodes that printed it, and the HLO that they become.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

#include "ir/graph/post_order.h"
#include "ir/hlo/module.h"
#include "tools/open_saved.h"

namespace lazuli::tools {

struct BuiltGraph {
  std::vector<ir::NodePtr> nodes;  // of the text, in its order
  ir::Trace trace;
  std::vector<std::string> parameter_names;
};

// An op is found by its name, attributes and number of operands; what it gives must have the shapes
// that the text says. Ops of torch_xla that lazuli has by another form are an error that names the
// node. Leaves have no data.
//
// Ops trust attributes that the function which records them has checked, as those of a damaged file
// were not: `at` is the node being made, for who finds out that this ended the process.
absl::StatusOr<BuiltGraph> BuildGraph(const SavedGraph& graph, std::size_t* at = nullptr);
// The module that the graph becomes, with a parameter for each leaf. Tries in another process first.
absl::StatusOr<std::unique_ptr<hlo::Module>> LowerGraph(const SavedGraph& graph);

}  // namespace lazuli::tools
