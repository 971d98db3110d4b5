#include "lazy/execution/graph_outline.h"

#include <cstdlib>

#include "absl/container/flat_hash_map.h"

#include "ir/support/hash.h"

namespace lazuli::lazy {

GraphOutline::GraphOutline(const ir::Trace& trace) {
  nodes_.reserve(trace.nodes.size());
  absl::flat_hash_map<uint64_t, uint32_t> known;  // by hash of a shape's words
  ir::KeyWriter key;
  for (const ir::Node* node : trace.nodes) {
    key.Clear();
    key.Append(node->shape());
    const uint64_t shape_hash = key.Hash();
    const auto [shape, added] =
        known.try_emplace(shape_hash, static_cast<uint32_t>(shapes_.size()));
    if (added) shapes_.push_back(node->shape());
    const std::string attrs = node->kind() == NodeKind::kOp ? node->AttrText() : std::string();
    attrs_ += attrs;
    for (const ir::Value& v : node->operands()) operands_.push_back({v.node->mark_index, v.index});
    nodes_.push_back({.name = node->dump_name(),
                      .site = node->site(),
                      .kind = node->kind(),
                      .shape = shape->second,
                      .attrs_end = static_cast<uint32_t>(attrs_.size()),
                      .operands_end = static_cast<uint32_t>(operands_.size())});
    const uint64_t structure =
        ir::Mix(ir::HashBytes(node->dump_name().data(), node->dump_name().size()), node->site());
    const uint64_t whole =
        ir::Mix(ir::Mix(structure, shape_hash), ir::HashBytes(attrs.data(), attrs.size()));
    ++sketch_[structure % (kBuckets / 2)];
    ++sketch_[kBuckets / 2 + whole % (kBuckets / 2)];
  }
  for (const ir::Value& root : trace.roots) roots_.push_back({root.node->mark_index, root.index});
  attrs_.shrink_to_fit();
  operands_.shrink_to_fit();
}

absl::Span<const GraphOutline::Operand> GraphOutline::operands(std::size_t node) const {
  const uint32_t begin = node == 0 ? 0 : nodes_[node - 1].operands_end;
  return absl::MakeConstSpan(operands_).subspan(begin, nodes_[node].operands_end - begin);
}

std::string_view GraphOutline::attrs(std::size_t node) const {
  const uint32_t begin = node == 0 ? 0 : nodes_[node - 1].attrs_end;
  return std::string_view(attrs_).substr(begin, nodes_[node].attrs_end - begin);
}

int64_t GraphOutline::bytes() const {
  return static_cast<int64_t>(nodes_.size() * sizeof(Node) +
                              (operands_.size() + roots_.size()) * sizeof(Operand) +
                              shapes_.size() * sizeof(ir::Shape) + attrs_.size());
}

int64_t GraphOutline::Distance(const GraphOutline& other) const {
  int64_t sum = 0;
  for (std::size_t i = 0; i < kBuckets; ++i)
    sum += std::abs(static_cast<int64_t>(sketch_[i]) - static_cast<int64_t>(other.sketch_[i]));
  return sum;
}

}  // namespace lazuli::lazy
