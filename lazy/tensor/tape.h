// The tape: what recording leaves behind for backward. Nodes are made by ops (lazy/ops), walked by
// lazy/autograd.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"

#include "lazy/tensor/tensor.h"

namespace lazuli::lazy {

// Where a gradient flows: into output `index` of an earlier op's node, or into a leaf tensor's
// .grad.
struct Edge {
  IntrusivePtr<GradNode> node;
  IntrusivePtr<TensorImpl> leaf;
  uint32_t index = 0;
  explicit operator bool() const { return node || leaf; }
};

// What users want called in backward. Owned by the node or the leaf, seen by the handles that remove
// them.
struct GradHook {
  enum class When : uint8_t {
    kGradient,     // with a gradient, all of which has arrived; what is returned takes its place
    kKeep,         // never called: the gradient is kept, after the hooks above
    kAccumulated,  // with a leaf whose .grad is up to date
    kBeforeNode,   // with the gradients of a node's outputs, to change
    kAfterNode,    // with those of its operands, to change, and the former
  };
  using OfTensor = std::function<Tensor(const Tensor&)>;
  using OfNode = std::function<void(Tensors& gradients, absl::Span<const Tensor> dys)>;

  uint64_t id;
  uint32_t output;  // of the node; of a leaf 0
  OfTensor call;
  When when = When::kGradient;
  OfNode call_node = {};
  Tensor kept = {};
};
using GradHooks = std::vector<GradHook>;

class GradNode : public Pooled {
 public:
  explicit GradNode(SiteId site);
  GradNode(const GradNode&) = delete;
  GradNode& operator=(const GradNode&) = delete;

  virtual std::string_view name() const = 0;
  // Gradients of the operands, in order; undefined where none flows. `dys` has one entry an output,
  // undefined = zero.
  virtual Tensors Backward(absl::Span<const Tensor> dys) = 0;
  virtual void ReleaseSaved() = 0;
  // Whether the gradients depend on more than those of the results, though perhaps on signs alone.
  virtual bool Bends() const { return false; }
  // Whether operands that it gives no gradient have one of zeros, as those of a step do.
  virtual bool undefined_is_zero() const { return true; }

  SiteId site() const { return site_; }
  uint64_t sequence() const { return sequence_; }  // grows with recording
  absl::Span<const Edge> edges() const { return edges_; }
  uint32_t num_outputs = 1;
  bool released = false;             // what it had saved is gone: backward ran
  std::shared_ptr<GradHooks> hooks;  // null: none

  void Retain() const { refs_.Retain(); }
  void RetainFirst() const { refs_.RetainFirst(); }
  void Release() const {  // iterative, as Node's
    if (refs_.ReleaseLast()) DestroyGraph();
  }

 protected:
  virtual ~GradNode() = default;
  absl::InlinedVector<Edge, 2> edges_;  // one per operand; empty where no gradient is wanted

 private:
  void DestroyGraph() const;

  ir::RefCount refs_;
  mutable const GradNode* next_dead_ = nullptr;
  SiteId site_;
  uint64_t sequence_;
};

struct AutogradMeta : public Pooled {
  // Makes the tensor a result of this node, after an op in place. A gradient that it retains is that
  // of its new elements from then on.
  void SetHistory(IntrusivePtr<GradNode> node, uint32_t output_of_node);

  IntrusivePtr<GradNode> grad_fn;
  uint32_t output = 0;         // which output of grad_fn
  bool requires_grad = false;  // leaf flag set by the user; op results have grad_fn instead
  bool retains_grad = false;   // a result whose gradient a hook of grad_fn keeps
  // The context of the trace with an Outside in which requires_grad was set; 0: in none. What is around
  // the trace cannot ask for this leaf's gradient.
  uint64_t leaf_of_trace = 0;
  Tensor grad;                       // of a leaf
  std::shared_ptr<GradHooks> hooks;  // of a leaf; null: none
};

// The edge a gradient of this tensor takes; empty if it needs none.
Edge GradEdge(const Tensor& tensor);

// The elements and the history that the tensor has now: a later write to it changes neither. No
// copy is made.
Tensor Snapshot(const Tensor& tensor);

struct HookHandle {
  std::weak_ptr<GradHooks> hooks;
  uint64_t id;
};
// Has the hook called for this tensor, which must require a gradient; throws FailedPrecondition.
// kAccumulated is for leaves.
HookHandle AddHook(const Tensor& tensor, GradHook::OfTensor hook,
                   GradHook::When when = GradHook::When::kGradient);
HookHandle AddHook(GradNode& node, GradHook::OfNode hook, GradHook::When when);
void RemoveHook(const HookHandle& handle);
// The gradient after the hooks of `output`.
Tensor AfterHooks(const std::shared_ptr<GradHooks>& hooks, uint32_t output, Tensor gradient);
// Calls those of a node.
void CallNodeHooks(const std::shared_ptr<GradHooks>& hooks, GradHook::When when, Tensors& gradients,
                   absl::Span<const Tensor> dys);

// From now on backward keeps the gradient of this tensor, a result, as those of leaves; throws
// FailedPrecondition if it requires none.
void RetainGrad(const Tensor& tensor);
// Where the tensor's gradient is kept, of a leaf or a result; null: nowhere.
Tensor* GradPlace(const Tensor& tensor);

// What a user does with tensors that are saved for backward, instead of keeping them.
class Packed : public Pooled {
 public:
  Packed() = default;
  Packed(const Packed&) = delete;
  Packed& operator=(const Packed&) = delete;
  virtual ~Packed() = default;
  // The elements again, with the shape and dtype that they had.
  virtual Tensor Unpack() = 0;
};
using PackHook = std::function<std::unique_ptr<Packed>(const Tensor&)>;
// While one lives, tensors that this thread saves for backward are given to the hook, without
// history. Null: they are kept.
class PackScope {
 public:
  explicit PackScope(const PackHook* hook);
  ~PackScope();
  PackScope(const PackScope&) = delete;
  PackScope& operator=(const PackScope&) = delete;
  static const PackHook* Current();

 private:
  const PackHook* outer_;
};

// A tensor kept for backward: its storage and the version that was recorded. Fails if somebody
// wrote to it since.
class SavedTensor {
 public:
  SavedTensor() = default;
  // `is_result`: the tensor is a result of the very node that saves it (a strong edge would be a
  // cycle).
  SavedTensor(const Tensor& tensor, bool is_result);
  SavedTensor(const Value& number, backend::Device device);
  bool defined() const { return storage_ || packed_; }
  // The tensor, with its history if gradients are being recorded. Throws FailedPrecondition naming
  // the op and its line if the storage was written to. `self` is the saving node, `output` which of
  // its results this is.
  Tensor Get(const GradNode& self, uint32_t output) const;
  // Get will fail: the tensor is no longer what was recorded.
  void MarkChanged() { version_ = kChanging; }
  void Reset();

 private:
  static constexpr uint64_t kChanging = ~uint64_t{0};
  [[noreturn]] void ThrowChanged(const GradNode& self, uint64_t version) const;

  StoragePtr storage_;
  std::unique_ptr<Packed> packed_;  // in its place
  uint64_t version_ = 0;
  Edge edge_;
  bool is_result_ = false;
};

}  // namespace lazuli::lazy
