#include "lazy/autograd/backward.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <mutex>
#include <queue>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"

#include "ir/support/fork.h"
#include "ir/support/pool.h"
#include "ir/support/runtime.h"
#include "ir/support/thread_local.h"
#include "lazy/autograd/grad_name.h"
#include "lazy/ops/core/functions.h"
#include "lazy/tensor/journal.h"
#include "lazy/tensor/outside.h"
#include "lazy/tensor/site_scope.h"
#include "lazy/tensor/status_error.h"
#include "lazy/tensor/tape.h"

namespace lazuli::lazy {
namespace {

// Gradients that have arrived at a node's outputs so far.
struct ArrivedGradients {
  Tensors dys;
};

struct Latest {
  bool operator()(const GradNode* a, const GradNode* b) const {
    return a->sequence() < b->sequence();
  }
};

bool Same(const Edge& a, const Edge& b) {
  return a.node == b.node && a.leaf == b.leaf && a.index == b.index;
}

void AddTo(Tensor& sum, Tensor gradient) {
  sum = sum.defined() ? Add(sum, gradient) : std::move(gradient);
}

// A gradient that somebody else holds too (another leaf of a sum, the caller) gets a storage of its
// own, so that changing it in place changes nothing else. A copy of a leaf needs an op to have a
// history, which leads to the leaf.
Tensor OwnElements(Tensor gradient) {
  if (gradient.impl()->use_count() == 1 && gradient.storage().use_count() == 1 &&
      gradient.storage().view() == nullptr)
    return gradient;
  return GradEnabled() && GradEdge(gradient).leaf ? Clone(gradient) : Snapshot(gradient);
}

// The tensors that Grad() is asked about, by where their gradients arrive, and the nodes on the way
// to them.
class Wanted {
 public:
  Wanted(absl::Span<const Tensor> roots, absl::Span<const Tensor> inputs, bool ends_outside)
      : ends_outside_(ends_outside) {
    for (const Tensor& input : inputs) {
      edges_.push_back(Followed(GradEdge(input)));
      if (!edges_.back()) {
        throw StatusError(InvalidArgument("grad: input ", edges_.size() - 1, ", ", input.shape(),
                                          ", requires no gradient"));
      }
    }
    MarkPaths(roots);
  }

  // Where a gradient that is sent by the edge arrives.
  const Edge& Followed(const Edge& edge) const { return ends_outside_ ? edge : BeyondEnds(edge); }
  std::size_t size() const { return edges_.size(); }
  const Edge& edge(std::size_t i) const { return edges_[i]; }
  bool Is(const Edge& edge) const {
    return std::any_of(edges_.begin(), edges_.end(), [&](const Edge& e) { return Same(e, edge); });
  }
  // Whether a wanted gradient arrives by the edge, or farther on.
  bool IsOnTheWay(const Edge& edge) const {
    return Is(edge) || (edge.node && LeadsOn(edge.node.get()));
  }
  // Whether one arrives behind the node.
  bool LeadsOn(const GradNode* node) const {
    const auto found = leads_on_.find(node);
    return found != leads_on_.end() && found->second;
  }
  // Whether input i is reached from the roots.
  bool reached(std::size_t i) const { return reached_[i]; }

 private:
  void MarkPaths(absl::Span<const Tensor> roots) {
    std::vector<const GradNode*> nodes;  // all that can be reached
    reached_.resize(edges_.size());
    const auto visit = [&](const Edge& edge) {
      for (std::size_t i = 0; i < edges_.size(); ++i) {
        if (Same(edges_[i], edge)) reached_[i] = true;
      }
      if (edge.node && leads_on_.try_emplace(edge.node.get(), false).second)
        nodes.push_back(edge.node.get());
    };
    for (const Tensor& root : roots) visit(Followed(GradEdge(root)));
    for (std::size_t i = 0; i < nodes.size(); ++i) {  // NOLINT: visit() adds to nodes
      if (IsEnd(*nodes[i])) continue;
      for (const Edge& edge : nodes[i]->edges()) {
        if (edge) visit(Followed(edge));
      }
    }
    // Edges lead to nodes that were recorded earlier.
    std::sort(nodes.begin(), nodes.end(),
              [](const GradNode* a, const GradNode* b) { return a->sequence() < b->sequence(); });
    for (const GradNode* node : nodes) {
      if (IsEnd(*node)) continue;
      for (const Edge& edge : node->edges()) {
        if (edge && IsOnTheWay(Followed(edge))) leads_on_[node] = true;
      }
    }
  }
  static bool IsEnd(const GradNode& node) { return node.sequence() == 0; }

