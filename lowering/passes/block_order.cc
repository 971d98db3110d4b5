#include "lowering/passes/block_order.h"

#include <algorithm>

namespace lazuli::lowering {

using hlo::Instruction;

BlockOrder::Block BlockOrder::Add(Instruction* i) {
  const auto block = static_cast<Block>(members_.size());
  members_.push_back({i});
  rank_.push_back(static_cast<uint32_t>(order_.size()));
  order_.push_back(block);
  reached_.push_back(0);
  block_of_[i] = block + 1;
  return block;
}

void BlockOrder::Ask(const Instruction* i) {
  if (about_ == i) return;
  about_ = i;
  asked_ += 2;
  followed_ = order_.size();
  for (const Instruction* user : i->users()) reached_[of(user)] = asked_;
}

void BlockOrder::FollowDownTo(Block block) {
  while (followed_ > rank_[block] + 1) {
    const Block at = order_[--followed_];
    if (!IsReached(at)) continue;
    for (const Instruction* member : members_[at]) {
      for (const Instruction* user : member->users()) {
        if (of(user) != at) reached_[of(user)] = asked_ + 1;
      }
    }
  }
}

bool BlockOrder::LeadsInto(const Instruction* i, Block block) {
  if (order_.size() - rank_[block] > kFar) return true;
  Ask(i);
  FollowDownTo(block);
  return reached_[block] == asked_ + 1;
}

void BlockOrder::Join(Instruction* i, Block block) {
  const auto inside = [&](const Instruction* user) { return of(user) == block; };
  if (!std::all_of(i->users().begin(), i->users().end(), inside)) {
    Ask(i);
    FollowDownTo(block);
    // What `i` leads to goes before the block, which is now among what it reads.
    const auto begin = order_.begin() + rank_[block];
    std::stable_partition(begin, order_.end(), [&](Block b) { return b != block && IsReached(b); });
    for (auto rank = static_cast<uint32_t>(begin - order_.begin()); rank < order_.size(); ++rank)
      rank_[order_[rank]] = rank;
  }
  members_[block].push_back(i);
  block_of_[i] = block + 1;
  about_ = nullptr;
}

}  // namespace lazuli::lowering
