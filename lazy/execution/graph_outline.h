// What is kept of a graph once its nodes are gone: enough to say in what another graph differs.
//
// Nodes in the post-order of the key with names, attributes, shapes, operands and the user's lines.
// About 60 bytes a node; a sketch of them tells near graphs from far ones without a walk.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/types/span.h"

#include "ir/graph/post_order.h"

namespace lazuli::lazy {

using ir::NodeKind;
using ir::SiteId;

class GraphOutline {
 public:
  struct Operand {
    uint32_t node = 0, output = 0;
    bool operator==(const Operand&) const = default;
  };
  struct Node {
    std::string_view name;  // "aten::mul"; of the op, so it lives as long as the process
    SiteId site = ir::kNoSite;
    NodeKind kind = NodeKind::kOp;
    uint32_t shape = 0;  // of output 0, in a list of the distinct ones
    uint32_t attrs_end = 0, operands_end = 0;
  };

  GraphOutline() = default;
  explicit GraphOutline(const ir::Trace& trace);

  absl::Span<const Node> nodes() const { return nodes_; }
  absl::Span<const Operand> operands(std::size_t node) const;
  std::string_view attrs(std::size_t node) const;  // ", dim=1, keepdim=0"; none of a leaf
  const ir::Shape& shape(std::size_t node) const { return shapes_[nodes_[node].shape]; }
  absl::Span<const Operand> roots() const { return roots_; }
  int64_t bytes() const;

  // How many nodes differ, about: 0 for equal graphs, 2 for each node that only one of them has.
  int64_t Distance(const GraphOutline& other) const;

 private:
  static constexpr std::size_t kBuckets = 128;
  std::vector<Node> nodes_;
  std::vector<Operand> operands_, roots_;
  std::vector<ir::Shape> shapes_;
  std::string attrs_;
  std::array<uint32_t, kBuckets>
      sketch_{};  // nodes by name and line; the same with shape, attributes
};

}  // namespace lazuli::lazy
