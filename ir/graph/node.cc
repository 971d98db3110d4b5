#include "ir/graph/node.h"

#include <utility>

#include "ir/support/thread_local.h"

namespace lazuli::ir {
namespace {

// Nodes whose count reached zero while another node of this thread is being destroyed, linked
// through their marks, which no traversal will read again. The outermost Release drains the list,
// so the depth of the stack does not depend on the depth of the graph.
LAZULI_FAST_THREAD_LOCAL bool draining = false;
LAZULI_FAST_THREAD_LOCAL const Node* dead = nullptr;

}  // namespace

void Node::DestroyGraph() const {
  if (draining) {
    mark = reinterpret_cast<uintptr_t>(std::exchange(dead, this));
    return;
  }
  draining = true;
  delete this;  // NOLINT: counted
  while (dead != nullptr) {
    const Node* next = std::exchange(dead, reinterpret_cast<const Node*>(dead->mark));
    delete next;  // NOLINT: counted
  }
  draining = false;
}

}  // namespace lazuli::ir
