// Nodes for tests of graphs: leaves and ops that lower to nothing.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ir/graph/key.h"
#include "ir/graph/node.h"

namespace lazuli::ir::test {

inline std::atomic<int64_t> live_nodes{0};

class TestNode final : public Node {
 public:
  TestNode(NodeKind kind, std::string name, std::vector<Value> operands, std::vector<Shape> shapes,
           int64_t attribute = 0)
      : Node(kind, kNoSite),
        name_(std::move(name)),
        operands_(std::move(operands)),
        attribute_(attribute) {
    shapes_.assign(shapes.begin(), shapes.end());
    SetOperands(operands_.data(), operands_.size());
    ++live_nodes;
  }
  ~TestNode() override { --live_nodes; }
  std::string_view name() const override { return name_; }
  std::string_view dump_name() const override { return name_; }
  void AppendKey(KeyWriter& key) const override {
    key.Append(name_);
    key.Append(attribute_);
  }
  void Lower(lowering::LoweringContext&, absl::Span<const lowering::Op>,
             std::vector<lowering::Op>&) const override {}

 private:
  std::string name_;
  std::vector<Value> operands_;
  int64_t attribute_;
};

inline Value Leaf(NodeKind kind = NodeKind::kData, Shape shape = Shape(DType::kF32, {2})) {
  return {MakeIntrusive<TestNode>(kind, "leaf", std::vector<Value>(),
                                  std::vector<Shape>{std::move(shape)}),
          0};
}
inline Value Op(std::string name, std::vector<Value> operands, int64_t attribute = 0) {
  return {MakeIntrusive<TestNode>(NodeKind::kOp, std::move(name), std::move(operands),
                                  std::vector<Shape>{Shape(DType::kF32, {2})}, attribute),
          0};
}

}  // namespace lazuli::ir::test
