// Recording, the part that does not depend on the op: operands, checks, locking, results.
#pragma once

#include <array>
#include <memory>
#include <optional>
#include <string_view>

#include "absl/base/attributes.h"
#include "absl/container/inlined_vector.h"

#include "lazy/tensor/site_scope.h"
#include "lazy/tensor/status_error.h"
#include "lazy/tensor/tape.h"
#include "lazy/tensor/tensor.h"

namespace lazuli::lazy {

// An operand of an op: a tensor, or a number that is already a node. Not owned: the caller keeps it
// for the length of the call, which temporaries of the call are.
class Operand {
 public:
  Operand(const Tensor& tensor ABSL_ATTRIBUTE_LIFETIME_BOUND)  // NOLINT: implicit
      : tensor_(&tensor) {}
  Operand(const Value& number ABSL_ATTRIBUTE_LIFETIME_BOUND)  // NOLINT: implicit
      : number_(&number) {}
  const Tensor* tensor() const { return tensor_; }  // null for a number
  const Value& number() const { return *number_; }
  const Shape& shape() const { return tensor_ != nullptr ? tensor_->shape() : number_->shape(); }

 private:
  const Tensor* tensor_ = nullptr;
  const Value* number_ = nullptr;
};

// What makes the result of an op a view.
struct NewView {
  const Tensor* base = nullptr;  // perhaps a view itself
  std::unique_ptr<View> view;
  bool one_of_several = false;
};

// "matmul: " and the error; what the facade appends is the line.
[[noreturn]] void ThrowRecordError(std::string_view op, const absl::Status& status);

// One op being recorded into the calling thread's context: checks the operands, takes the lock,
// turns them into values.
class Recorder {
 public:
  // The op's name, which only errors need, comes last: the others fit into registers.
  Recorder(absl::Span<const Operand> in, backend::Device device, std::string_view op);
  // For an op that writes to `targets`, which are among the operands: from here to the end of
  // `movers` nobody else does.
  Recorder(absl::Span<const Operand> in, absl::Span<const Tensor> targets, Context::Movers& movers,
           std::string_view op);

  absl::Span<Value> values() { return absl::MakeSpan(values_); }
  SiteId site() const { return CurrentSite(); }
  // The node's checks are to run, whatever becomes of its results. Before Finish.
  void WillCheck() { checks_ = true; }
  // The node is an effect: it runs, whatever becomes of its results. Before Finish.
  void WillAct() { acts_ = true; }
  // Makes the pending results of the node and gives the lock back.
  Tensor Finish(NodePtr node);
  Tensor Finish(NodePtr node, NewView view);
  void Finish(const NodePtr& node, Tensors& results);
  // Whether the target, and what it is a view of, are the context's, which holds the lock.
  bool Has(const Tensor& target) const { return context_.Owns(target.storage().written()); }
  // The result replaces what the target holds, which Has().
  void FinishOver(NodePtr node, const Tensor& target);
  // The first results replace what the targets hold; the others are new.
  void Finish(const NodePtr& node, absl::Span<const Tensor> targets, Tensors& results);
  // Afterwards: syncs where the graph has grown long (History), so that a loop without sync stays
  // bounded in memory and in the size of its programs. Deferred writes come first.
  void CutLongGraph() {
    if (is_long_) [[unlikely]]
      SyncLongGraph();
  }

 private:
  void SyncLongGraph();
  void AddChecked(const Node& node, bool is_effect = false);
  StoragePtr FinishStorage(NodePtr node, std::unique_ptr<View> view);
  // Takes the lock with the values of operands of which some are other contexts'.
  void LockForeign(absl::Span<const Operand> in);

  Context& context_;
  backend::Device device_;
  std::optional<Context::Lock> lock_;
  absl::InlinedVector<Value, 3, PoolAllocator<Value>> values_;
  bool is_long_ = false;
  bool checks_ = false;
  bool acts_ = false;
};

// Results that are to be the elements of existing tensors. Written together, and undone by nothing:
// what may fail comes before.
class Writes {
 public:
  // The first results of `node`, which fit.
  void Add(const NodePtr& node, absl::Span<const Tensor> targets);
  // Under the context's lock, which has all targets. Afterwards holds the old values, to be
  // released without it.
  void Apply(Context& context) noexcept;
  // Takes the lock, with the targets that the context has lost since. Throws only for a view whose
  // base is another context's, of which a sync fails.
  void Lock(Context& context, std::optional<Context::Lock>& lock, Context::Movers& movers) const;

 private:
  struct Write {
    StoragePtr target;
    Value value;
  };
  PooledVector<Write> writes_;
};

// While one lives, what this thread's RecordInto computes is not written yet: Commit() writes all
// of it, or fails as Writes::Lock() does. Without it nothing changes.
class DeferredWrites {
 public:
  DeferredWrites();
  ~DeferredWrites();
  DeferredWrites(const DeferredWrites&) = delete;
  DeferredWrites& operator=(const DeferredWrites&) = delete;
  void Commit();
  // Of the calling thread; null if there is none.
  static Writes* Current();

 private:
  Writes writes_;
  Writes* outer_;
};

// Whether gradients are on and one of the tensors wants one. Tensors may be undefined.
bool WantsGrad(absl::Span<const Operand> in);
// The versions of all tensors added up: two sums are equal where no tensor was written to between.
uint64_t VersionsOf(absl::Span<const Operand> in);
// For an op without a gradient: throws if one would silently get lost.
void RefuseGrad(std::string_view op, absl::Span<const Operand> in, const Shape& result);
// Makes `node` the history of the floating-point results.
void AttachGrad(const IntrusivePtr<GradNode>& node, absl::Span<Tensor> results);

// A tensor for a storage that is a view of x, or of what x is a view of.
Tensor ViewOf(const Tensor& x, StoragePtr storage, bool one_of_several = false);

// Throws if `target` is a leaf that wants a gradient, whose history a write would falsify, or a view
// that cannot be written to: of such a leaf, of one place several times.
void CheckAssignable(std::string_view op, const Tensor& target);
// Throws if `target` is such a leaf.
void CheckNoLeaf(std::string_view op, const Tensor& target);
// Throws if the history of the target, a view, could not follow a write to it.
void CheckFollows(std::string_view op, const Tensor& target);
// x becomes `view`, one of x itself, with its history: the same elements under other dims.
void BecomeView(std::string_view op, const Tensor& x, const Tensor& view);
// Throws if a result of this shape does not fit the tensor it is to be written to.
void CheckFits(std::string_view op, const Tensor& target, const Shape& result);
// Replaces what `target` holds by what `value` holds: shapes must be equal, dtypes are converted by
// the caller, and `target` must be assignable. With a version: false, with nothing changed, if
// target's is another one.
bool Assign(std::string_view op, const Tensor& target, const Tensor& value,
            std::optional<uint64_t> version = {});
// target := function(), which reads it, as one step: where another thread writes to it in between,
// the function is called again.
template <class F>
void Update(std::string_view op, const Tensor& target, F&& function) {
  while (true) {
    const uint64_t version = target.storage().version();
    if (Assign(op, target, function(), version)) return;
  }
}

}  // namespace lazuli::lazy
