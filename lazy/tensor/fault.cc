#include "lazy/tensor/fault.h"

#include <algorithm>

#include "lazy/tensor/data_handle.h"

namespace lazuli::lazy {
namespace {

std::atomic<uint64_t> told_faults{0};

}  // namespace

void GraphOutcome::AddDraw(const GeneratorStatePtr& generator, PhiloxState before,
                           PhiloxState after) {
  for (Draw& draw : draws_) {
    if (!(draw.generator == generator)) continue;
    if (draw.after != before) draw.before = before;  // it was set in between
    draw.after = after;
    return;
  }
  draws_.push_back({generator, before, after});
}

void GraphOutcome::RestoreGenerators() {
  static auto* mutex = new ir::ForkMutex;  // of contexts that learn of one failure
  const std::lock_guard lock(*mutex);
  for (const Draw& draw : draws_) draw.generator->ReplaceIf(draw.after, draw.before);
  draws_.clear();
}

Fault::Fault(absl::Status status, GraphOutcomePtr outcome)
    : status_(std::move(status)), outcome_(std::move(outcome)) {}
Fault::Fault(absl::Status status, IntrusivePtr<Fault> first)
    : status_(std::move(status)), first_(std::move(first)) {}
Fault::~Fault() = default;

bool Fault::FailedOp::Has(const IntrusivePtr<DataHandle>& data) const {
  return std::find(given.begin(), given.end(), data) != given.end();
}
bool Fault::FailedOp::IsOfSameIntegers(const FailedOp& other) const {
  return site == other.site &&
         std::any_of(given.begin(), given.end(), [&](const auto& data) { return other.Has(data); });
}

void Fault::SetChecked(FailedOp checked) { checked_ = std::move(checked); }

void Fault::Tell() {
  std::atomic<uint64_t>& told = first_ ? first_->told_ : told_;
  uint64_t never = 0;
  told.compare_exchange_strong(never, told_faults.fetch_add(1) + 1);
}

bool Fault::WasToldBefore(uint64_t count) const {
  const uint64_t told = (first_ ? first_->told_ : told_).load(std::memory_order_acquire);
  return told != 0 && told <= count;
}

uint64_t Fault::Told() { return told_faults.load(std::memory_order_acquire); }

}  // namespace lazuli::lazy
