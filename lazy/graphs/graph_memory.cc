#include "lazy/graphs/graph_memory.h"

#include <algorithm>
#include <string_view>

#include "ir/hlo/text/parser.h"

namespace lazuli::lazy {
namespace {

bool IsInput(const SavedNode& node) {
  return node.op == "parameter" || node.op == "xla::device_data" || node.op == "prim::Scalar";
}

// Whether the node's value is its operands' memory.
bool Forwards(const SavedNode& node) {
  return node.op == "tuple" || node.op == "get-tuple-element" || node.op == "bitcast" ||
         node.op == "optimization-barrier";
}

// By node: the last that uses its memory.
std::vector<uint32_t> LastUses(const SavedGraph& graph) {
  const auto count = static_cast<uint32_t>(graph.nodes.size());
  std::vector<uint32_t> last(count);
  for (uint32_t i = count; i-- > 0;) {
    const SavedNode& node = graph.nodes[i];
    last[i] = node.roots.empty() ? std::max(last[i], i) : count - 1;
    const uint32_t use = Forwards(node) ? last[i] : i;
    for (const SavedNode::Operand& operand : node.operands)
      last[operand.node] = std::max(last[operand.node], use);
  }
  return last;
}

}  // namespace

std::vector<ValueLifetime> LifetimesOf(const SavedGraph& graph) {
  const std::vector<uint32_t> last = LastUses(graph);
  std::vector<ValueLifetime> values;
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    const SavedNode& node = graph.nodes[i];
    if (!node.group.empty() || Forwards(node)) continue;
    const absl::StatusOr<Shape> shape = hlo::ParseShape(node.shape);
    const int64_t bytes = shape.ok() ? shape->byte_size() : 0;
    if (bytes == 0) continue;
    const bool input = IsInput(node);
    values.push_back(
        {i, bytes, input ? 0 : i, input ? static_cast<uint32_t>(graph.nodes.size() - 1) : last[i]});
  }
  return values;
}

MemoryPeak PeakOf(const SavedGraph& graph) {
  std::vector<int64_t> changes(graph.nodes.size() + 1);
  for (const ValueLifetime& value : LifetimesOf(graph)) {
    changes[value.first] += value.bytes;
    changes[value.last + 1] -= value.bytes;
  }
  MemoryPeak peak;
  int64_t bytes = 0;
  for (uint32_t i = 0; i < graph.nodes.size(); ++i) {
    bytes += changes[i];
    if (bytes > peak.bytes) peak = {i, bytes};
  }
  return peak;
}

}  // namespace lazuli::lazy
