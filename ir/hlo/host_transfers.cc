#include "ir/hlo/host_transfers.h"

#include <utility>

#include "ir/support/status.h"
#include "ir/types/leaves.h"

namespace lazuli::hlo {
namespace {

bool Fits(const HostTransfers::Transfer& transfer, const std::vector<Shape>& leaves) {
  if (transfer.size() != leaves.size()) return false;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    if (!Compatible(transfer[i].shape(), leaves[i])) return false;
  }
  return true;
}

}  // namespace

void HostTransfers::PushInfeed(Transfer transfer) {
  const std::lock_guard lock(mutex_);
  infeed_.push_back(std::move(transfer));
}

absl::StatusOr<Literal> HostTransfers::PopInfeed(const Shape& shape) {
  const std::lock_guard lock(mutex_);
  if (infeed_.empty())
    return FailedPrecondition("nothing was transferred for it; it takes ", shape);
  Transfer& next = infeed_.front();
  if (!Fits(next, LeavesOf(shape))) {
    std::vector<Shape> given;
    for (const Literal& leaf : next) given.push_back(leaf.shape());
    return InvalidArgument("it takes ", shape, ", the next transfer is ",
                           Shape::Tuple(std::move(given)));
  }
  std::size_t leaf = 0;
  Literal value = FromLeaves(shape, next, &leaf);
  infeed_.pop_front();
  return value;
}

void HostTransfers::PushOutfeed(const Literal& value) {
  Transfer transfer;
  ForEachLeaf(value, [&](const Literal& leaf) { transfer.push_back(leaf.Clone()); });
  const std::lock_guard lock(mutex_);
  outfeed_.push_back(std::move(transfer));
}

std::optional<HostTransfers::Transfer> HostTransfers::PopOutfeed() {
  const std::lock_guard lock(mutex_);
  if (outfeed_.empty()) return std::nullopt;
  Transfer transfer = std::move(outfeed_.front());
  outfeed_.pop_front();
  return transfer;
}

}  // namespace lazuli::hlo
