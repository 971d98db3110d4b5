#include "lazy/autograd/checkpoint.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/cleanup/cleanup.h"

#include "lazy/autograd/backward.h"
#include "lazy/ops/program/barrier.h"
#include "lazy/tensor/context.h"
#include "lazy/tensor/random.h"
#include "lazy/tensor/site_scope.h"
#include "lazy/tensor/status_error.h"
#include "lazy/tensor/tape.h"
#include "lazy/tensor/watch.h"

namespace lazuli::lazy {
namespace {

class KeptTensor final : public Packed {
 public:
  explicit KeptTensor(Tensor tensor) : tensor_(std::move(tensor)) {}
  Tensor Unpack() override { return tensor_; }

 private:
  Tensor tensor_;
};

// While it lives, this thread records in the context; null: where it records now.
class In {
 public:
  explicit In(IntrusivePtr<Context> context) : is_other_(context) {
    if (is_other_) outer_ = Context::Exchange(std::move(context));
  }
  ~In() {
    if (is_other_) Context::Exchange(std::move(outer_));
  }
  In(const In&) = delete;
  In& operator=(const In&) = delete;

 private:
  bool is_other_;
  IntrusivePtr<Context> outer_;
};

// One call of the function, shared by the tensors that it would have saved.
class CheckpointCall {
 public:
  CheckpointCall(CheckpointFunction function, absl::Span<const Tensor> inputs, bool keep_random)
      : function_(std::move(function)), context_(&Context::Current()) {
    for (const Tensor& input : inputs) {
      // As they are now: a snapshot costs no copy.
      inputs_.push_back(input.defined() ? Detach(Snapshot(input)) : Tensor());
      wants_.push_back(input.defined() && input.requires_grad());
    }
    if (keep_random) random_ = DefaultGenerator().state();
  }

  // The function saves a tensor. It is kept until the function returns, for backward passes in it.
  std::size_t Add(const Tensor& tensor) {
    values_.push_back(tensor);
    return count_++;
  }
  void Returned() {
    values_.clear();
    has_values_ = false;
  }
  // What the function would have saved as the i-th.
  Tensor Get(std::size_t i) {
    if (!has_values_) Recompute();
    return values_[i];
  }
  void Forget(std::size_t i) {
    if (i < values_.size()) values_[i] = {};
  }

 private:
  void Recompute() {
    // A trace of the backward pass, such as that of a batch of gradients, uses the values as those
    // of any tensor from outside: they are the same for all that the pass is traced for.
    const Context& current = Context::Current();
    const bool is_traced = current.journal() != nullptr && context_.get() != &current;
    const In own(is_traced ? context_ : nullptr);
    Tensors behind;
    {
      const GradModeGuard no_grad(false);
      behind = Barrier(inputs_, is_traced ? absl::Span<const Tensor>() : CurrentGradients());
    }
    for (std::size_t i = 0; i < behind.size(); ++i) {
      if (wants_[i]) behind[i].impl()->mutable_autograd().requires_grad = true;
    }
    values_ = Run(behind);
    if (values_.size() == count_) {
      has_values_ = true;
      return;
    }
    throw StatusError(FailedPrecondition("checkpoint: the function saved ", count_,
                                         " tensors for backward, and ", values_.size(),
                                         " when it ran again"));
  }

  // What the function saves when it runs on these inputs.
  Tensors Run(const Tensors& inputs) {
    Tensors saved;
    std::optional<Replay> replay;
    if (random_) {
      if (Watch* const watch = Watch::Current())
        watch->Refuse("draws the same random numbers again");
      replay.emplace(DefaultGenerator(), *random_);
    }
    const GradModeGuard grad(true);
    const PackHook collect = [&](const Tensor& tensor) {
      saved.push_back(tensor);
      return std::make_unique<KeptTensor>(tensor);
    };
    const PackScope scope(&collect);
    const SiteOverride none(kNoSite);
    function_(inputs);
    return saved;
  }

  CheckpointFunction function_;
  IntrusivePtr<Context> context_;  // that it was called in
  Tensors inputs_;
  std::vector<bool> wants_;
  std::optional<PhiloxState> random_;
  std::size_t count_ = 0;
  bool has_values_ = true;  // while the function runs, and since it ran again
  Tensors values_;
};

class Recomputed final : public Packed {
 public:
  Recomputed(std::shared_ptr<CheckpointCall> call, const Tensor& tensor)
      : call_(std::move(call)), i_(call_->Add(tensor)) {}
  ~Recomputed() override { call_->Forget(i_); }
  Tensor Unpack() override { return call_->Get(i_); }

 private:
  std::shared_ptr<CheckpointCall> call_;
  std::size_t i_;
};

}  // namespace

Tensors Checkpoint(const CheckpointFunction& function, absl::Span<const Tensor> inputs,
                   bool keep_random) {
  if (!GradEnabled()) return function(inputs);
  const auto call = std::make_shared<CheckpointCall>(function, inputs, keep_random);
  const PackHook pack = [&](const Tensor& tensor) {
    return std::make_unique<Recomputed>(call, tensor);
  };
  const PackScope scope(&pack);
  // Also where the function throws: the values have histories that keep the call.
  const absl::Cleanup returned = [&] { call->Returned(); };
  return function(inputs);
}

}  // namespace lazuli::lazy
