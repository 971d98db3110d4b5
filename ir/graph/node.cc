#include "ir/graph/node.h"

namespace lazuli::ir {
namespace {

// Nodes whose count reached zero while another node of this thread is being destroyed. The
// outermost Release drains the list, so the depth of the stack does not depend on the depth of the
// graph.
thread_local std::vector<const Node*>* draining = nullptr;

}  // namespace

void Node::Release() const {
  if (refs_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  if (draining != nullptr) {
    draining->push_back(this);
    return;
  }
  // A node most often takes few others with it: the vector allocates only when there are some.
  std::vector<const Node*> dead;
  draining = &dead;
  Destroy(this);
  while (!dead.empty()) {
    const Node* next = dead.back();
    dead.pop_back();
    Destroy(next);
  }
  draining = nullptr;
}

void Node::Destroy(const Node* node) { delete node; }

}  // namespace lazuli::ir
