// Fault: why results of a run have no elements, shared by all of them, and whether anybody was told.
// GraphOutcome: what became of the updates in place of one graph.
//
// A run in which a check fails takes none of its updates: what it would have updated is as before. So
// is what the host keeps beside those: the offset of a random generator, the step count of an
// optimiser. These wait for the outcome of the graph that they were recorded with.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/status/status.h"

#include "ir/graph/site.h"
#include "ir/support/fork.h"
#include "ir/support/intrusive_ptr.h"
#include "ir/support/pool.h"
#include "lazy/tensor/random.h"

namespace lazuli::lazy {

using ir::IntrusivePtr;
using ir::PooledVector;
using ir::RefCounted;

class GraphOutcome : public RefCounted<GraphOutcome> {
 public:
  enum class State : uint8_t { kUnknown, kTaken, kNotTaken };

  State state() const { return state_.load(std::memory_order_acquire); }
  // Of several runs, one per device, one that takes no updates decides.
  void SetTaken() {
    State unknown = State::kUnknown;
    state_.compare_exchange_strong(unknown, State::kTaken);
  }
  void SetNotTaken() { state_.store(State::kNotTaken, std::memory_order_release); }

  // The graph has numbers of the generator that lie between the states. Under the context's lock.
  void AddDraw(const GeneratorStatePtr& generator, PhiloxState before, PhiloxState after);
  // Gives the numbers back, unless more were drawn since: those belong to what goes on.
  void RestoreGenerators();

 private:
  struct Draw {
    GeneratorStatePtr generator;
    PhiloxState before, after;
  };
  std::atomic<State> state_{State::kUnknown};
  absl::InlinedVector<Draw, 1> draws_;
};
using GraphOutcomePtr = IntrusivePtr<GraphOutcome>;

class DataHandle;

class Fault : public RefCounted<Fault> {
 public:
  explicit Fault(absl::Status status, GraphOutcomePtr outcome = {});
  // Another one of the same run: who was told of one was told of both.
  Fault(absl::Status status, IntrusivePtr<Fault> first);
  ~Fault();

  const absl::Status& status() const { return status_; }
  // Of the graph that failed; null if its updates do not wait for it.
  const GraphOutcomePtr& outcome() const { return first_ ? first_->outcome() : outcome_; }
  // Of the op whose check failed: its line, and the data of the integers that it was given. An op of its
  // gradient has the same, and fails, too.
  struct FailedOp {
    ir::SiteId site = ir::kNoSite;
    PooledVector<IntrusivePtr<DataHandle>> given = {};
    bool Has(const IntrusivePtr<DataHandle>& data) const;
    bool IsOfSameIntegers(const FailedOp& other) const;
  };
  const FailedOp& checked() const { return checked_; }
  void SetChecked(FailedOp checked);  // before others see it

  // Somebody was told, that is, it was thrown.
  void Tell();
  bool told() const {
    return (first_ ? first_->told_ : told_).load(std::memory_order_acquire) != 0;
  }
  // Counts what was told. What was submitted when the count was `count` was so after this was told.
  bool WasToldBefore(uint64_t count) const;
  static uint64_t Told();

 private:
  absl::Status status_;
  GraphOutcomePtr outcome_;
  FailedOp checked_;
  IntrusivePtr<Fault> first_;
  std::atomic<uint64_t> told_{0};  // the count then; 0: not yet
};
using FaultPtr = IntrusivePtr<Fault>;

}  // namespace lazuli::lazy