  bool ends_outside_;
  std::vector<Edge> edges_;
  std::vector<bool> reached_;
  absl::flat_hash_map<const GradNode*, bool> leads_on_;  // every node that can be reached
};

LAZULI_FAST_THREAD_LOCAL const Tensors* current_gradients = nullptr;

class CurrentGradientsScope {
 public:
  explicit CurrentGradientsScope(const Tensors& dys)
      : outer_(std::exchange(current_gradients, &dys)) {}
  ~CurrentGradientsScope() { current_gradients = outer_; }
  CurrentGradientsScope(const CurrentGradientsScope&) = delete;
  CurrentGradientsScope& operator=(const CurrentGradientsScope&) = delete;

 private:
  const Tensors* outer_;
};

// The runtime's.
std::atomic<uint8_t>& AnomalyModeBits() {
  struct Anomalies {
    std::atomic<uint8_t> bits{0};
  };
  return ir::Runtime::Get().Of<Anomalies>().bits;
}

// Backward passes of several threads that meet in a leaf add to its gradient one after the other.
ir::ForkMutex& TurnAt(const TensorImpl& leaf) {
  constexpr std::size_t kMutexes = 16;
  static auto* mutexes = new std::array<ir::ForkMutex, kMutexes>;
  return (*mutexes)[reinterpret_cast<std::uintptr_t>(&leaf) / 64 % kMutexes];
}

class TapeWalker {
 public:
  // `wanted`: null for the leaves' .grad.
  TapeWalker(BackwardOptions options, const Wanted* wanted)
      : options_(options), wanted_(wanted), anomaly_(GetAnomalyMode()) {
    if (wanted_ != nullptr) found_.resize(wanted_->size());
  }

  void Send(const Edge& sent, Tensor gradient) {
    const Edge& edge = wanted_ == nullptr ? sent : wanted_->Followed(sent);
    if (wanted_ != nullptr && !wanted_->IsOnTheWay(edge)) return;
    if (edge.leaf) {
      SendToLeaf(edge, std::move(gradient));
      return;
    }
    auto [it, inserted] = pending_.try_emplace(edge.node.get());
    if (inserted) {
      it->second.dys.resize(edge.node->num_outputs);
      queue_.push(edge.node.get());
    }
    AddTo(it->second.dys[edge.index], std::move(gradient));
  }

  // Every user of a node was recorded after it, so taking the latest node first visits a node after
  // all its users.
  void Run() {
    while (!queue_.empty()) {
      GradNode* node = queue_.top();
      queue_.pop();
      Tensors dys = std::move(pending_.find(node)->second.dys);
      pending_.erase(node);
      Visit(*node, dys);
    }
    for (auto& [edge, gradient] : leaves_) {
      const AutogradMeta* meta = edge.leaf->autograd();
      gradient = AfterHooks(meta->hooks, 0, std::move(gradient));
      if (wanted_ != nullptr)
        Find(edge, gradient);
      else
        Accumulate(edge.leaf, WithHistory(std::move(gradient), Tensor(edge.leaf)));
    }
    FillUnfed();
    ThrowFirstNaN();
  }

  Tensors TakeFound() { return std::move(found_); }

  // A gradient that is to have one of its own, also where it is piecewise constant, as relu's: then
  // zeros, as in PyTorch.
  Tensor WithHistory(Tensor gradient, const Tensor& leaf) const {
    if (!bends_ || !GradEnabled() || gradient.requires_grad()) return gradient;
    return Where(Constant(1, DType::kPred), gradient, leaf);
  }

  // Adds to the leaf's .grad, and calls who waits for that.
  static void Accumulate(const IntrusivePtr<TensorImpl>& leaf, Tensor gradient) {
    {
      const std::lock_guard turn(TurnAt(*leaf));
      NoteGrad(*leaf);
      AddToPlace(leaf->mutable_autograd().grad, std::move(gradient));
    }
    const std::shared_ptr<GradHooks>& hooks = leaf->autograd()->hooks;
    if (!hooks) return;
    const GradHooks now = *hooks;  // NOLINT: a copy, since one may remove itself
    const SiteOverride none(kNoSite);
    for (const GradHook& hook : now) {
      if (hook.when == GradHook::When::kAccumulated) hook.call(Tensor(leaf));
    }
  }
  // A gradient of a failed run does not count: the next gradient replaces it.
  static bool HasFailed(const Tensor& grad) {
    if (Context::Current().journal() != nullptr) return false;  // a parameter of a trace
    const DataPtr data = Context::Peek(grad.storage()).data;
    return data && data->has_failed();
  }
  static void AddToPlace(Tensor& grad, Tensor gradient) {
    if (!grad.defined() || HasFailed(grad))
      grad = OwnElements(std::move(gradient));
    else if (GradEnabled() || grad.requires_grad())  // a history is kept: of values that stay
      grad = Add(grad, gradient);
    else
      Update("backward", grad, [&] { return Add(grad, gradient); });  // in the memory it has
  }

