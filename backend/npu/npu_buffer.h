// NpuBuffer: an array in the simulated DRAM of a card. Its bytes are the device's: who wants them
// pays for a transfer.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include "backend/client/client.h"
#include "backend/npu/sim/card.h"

namespace lazuli::npu {

// A piece of a card's DRAM that somebody owns.
class DramBlock {
 public:
  DramBlock() = default;
  DramBlock(std::shared_ptr<Card> card, uint64_t place) : card_(std::move(card)), place_(place) {}
  DramBlock(DramBlock&& other) noexcept = default;
  DramBlock& operator=(DramBlock&& other) noexcept {
    std::swap(card_, other.card_);
    std::swap(place_, other.place_);
    return *this;
  }
  ~DramBlock() {
    if (card_ != nullptr) card_->Free(place_);
  }
  DramBlock(const DramBlock&) = delete;
  DramBlock& operator=(const DramBlock&) = delete;

  Card* card() const { return card_.get(); }  // null: nothing is owned
  uint64_t place() const { return place_; }

 private:
  std::shared_ptr<Card> card_;
  uint64_t place_ = 0;
};

class NpuBuffer final : public Buffer {
 public:
  NpuBuffer(Shape shape, Device device, DramBlock block)
      : Buffer(std::move(shape), device), block_(std::move(block)) {}
  // Null card: it was donated.
  const DramBlock& block() const { return block_; }
  DramBlock Release() { return std::move(block_); }

 private:
  DramBlock block_;
};

// ResourceExhausted names what asks.
absl::StatusOr<DramBlock> AllocateOn(const std::shared_ptr<Card>& card, int64_t bytes,
                                     std::string_view what);

}  // namespace lazuli::npu
