#include "ir/graph/node.h"

namespace lazuli::ir {
namespace {

// Nodes whose count reached zero while another node of this thread is being destroyed. The
// outermost Release drains the list, so the depth of the stack does not depend on the depth of the
// graph.
thread_local std::vector<const Node*>* draining = nullptr;

}  // namespace

void Node::DestroyGraph() const {
  if (draining != nullptr) {
    draining->push_back(this);
    return;
  }
  // A node most often takes few others with it: the vector allocates only when there are some.
  std::vector<const Node*> dead;
  draining = &dead;
  delete this;  // NOLINT: counted
  while (!dead.empty()) {
    const Node* next = dead.back();
    dead.pop_back();
    delete next;  // NOLINT: counted
  }
  draining = nullptr;
}

}  // namespace lazuli::ir
