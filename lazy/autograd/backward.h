// The backward engine: walks the tape from a result to the leaves and adds up gradients.
#pragma once

#include "lazy/tensor/tensor.h"

namespace lazuli::lazy {

struct BackwardOptions {
  bool retain_graph = false;  // keep saved tensors, so that backward can run again
  bool create_graph = false;  // record the gradients' own history (implies retain_graph)
};

// Adds d(root)/d(leaf) to the .grad of every leaf that requires one. `gradient` is
// d(result)/d(root), needed unless root has one element. Nodes run latest first; each once, after
// all its users; iterative. Gradient nodes get the site of their forward op. Throws StatusError:
// FailedPrecondition if root has no history or it was freed by an earlier backward.
void Backward(const Tensor& root, const Tensor& gradient, BackwardOptions options);

}  // namespace lazuli::lazy