 private:
  void Visit(GradNode& node, Tensors& dys) {
    SiteOverride site(node.site());
    for (uint32_t i = 0; i < node.num_outputs; ++i) {
      dys[i] = AfterHooks(node.hooks, i, std::move(dys[i]));
      Keep(node, i, dys[i]);
      if (wanted_ != nullptr) Find({IntrusivePtr<GradNode>(&node), nullptr, i}, dys[i]);
    }
    if (wanted_ != nullptr && !wanted_->LeadsOn(&node)) return;
    if (options_.ends_at_inputs && !GoesOn(node, dys)) return;
    if (node.released) {
      throw StatusError(FailedPrecondition("backward: the values that ", node.name(),
                                           " saved were freed by an earlier backward; pass "
                                           "retain_graph to the first one to run it twice"));
    }
    if (node.hooks) [[unlikely]]
      CallNodeHooks(node.hooks, GradHook::When::kBeforeNode, dys, {});
    bends_ = bends_ || node.Bends();
    Tensors grads = [&] {
      const CurrentGradientsScope current(dys);
      return node.Backward(dys);
    }();
    if (node.hooks) [[unlikely]]
      CallNodeHooks(node.hooks, GradHook::When::kAfterNode, grads, dys);
    if (anomaly_.enabled && anomaly_.check_nan) [[unlikely]] {
      LookForNaN(node, grads);
      visited_.emplace_back(&node);
    }
    LAZULI_CHECK(grads.size() <= node.edges().size(), node.name(), " has too many gradients");
    // Edges are read before the node is released, which may drop the last reference to what they
    // point to.
    for (std::size_t i = 0; i < grads.size(); ++i) {
      if (!node.edges()[i]) continue;
      if (grads[i].defined())
        Send(node.edges()[i], std::move(grads[i]));
      else if (wanted_ == nullptr && node.undefined_is_zero())
        unfed_.push_back(node.edges()[i]);
    }
    if (!options_.retain_graph) node.ReleaseSaved();
  }

  // Drops the gradients that end at an input. Whether there are others.
  bool GoesOn(GradNode& node, Tensors& dys) const {
    bool goes_on = false;
    for (uint32_t i = 0; i < node.num_outputs; ++i) {
      if (wanted_->Is({IntrusivePtr<GradNode>(&node), nullptr, i})) dys[i] = Tensor();
      goes_on = goes_on || dys[i].defined();
    }
    return goes_on;
  }

  // Leaves that only steps lead to, whose gradients are zeros, have them in .grad, too.
  void FillUnfed() {
    absl::flat_hash_set<const GradNode*> seen;
    for (std::size_t i = 0; i < unfed_.size(); ++i) {
      const Edge edge = unfed_[i];  // NOLINT: a copy, since more are added
      if (edge.leaf) {
        const AutogradMeta* meta = edge.leaf->autograd();
        if (meta == nullptr || meta->grad.defined()) continue;
        const Tensor leaf(edge.leaf);
        Accumulate(edge.leaf, FullConstant(leaf.shape(), 0, leaf.device()));
      } else if (seen.insert(edge.node.get()).second) {
        for (const Edge& next : edge.node->edges()) {
          if (next) unfed_.push_back(next);
        }
      }
    }
  }

  // For retain_grad().
  static void Keep(const GradNode& node, uint32_t output, const Tensor& gradient) {
    if (!node.hooks || !gradient.defined()) return;
    for (GradHook& hook : *node.hooks) {
      if (hook.when == GradHook::When::kKeep && hook.output == output)
        AddToPlace(hook.kept, Tensor(gradient));
    }
  }

