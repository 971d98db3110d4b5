#include "lazy/autograd/backward.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "ir/support/hash_map.h"
#include "lazy/ops/functions.h"
#include "lazy/tensor/site_scope.h"
#include "lazy/tensor/status_error.h"
#include "lazy/tensor/tape.h"

namespace lazuli::lazy {
namespace {

// Gradients that have arrived at a node's outputs so far.
struct Pending {
  Tensors dys;
};

struct Latest {
  bool operator()(const GradNode* a, const GradNode* b) const {
    return a->sequence() < b->sequence();
  }
};

class TapeWalker {
 public:
  explicit TapeWalker(BackwardOptions options) : options_(options) {}

  void Send(const Edge& edge, Tensor gradient) {
    if (edge.leaf) {
      Accumulate(*edge.leaf, std::move(gradient));
      return;
    }
    auto [it, inserted] = pending_.try_emplace(edge.node.get());
    if (inserted) {
      it->second.dys.resize(edge.node->num_outputs);
      queue_.push(edge.node.get());
    }
    Tensor& sum = it->second.dys[edge.index];
    sum = sum.defined() ? Add(sum, gradient) : std::move(gradient);
  }

  // Every user of a node was recorded after it, so taking the latest node first visits a node after
  // all its users.
  void Run() {
    while (!queue_.empty()) {
      GradNode* node = queue_.top();
      queue_.pop();
      const Tensors dys = std::move(pending_.find(node)->second.dys);
      pending_.erase(node);
      Visit(*node, dys);
    }
  }

 private:
  void Visit(GradNode& node, const Tensors& dys) {
    SiteOverride site(node.site());
    if (node.released) {
      throw StatusError(FailedPrecondition("backward: the values that ", node.name(),
                                           " saved were freed by an earlier backward; pass "
                                           "retain_graph to the first one to run it twice"));
    }
    Tensors grads = node.Backward(dys);
    LAZULI_CHECK(grads.size() <= node.edges().size(), node.name(), " has too many gradients");
    // Edges are read before the node is released, which may drop the last reference to what they
    // point to.
    for (std::size_t i = 0; i < grads.size(); ++i) {
      if (grads[i].defined() && node.edges()[i]) Send(node.edges()[i], std::move(grads[i]));
    }
    if (!options_.retain_graph) node.ReleaseSaved();
  }

  static void Accumulate(TensorImpl& leaf, Tensor gradient) {
    Tensor& grad = leaf.mutable_autograd().grad;
    if (!grad.defined())
      grad = OwnElements(std::move(gradient));
    else if (GradEnabled() || grad.requires_grad())  // a history is kept: of values that stay
      grad = Add(grad, gradient);
    else
      Assign("backward", grad, Add(grad, gradient));  // in the memory it has
  }

  // A gradient that somebody else holds too (another leaf of a sum, the caller) gets a storage of
  // its own, so that changing .grad in place changes nothing else.
  static Tensor OwnElements(Tensor gradient) {
    if (gradient.impl()->use_count() == 1 && gradient.storage().use_count() == 1) return gradient;
    Tensor own(Context::Current().Snapshot(gradient.storage()));
    if (const AutogradMeta* meta = gradient.impl()->autograd(); meta != nullptr && meta->grad_fn) {
      AutogradMeta& history = own.impl()->mutable_autograd();
      history.grad_fn = meta->grad_fn;
      history.output = meta->output;
    }
    return own;
  }

  BackwardOptions options_;
  HashMap<GradNode*, Pending> pending_;
  std::priority_queue<GradNode*, PooledVector<GradNode*>, Latest> queue_;
};

}  // namespace

void Backward(const Tensor& root, const Tensor& gradient, BackwardOptions options) {
  if (!root.defined()) throw StatusError(InvalidArgument("backward: the tensor is undefined"));
  const Edge edge = GradEdge(root);
  if (!edge) {
    throw StatusError(FailedPrecondition("backward: ", root.shape(),
                                         " has no history; it was computed from no tensor that "
                                         "requires a gradient, or under NoGrad"));
  }
  if (!IsFloat(root.dtype()))
    throw StatusError(InvalidArgument("backward: gradients need floats, not ", root.shape()));
  Tensor seed = gradient;
  options.retain_graph = options.retain_graph || options.create_graph;
  GradModeGuard mode(options.create_graph);
  if (!seed.defined()) {
    if (root.shape().num_elements() != 1) {
      throw StatusError(InvalidArgument(
          "backward: ", root.shape(),
          " is no scalar; reduce it (sum, mean) or pass the gradient of the result"));
    }
    seed = FullConstant(root.shape(), 1, root.device());
  }
  if (!(seed.shape() == root.shape())) {
    throw StatusError(
        InvalidArgument("backward: the gradient is ", seed.shape(), ", the tensor ", root.shape()));
  }
  TapeWalker walker(options);
  walker.Send(edge, std::move(seed));
  walker.Run();
}

}  // namespace lazuli::lazy
