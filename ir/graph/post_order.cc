#include "ir/graph/post_order.h"

#include <atomic>
#include <utility>
#include <vector>

#include "ir/support/thread_local.h"

namespace lazuli::ir {
namespace {

std::atomic<uint64_t> next_mark{1};

struct Visit {
  const Node* node;
  uint32_t next_operand;
};
struct VisitStack {
  std::vector<Visit> visits;
};

void AppendNodeKey(const Node& node, KeyWriter& key) {
  switch (node.kind()) {
    case NodeKind::kOp:
      node.AppendKey(key);
      key.Word(static_cast<uint32_t>(node.operands().size()));
      for (const Value& v : node.operands()) {
        // Output 0 of a node, by far the most common operand, takes one word; others are marked by
        // the top bit.
        if (v.index == 0) {
          key.Word(v.node->mark_index);
        } else {
          key.Word(v.node->mark_index | 0x80000000u);
          key.Word(v.index);
        }
      }
      return;
    case NodeKind::kData:
    case NodeKind::kScalar:
      key.Long(static_cast<uint64_t>(node.kind()));
      key.Append(node.shape());
      return;
  }
}

}  // namespace

void Trace::Clear() {
  roots.clear();
  checked.clear();
  effects.clear();
  nodes.clear();
  data.clear();
  scalars.clear();
}

void TraceGraph(Trace& trace) {
  const uint64_t mark = next_mark.fetch_add(1, std::memory_order_relaxed);
  std::vector<Visit>& stack = PerThread<VisitStack>::Get().visits;
  auto enter = [&](const Node* node) {
    if (node->mark == mark) return;
    node->mark = mark;
    stack.push_back({node, 0});
  };
  const auto visit = [&](const Node* root) {
    enter(root);
    while (!stack.empty()) {
      Visit& top = stack.back();
      const auto operands = top.node->operands();
      if (top.next_operand < operands.size()) {
        enter(operands[top.next_operand++].node.get());
        continue;
      }
      const Node* node = top.node;
      stack.pop_back();
      node->mark_index = static_cast<uint32_t>(trace.nodes.size());
      trace.nodes.push_back(node);
      if (node->kind() == NodeKind::kData) trace.data.push_back(node);
      if (node->kind() == NodeKind::kScalar) trace.scalars.push_back(node);
    }
  };
  for (const NodePtr& node : trace.effects) visit(node.get());
  for (const Value& root : trace.roots) visit(root.node.get());
  for (const NodePtr& node : trace.checked) visit(node.get());
}

void AppendGraphKey(const Trace& trace, KeyWriter& key) {
  key.Word(static_cast<uint32_t>(trace.nodes.size()));
  for (const Node* node : trace.nodes) AppendNodeKey(*node, key);
  key.Word(static_cast<uint32_t>(trace.roots.size()));
  for (const Value& root : trace.roots) {
    key.Word(root.node->mark_index);
    key.Word(root.index);
  }
}

}  // namespace lazuli::ir
