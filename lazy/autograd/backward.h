// The backward engine: walks the tape from results to the leaves, or to other tensors, and adds up
// gradients.
#pragma once

#include "lazy/tensor/tensor.h"

namespace lazuli::lazy {

struct BackwardOptions {
  bool retain_graph = false;  // keep saved tensors, so that backward can run again
  bool create_graph = false;  // record the gradients' own history (implies retain_graph)
  // The gradients given are zeros, and of the results only the history is wanted, which is
  // differentiated for what was given: the transpose of backward is forward mode. With create_graph.
  bool is_transposed = false;
  // Of Grad(): a gradient that reaches an input ends there, as if no input depended on another.
  bool ends_at_inputs = false;
  // Of Grad() in a trace: a gradient that reaches what was computed outside of it ends there. Such a
  // tensor may be an input.
  bool ends_outside = false;
};
// Whether the innermost backward of this thread is such a one. A node may then give zeros whose
// history goes forward, which makes its own backward unnecessary.
bool IsTransposed();

// Adds d(roots)/d(leaf) to the .grad of every leaf that requires one. `gradients` are those of the
// roots: none, or one each; undefined is 1, for a root of one element. Nodes run latest first; each
// once, after all its users; iterative. Gradient nodes get the site of their forward op. Throws
// StatusError: FailedPrecondition if a root has no history or it was freed by an earlier backward.
void Backward(absl::Span<const Tensor> roots, absl::Span<const Tensor> gradients,
              BackwardOptions options);
void Backward(const Tensor& root, const Tensor& gradient, BackwardOptions options);

// The same, but only to the .grad of these tensors, leaves or results.
void BackwardTo(absl::Span<const Tensor> roots, absl::Span<const Tensor> gradients,
                absl::Span<const Tensor> inputs, BackwardOptions options);

// d(outputs)/d(inputs), of leaves or of results; .grad stays as it is, and only nodes between the
// two run and are freed. An input that the outputs do not depend on is InvalidArgument, or
// undefined if allow_unused.
Tensors Grad(absl::Span<const Tensor> outputs, absl::Span<const Tensor> inputs,
             absl::Span<const Tensor> gradients, BackwardOptions options, bool allow_unused);

// While on, backward looks for NaN in every gradient and throws Internal, naming the op that gave the
// first one and the line of its forward op. It reads one flag an op, so it syncs. For all threads.
struct AnomalyMode {
  bool enabled = false;
  bool check_nan = true;
};
AnomalyMode GetAnomalyMode();
void SetAnomalyMode(AnomalyMode mode);

// The gradients of the node that is running in this thread's backward; empty outside of one.
absl::Span<const Tensor> CurrentGradients();

}  // namespace lazuli::lazy
