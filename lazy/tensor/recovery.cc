// What a context does about faults: the error is told once, and pending updates that are computed
// from what failed are dropped.
#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"

#include "lazy/tensor/context.h"
#include "lazy/tensor/engine.h"
#include "lazy/tensor/view.h"

namespace lazuli::lazy {

void Context::SetFailure(FaultPtr fault, uint64_t told) {
  const std::lock_guard lock(failure_mu_);
  if (failure_ && !failure_->told()) return;
  const bool same = last_told_ && fault->checked().IsOfSameIntegers(last_told_->checked());
  if (same && !last_told_->WasToldBefore(told))
    fault->Tell();
  else
    failure_ = std::move(fault);
}

void Context::NoteNotTaken(const GraphOutcomePtr& outcome) {
  if (!outcome) return;
  const std::lock_guard lock(failure_mu_);
  not_taken_.push_back(outcome);
}

absl::Status Context::TakeFailure() {
  FaultPtr fault;
  {
    const std::lock_guard lock(failure_mu_);
    fault = std::exchange(failure_, nullptr);
    if (fault) last_told_ = fault;
  }
  if (!fault) return absl::OkStatus();
  const bool told = fault->told();  // by a read of another thread
  fault->Tell();
  Recover(*fault);
  return told ? absl::OkStatus() : fault->status();
}

absl::Status Context::Tell(const FaultPtr& fault) {
  const bool told = fault->told();
  fault->Tell();
  {
    const std::lock_guard lock(failure_mu_);
    if (failure_ && failure_->told()) failure_ = nullptr;
    last_told_ = fault;
  }
  if (!told) Recover(*fault);
  return fault->status();
}

absl::Status Context::DropUpdatesByFailed() {
  FaultPtr fault;
  {
    const Lock lock(*this);
    if (!reads_doubtful_) return absl::OkStatus();
    for (const auto& [data, leaf] : graph_leaves_) {
      if (data->has_failed()) fault = data->fault();
    }
  }
  if (!fault || !Recover(*fault)) return absl::OkStatus();
  fault->Tell();
  return fault->status();
}

// Why a node has failed: the fault of the data that it is computed from, or of an equal check; null: it
// has not. Each node is looked at once.
class Context::FromFailed {
 public:
  // The gradient of an op whose check failed has the same check, which is not to fail again.
  FromFailed(const Fault& fault, absl::Span<const Checked> checked) {
    for (const Checked& c : checked) {
      if (IsEqual(*c.node, fault.checked())) known_[c.node.get()] = &fault;
    }
  }
  const Fault* operator()(const Node& node) {
    for (left_.push_back(&node); !left_.empty();) Visit();
    return known_[&node];
  }

 private:
  static bool IsEqual(const Node& node, const Fault::FailedOp& failed) {
    if (node.site() != failed.site || failed.given.empty()) return false;
    bool same = false;
    VisitIntegers(node, [&](const Value& integers) {
      if (integers.node->kind() != NodeKind::kData) return;
      const DataPtr& data = static_cast<const DataNode&>(*integers.node).data();
      same = same || failed.Has(data);
    });
    return same;
  }

  void Visit() {
    const Node& node = *left_.back();
    if (known_.contains(&node)) return left_.pop_back();
    const std::size_t count = left_.size();
    const Fault* fault = nullptr;
    if (node.kind() == NodeKind::kData) {
      const DataHandle& data = *static_cast<const DataNode&>(node).data();
      if (data.has_failed()) fault = data.fault().get();
    }
    for (const Value& operand : node.operands()) {
      const auto known = known_.find(operand.node.get());
      if (known == known_.end())
        left_.push_back(operand.node.get());
      else if (known->second != nullptr)
        fault = known->second;
    }
    if (left_.size() != count) return;  // after its operands
    known_[&node] = fault;
    left_.pop_back();
  }

  absl::flat_hash_map<const Node*, const Fault*> known_;
  std::vector<const Node*> left_;
};

bool Context::Recover(const Fault& fault) {
  GetEngine().WaitForRuns();  // what they make of a failed run's results has failed, too
  absl::InlinedVector<GraphOutcomePtr, 1> not_taken;  // in the order of recording
  {
    const std::lock_guard lock(failure_mu_);
    not_taken.swap(not_taken_);
  }
  PooledVector<Value> dropped;  // released after the lock
  bool drops = false;
  {
    std::vector<Storage*> storages;
    const Lock lock(*this);
    FromFailed from_failed(fault, checked_);
    PendingStorages(storages);
    drops = DropFailedUpdates(storages, from_failed, dropped);
    FailPending(storages, from_failed, dropped);
    for (Checked& checked : checked_) {
      if (drops || from_failed(*checked.node) != nullptr) checked.was_told = true;
    }
    if (drops) {
      history.Clear();
      if (GraphOutcomePtr pending = TakeOutcome()) {
        pending->SetNotTaken();
        not_taken.push_back(std::move(pending));
      }
    }
  }
  std::reverse(not_taken.begin(), not_taken.end());
  for (const GraphOutcomePtr& outcome : not_taken) outcome->RestoreGenerators();
  if (fault.outcome()) fault.outcome()->RestoreGenerators();
  return drops;
}

void Context::FailPending(const std::vector<Storage*>& pending, FromFailed& from_failed,
                          PooledVector<Value>& dropped) {
  for (Storage* s : pending) {
    if (!s->linked_ || s->view_ != nullptr) continue;
    const Fault* const fault = from_failed(*s->value_.node);
    if (fault == nullptr) continue;
    auto data = MakeIntrusive<DataHandle>(s->shape_, s->device_);
    data->Set(FaultPtr(const_cast<Fault*>(fault)));
    dropped.push_back(s->value_);
    Resolve(*s, std::move(data));
  }
}

bool Context::DropFailedUpdates(const std::vector<Storage*>& pending, FromFailed& from_failed,
                                PooledVector<Value>& dropped) {
  const auto is_update = [&](const Storage* s) {
    if (s->replaced_) return !s->replaced_->has_failed();
    return s->before_ && from_failed(*s->before_.node) == nullptr;
  };
  const bool any = std::any_of(pending.begin(), pending.end(), [&](const Storage* s) {
    return is_update(s) && from_failed(*s->value_.node) != nullptr;
  });
  if (!any) return false;
  for (Storage* s : pending) {
    if (!is_update(s)) continue;
    if (s->before_ && !s->replaced_) {
      dropped.push_back(std::exchange(s->value_, std::exchange(s->before_, {})));
      s->version_.fetch_add(1, std::memory_order_acq_rel);
      continue;
    }
    if (s->view_ != nullptr && IsHidden(*s->view_->base(), *s)) {
      dropped.push_back(s->value_);
      dropped.push_back(s->view_->base()->value_);
      Resolve(*s, std::exchange(s->replaced_, nullptr));
      ResolveHidden(*s);
      continue;
    }
    if (s->view_ != nullptr) {
      dropped.push_back(Forget(*s));
      s->view_->MakeStale();
      continue;
    }
    Unlink(*s);
    dropped.push_back(std::exchange(s->value_, {}));
    s->data_ = std::exchange(s->replaced_, nullptr);
    s->version_.fetch_add(1, std::memory_order_acq_rel);
  }
  return true;
}

}  // namespace lazuli::lazy
