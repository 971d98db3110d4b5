// Leaves of the lazy graph: device data and numbers.
#pragma once

#include <cctype>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "absl/functional/function_ref.h"

#include "ir/graph/key.h"
#include "ir/graph/node.h"
#include "lazy/tensor/data_handle.h"

namespace lazuli::lazy {

// A leaf. In HLO it is a parameter; which one is its position among the leaves, never its memory or
// its value.
class LeafNode : public Node {
 public:
  void AppendKey(KeyWriter&) const override {}
  void Lower(lowering::LoweringContext&, absl::Span<const lowering::Op>,
             std::vector<lowering::Op>&) const override {}

 protected:
  using Node::Node;
};

class DataNode final : public LeafNode {
 public:
  DataNode(DataPtr data, std::shared_ptr<const std::string> label, SiteId site)
      : LeafNode(NodeKind::kData, site), data_(std::move(data)), label_(std::move(label)) {
    shapes_.push_back(data_->shape());
  }
  std::string_view name() const override { return "device_data"; }
  std::string_view dump_name() const override { return "xla::device_data"; }
  std::string AttrText() const override {
    return Str(", device=", DumpDeviceName(data_->device()));
  }
  const DataPtr& data() const { return data_; }
  // "conv1.weight", or empty.
  std::string_view label() const { return label_ ? std::string_view(*label_) : std::string_view(); }

  static std::string DumpDeviceName(backend::Device device) {  // torch_xla's upper case: CPU:0
    std::string name = device.ToString();
    for (char& c : name) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    return name;
  }

 private:
  DataPtr data_;
  std::shared_ptr<const std::string> label_;
};

// A number: a slot of the packed scalars of a run. One object is one slot, however often it is
// used; two objects are two slots even if their values are equal today.
class ScalarNode final : public LeafNode {
 public:
  // `cell` holds the bytes of an element of dtype at its low end.
  ScalarNode(DType dtype, uint64_t cell, SiteId site)
      : LeafNode(NodeKind::kScalar, site), cell_(cell) {
    shapes_.emplace_back(dtype);
  }
  NodePtr CopyWithoutOperands() const override {
    return MakeIntrusive<ScalarNode>(shape().dtype(), cell_, site());
  }
  std::string_view name() const override { return "scalar"; }
  std::string_view dump_name() const override { return "prim::Scalar"; }
  uint64_t cell() const { return cell_; }

 private:
  uint64_t cell_;
};

// Calls `visit` for the integers that an op is given: its operands of such a dtype, and what these are
// computed from as far as that is integers, too. Each node is looked at once.
inline void VisitIntegers(const Node& op, absl::FunctionRef<void(const Value&)> visit) {
  absl::flat_hash_set<const Node*> seen;
  for (std::vector<const Node*> left{&op}; !left.empty();) {
    const Node& node = *left.back();
    left.pop_back();
    for (const Value& operand : node.operands()) {
      if (!ir::IsIntegral(operand.shape().dtype())) continue;
      visit(operand);
      if (seen.insert(operand.node.get()).second) left.push_back(operand.node.get());
    }
  }
}

}  // namespace lazuli::lazy
