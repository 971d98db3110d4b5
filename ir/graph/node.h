// The lazy IR: immutable nodes that record operations not yet run.
//
// A node has any number of operands and one or more outputs. Nodes are intrusively
// counted; nothing here recurses over the depth of a graph, so a chain of a million nodes is
// released in bounded stack. A pending graph belongs to one context and is traversed under its
// lock, which is why traversal marks may lie in the node.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

#include "ir/graph/site.h"
#include "ir/support/intrusive_ptr.h"
#include "ir/support/pool.h"
#include "ir/support/thread_local.h"
#include "ir/types/shape.h"

namespace lazuli::lowering {
class LoweringContext;  // the one name from above that ir knows
class Op;
}  // namespace lazuli::lowering

namespace lazuli::ir {

class KeyWriter;
class Node;
using NodePtr = IntrusivePtr<Node>;
using Shapes = absl::InlinedVector<Shape, 1, PoolAllocator<Shape>>;  // of the outputs of a node

// One output of a node.
struct Value {
  NodePtr node;
  uint32_t index = 0;
  explicit operator bool() const { return static_cast<bool>(node); }
  inline const Shape& shape() const;
};

enum class NodeKind : uint8_t {
  kOp,
  kData,    // leaf: memory of a device (or that a run under way will produce)
  kScalar,  // leaf: a number that may differ at every run
};

class Node : public Pooled {
 public:
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  NodeKind kind() const { return kind_; }
  SiteId site() const { return site_; }
  void set_site(SiteId site) { site_ = site; }  // that says more of the same line
  absl::Span<const Value> operands() const { return {operands_, num_operands_}; }
  const Shape& shape(uint32_t output = 0) const { return shapes_[output]; }
  uint32_t num_outputs() const { return static_cast<uint32_t>(shapes_.size()); }

  virtual std::string_view name() const = 0;       // "matmul"
  virtual std::string_view dump_name() const = 0;  // torch_xla's: "aten::matmul"
  // Everything but operands that makes two nodes of this kind different: an id of the op, then its
  // attributes.
  virtual void AppendKey(KeyWriter& key) const = 0;
  virtual std::string AttrText() const {
    return "";
  }  // ", dim=1, keepdim=0": starts with ", " if not empty
  // How many of the last operands are there only to come first: the node reads nothing of them.
  virtual std::size_t num_before() const { return 0; }
  // A node like this one, for a graph of another context; null for nodes with operands, which
  // cannot move.
  virtual NodePtr CopyWithoutOperands() const { return nullptr; }
  // Appends num_outputs() ops to `results`. Errors go to the context's builder.
  virtual void Lower(lowering::LoweringContext& context, absl::Span<const lowering::Op> operands,
                     std::vector<lowering::Op>& results) const = 0;

  void Retain(uint32_t owners = 1) const { refs_.Retain(owners); }
  void RetainFirst() const { refs_.RetainFirst(); }
  void Release() const {
    if (refs_.ReleaseLast()) DestroyGraph();
  }
  uint32_t use_count() const { return refs_.use_count(); }

  // --- for traversals (post_order.h), under the lock of the graph's context
  mutable uint64_t mark = 0;        // the traversal that saw the node last
  mutable uint32_t mark_index = 0;  // its position there
  // Grows with recording on a thread.
  uint32_t order() const { return order_; }

 protected:
  Node(NodeKind kind, SiteId site) : order_(++made_), kind_(kind), site_(site) {}
  virtual ~Node() = default;
  // Called once by the constructor of a derived class; `operands` is memory of that class.
  void SetOperands(Value* operands, std::size_t count) {
    operands_ = operands;
    num_operands_ = static_cast<uint32_t>(count);
  }
  Shapes shapes_;

 private:
  void DestroyGraph() const;  // and what is reachable from it alone

  static inline LAZULI_FAST_THREAD_LOCAL uint32_t made_ = 0;

  const uint32_t order_;
  RefCount refs_;
  NodeKind kind_;
  SiteId site_;
  uint32_t num_operands_ = 0;
  Value* operands_ = nullptr;
};

const Shape& Value::shape() const { return node->shape(index); }

}  // namespace lazuli::ir