  // What is asked for, and what a hook sees, is the sum of all.
  void SendToLeaf(const Edge& edge, Tensor gradient) {
    const AutogradMeta* meta = edge.leaf->autograd();
    if (wanted_ == nullptr && (meta == nullptr || !meta->hooks)) {
      Accumulate(edge.leaf, WithHistory(std::move(gradient), Tensor(edge.leaf)));
      return;
    }
    auto it = std::find_if(leaves_.begin(), leaves_.end(),
                           [&](const auto& entry) { return entry.first.leaf == edge.leaf; });
    if (it == leaves_.end()) it = leaves_.insert(it, {edge, Tensor()});
    AddTo(it->second, std::move(gradient));
  }

  void Find(const Edge& edge, const Tensor& gradient) {
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (Same(wanted_->edge(i), edge)) found_[i] = gradient;
    }
  }

  // Keeps a flag for each gradient of the node.
  void LookForNaN(const GradNode& node, absl::Span<const Tensor> grads) {
    const GradModeGuard no_grad(false);
    for (std::size_t i = 0; i < grads.size(); ++i) {
      if (!grads[i].defined() || !(IsFloat(grads[i].dtype()) || IsComplex(grads[i].dtype())))
        continue;
      if (grads[i].shape().num_elements() == 0) continue;
      flags_.push_back(Any(Ne(grads[i], grads[i]), {}, false));
      flagged_.push_back({&node, i});
    }
  }
  void ThrowFirstNaN() {
    if (flags_.empty()) return;
    for (std::size_t i = 0; i < flags_.size(); ++i) {
      if (ToLiteral(flags_[i]).AsDouble(0) == 0) continue;
      const auto& [node, operand] = flagged_[i];
      const std::string site = GetSite(node->site()).ToString();
      throw StatusError(
          FailedPrecondition("Function '", GradName(*node), "' returned nan values in its ",
                             operand, "th output: the gradient of operand ", operand, " of ",
                             node->name(), site.empty() ? "" : Str(", which ", site, " recorded")));
    }
  }

  BackwardOptions options_;
  const Wanted* wanted_;
  AnomalyMode anomaly_;
  bool bends_ = false;  // whether a node that was visited does
  Tensors flags_;       // of anomaly mode: whether a gradient has a NaN, and whose it is
  std::vector<std::pair<const GradNode*, std::size_t>> flagged_;
  std::vector<IntrusivePtr<GradNode>> visited_;   // which flagged_ names
  Tensors found_;                                 // one for each that is wanted
  std::vector<Edge> unfed_;                       // by which no gradient came, but zeros
  PooledVector<std::pair<Edge, Tensor>> leaves_;  // whose gradients wait for the end, in order
  absl::flat_hash_map<GradNode*, ArrivedGradients, absl::Hash<GradNode*>, std::equal_to<>,
                      PoolAllocator<std::pair<GradNode* const, ArrivedGradients>>>
      pending_;  // of the pool: a steady step asks the system for nothing
  std::priority_queue<GradNode*, PooledVector<GradNode*>, Latest> queue_;
};

// The gradient that a root starts with.
Tensor Seed(std::string_view op, const Tensor& root, const Tensor& gradient) {
  if (!root.defined()) throw StatusError(InvalidArgument(op, ": the tensor is undefined"));
  if (!GradEdge(root)) {
    throw StatusError(FailedPrecondition(op, ": ", root.shape(),
                                         " has no history; it was computed from no tensor that "
                                         "requires a gradient, or under NoGrad"));
  }
  if (!IsFloat(root.dtype()) && !IsComplex(root.dtype()))
    throw StatusError(InvalidArgument(op, ": gradients need floats, not ", root.shape()));
  if (!gradient.defined()) {
    if (IsComplex(root.dtype())) {
      throw StatusError(
          InvalidArgument(op, ": ", root.shape(), " is complex; pass the gradient of the result"));
    }
    if (root.shape().num_elements() != 1) {
      throw StatusError(InvalidArgument(
          op, ": ", root.shape(),
          " is not a scalar; reduce it (sum, mean) or pass the gradient of the result"));
    }
    return FullConstant(root.shape(), 1, root.device());
  }
  // Beside real numbers it may have another dtype.
  const bool is_complex = IsComplex(gradient.dtype()) || IsComplex(root.dtype());
  if (gradient.shape().dims() != root.shape().dims() ||
      (is_complex && gradient.dtype() != root.dtype())) {
    throw StatusError(
        InvalidArgument(op, ": the gradient is ", gradient.shape(), ", the tensor ", root.shape()));
  }
  return To(gradient, root.dtype());
}

Tensors Seeds(std::string_view op, absl::Span<const Tensor> roots,
              absl::Span<const Tensor> gradients) {
  if (!gradients.empty() && gradients.size() != roots.size()) {
    throw StatusError(InvalidArgument(op, ": there are ", gradients.size(), " gradients for ",
                                      roots.size(), " tensors"));
  }
  Tensors seeds;
  for (std::size_t i = 0; i < roots.size(); ++i)
    seeds.push_back(Seed(op, roots[i], gradients.empty() ? Tensor() : gradients[i]));
  return seeds;
}

LAZULI_FAST_THREAD_LOCAL bool is_transposed = false;

class TransposeScope {
 public:
  explicit TransposeScope(bool on) : outer_(std::exchange(is_transposed, on)) {}
  ~TransposeScope() { is_transposed = outer_; }
  TransposeScope(const TransposeScope&) = delete;
  TransposeScope& operator=(const TransposeScope&) = delete;

