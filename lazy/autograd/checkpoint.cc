#include "lazy/autograd/checkpoint.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "lazy/autograd/backward.h"
#include "lazy/ops/program/barrier.h"
#include "lazy/tensor/random.h"
#include "lazy/tensor/site_scope.h"
#include "lazy/tensor/status_error.h"
#include "lazy/tensor/tape.h"

namespace lazuli::lazy {
namespace {

class KeptTensor final : public Packed {
 public:
  explicit KeptTensor(Tensor tensor) : tensor_(std::move(tensor)) {}
  Tensor Unpack() override { return tensor_; }

 private:
  Tensor tensor_;
};

// One call of the function, shared by the tensors that it would have saved.
class CheckpointCall {
 public:
  CheckpointCall(CheckpointFunction function, absl::Span<const Tensor> inputs, bool keep_random)
      : function_(std::move(function)) {
    for (const Tensor& input : inputs) {
      // As they are now: a snapshot costs no copy.
      inputs_.push_back(input.defined() ? Detach(Snapshot(input)) : Tensor());
      wants_.push_back(input.defined() && input.requires_grad());
    }
    if (keep_random) random_ = DefaultGenerator().state();
  }

  std::size_t Add() { return count_++; }
  // What the function would have saved as the i-th.
  Tensor Get(std::size_t i) {
    if (values_.size() != count_) Recompute();
    return values_[i];
  }
  void Forget(std::size_t i) {
    if (i < values_.size()) values_[i] = {};
  }

 private:
  void Recompute() {
    Tensors behind;
    {
      const GradModeGuard no_grad(false);
      behind = Barrier(inputs_, CurrentGradients());
    }
    for (std::size_t i = 0; i < behind.size(); ++i) {
      if (wants_[i]) behind[i].impl()->mutable_autograd().requires_grad = true;
    }
    values_.clear();
    {
      std::optional<Replay> replay;
      if (random_) replay.emplace(DefaultGenerator(), *random_);
      const GradModeGuard grad(true);
      const PackHook collect = [&](const Tensor& tensor) {
        values_.push_back(tensor);
        return std::make_unique<KeptTensor>(tensor);
      };
      const PackScope scope(&collect);
      const SiteOverride none(kNoSite);
      function_(behind);
    }
    if (values_.size() == count_) return;
    const std::size_t saved = std::exchange(count_, 0);
    throw StatusError(FailedPrecondition("checkpoint: the function saved ", saved,
                                         " tensors for backward, and ", values_.size(),
                                         " when it ran again"));
  }

  CheckpointFunction function_;
  Tensors inputs_;
  std::vector<bool> wants_;
  std::optional<PhiloxState> random_;
  std::size_t count_ = 0;
  Tensors values_;
};

class Recomputed final : public Packed {
 public:
  explicit Recomputed(std::shared_ptr<CheckpointCall> call)
      : call_(std::move(call)), i_(call_->Add()) {}
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
  const PackHook count = [&](const Tensor&) { return std::make_unique<Recomputed>(call); };
  const PackScope scope(&count);
  return function(inputs);
}

}  // namespace lazuli::lazy