 private:
  bool outer_;
};

}  // namespace

bool IsTransposed() { return is_transposed; }

void Backward(absl::Span<const Tensor> roots, absl::Span<const Tensor> gradients,
              BackwardOptions options) {
  const TransposeScope transpose(options.is_transposed);
  options.retain_graph = options.retain_graph || options.create_graph;
  GradModeGuard mode(options.create_graph);
  Tensors seeds = Seeds("backward", roots, gradients);
  TapeWalker walker(options, /*wanted=*/nullptr);
  for (std::size_t i = 0; i < roots.size(); ++i)
    walker.Send(GradEdge(roots[i]), std::move(seeds[i]));
  walker.Run();
}

void BackwardTo(absl::Span<const Tensor> roots, absl::Span<const Tensor> gradients,
                absl::Span<const Tensor> inputs, BackwardOptions options) {
  for (const Tensor& input : inputs) RetainGrad(input);
  Tensors found = Grad(roots, inputs, gradients, options, /*allow_unused=*/true);
  GradModeGuard mode(options.create_graph);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (found[i].defined() && GradEdge(inputs[i]).leaf)
      TapeWalker::Accumulate(inputs[i].ptr(), std::move(found[i]));
  }
}

AnomalyMode GetAnomalyMode() {
  const uint8_t mode = AnomalyModeBits().load(std::memory_order_relaxed);
  return {(mode & 1) != 0, (mode & 2) != 0};
}
void SetAnomalyMode(AnomalyMode mode) {
  AnomalyModeBits().store(static_cast<uint8_t>((mode.enabled ? 1 : 0) | (mode.check_nan ? 2 : 0)),
                          std::memory_order_relaxed);
}

absl::Span<const Tensor> CurrentGradients() {
  return current_gradients != nullptr ? absl::MakeConstSpan(*current_gradients)
                                      : absl::Span<const Tensor>();
}

void Backward(const Tensor& root, const Tensor& gradient, BackwardOptions options) {
  Backward(absl::MakeConstSpan(&root, 1), absl::MakeConstSpan(&gradient, 1), options);
}

Tensors Grad(absl::Span<const Tensor> outputs, absl::Span<const Tensor> inputs,
             absl::Span<const Tensor> gradients, BackwardOptions options, bool allow_unused) {
  const TransposeScope transpose(options.is_transposed);
  options.retain_graph = options.retain_graph || options.create_graph;
  GradModeGuard mode(options.create_graph);
  Tensors seeds = Seeds("grad", outputs, gradients);
  const Wanted wanted(outputs, inputs, options.ends_outside);
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (!wanted.reached(i) && !allow_unused) {
      throw StatusError(InvalidArgument("grad: the outputs do not depend on input ", i, ", ",
                                        inputs[i].shape(),
                                        "; allow_unused leaves its gradient undefined"));
    }
  }
  TapeWalker walker(options, &wanted);
  for (std::size_t i = 0; i < outputs.size(); ++i)
    walker.Send(GradEdge(outputs[i]), std::move(seeds[i]));
  walker.Run();
  Tensors found = walker.TakeFound();
  for (std::size_t i = 0; i < found.size(); ++i) {
    if (found[i].defined())
      found[i] = OwnElements(std::move(found[i]));
    else if (wanted.reached(i))  // through ops that pass no gradient on
      found[i] = FullConstant(inputs[i].shape(), 0, inputs[i].device());
    if (found[i].defined()) found[i] = walker.WithHistory(std::move(found[i]), inputs[i]);
  }
  return found;
}

}  // namespace lazuli::lazy
